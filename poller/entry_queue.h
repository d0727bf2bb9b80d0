// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_ENTRY_QUEUE_H_
#define WEFT_POLLER_ENTRY_QUEUE_H_

#include <utility>

namespace weft::internal {

// EntryQueue
//
// Entries of a backend's table for which there is something to do, first in, first out;
// each is there once at most. Linked through a member of theirs, so it allocates nothing
// and says itself who is in it.
//
//   struct Entry { Entry* next_dirty = nullptr; };
//   EntryQueue<Entry, &Entry::next_dirty> dirty;
//
// Threads: belongs to whoever owns the entries.
template <class Entry, Entry* Entry::* kNext>
class EntryQueue {
 public:
  EntryQueue() = default;
  EntryQueue(const EntryQueue&) = delete;
  EntryQueue& operator=(const EntryQueue&) = delete;

  bool empty() const { return first_ == nullptr; }
  static bool Has(const Entry* entry) { return entry->*kNext != nullptr; }
  Entry* back() const { return first_ == nullptr ? nullptr : last_; }

  // Does nothing if it is there already.
  void Push(Entry* entry) {
    if (Has(entry)) return;
    entry->*kNext = entry;  // The last is its own next.
    if (first_ == nullptr) {
      first_ = entry;
    } else {
      last_->*kNext = entry;
    }
    last_ = entry;
  }

  // Null if it is empty.
  Entry* Pop() {
    Entry* entry = first_;
    if (entry == nullptr) return nullptr;
    Entry* next = std::exchange(entry->*kNext, nullptr);
    first_ = next == entry ? nullptr : next;
    return entry;
  }

 private:
  Entry* first_ = nullptr;
  Entry* last_ = nullptr;  // Meaningless while it is empty.
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_ENTRY_QUEUE_H_
