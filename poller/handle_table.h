// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_HANDLE_TABLE_H_
#define WEFT_POLLER_HANDLE_TABLE_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "weft/poller/is_open.h"
#include "weft/poller/native_handle.h"

namespace weft::internal {

// HandleTable
//
// What a backend knows of each handle, by number: an `Entry`, which is made by its
// default constructor and never moves. Descriptors are small and come back, so it
// is an array, in pages; one is made when the first of its numbers is used. Where all
// numbers are multiples of a power of two (Windows: of 4), `kShift` is that power.
//
// Threads: belongs to the loop's thread.
template <class Entry, int kShift = 0>
class HandleTable {
 public:
  HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // Null if no number near it was ever used. Any number may be asked for.
  Entry* Find(NativeHandle handle) const {
    const size_t index = static_cast<size_t>(handle) >> kShift;
    const size_t page = index / kPageSize;
    if (page >= pages_.size() || pages_[page] == nullptr) return nullptr;
    return &pages_[page][index % kPageSize];
  }

  // As `Find()`, but makes the page if there is none; null, and a negated errno, if
  // that does not go.
  Entry* Get(NativeHandle handle, int64_t* error) {
    if (Entry* entry = Find(handle)) return entry;
    // A number out of the blue must not cost memory in proportion.
    if (!IsOpen(handle)) {
      *error = -EBADF;
      return nullptr;
    }
    const size_t page = (static_cast<size_t>(handle) >> kShift) / kPageSize;
    try {
      if (page >= pages_.size()) pages_.resize(page + 1);
      pages_[page] = std::make_unique<Entry[]>(kPageSize);
    } catch (const std::bad_alloc&) {
      *error = -ENOMEM;
      return nullptr;
    }
    return Find(handle);
  }

  // Calls `fn(handle, entry)` for all there are.
  template <class Fn>
  void ForEach(Fn fn) const {
    for (size_t page = 0; page < pages_.size(); ++page) {
      if (pages_[page] == nullptr) continue;
      for (size_t i = 0; i < kPageSize; ++i) {
        fn(static_cast<NativeHandle>((page * kPageSize + i) << kShift), &pages_[page][i]);
      }
    }
  }

 private:
  static constexpr size_t kPageSize = 64;

  std::vector<std::unique_ptr<Entry[]>> pages_;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_HANDLE_TABLE_H_
