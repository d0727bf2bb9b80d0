// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_READ_BUFFER_H_
#define WEFT_NET_READ_BUFFER_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "weft/poller/slab_pool.h"

namespace weft::internal {

// What has been received and not been read: always one piece. A short message is
// copied out of the slab into which it was received, to a small block from the
// thread's free list: so however many connections have one to be read, they share a
// slab that is hot in the cache. What is longer stays in its slab, and what is longer
// than that lies on the heap. An empty buffer holds no memory.
//
//   base_  begin_      end_            capacity_end_
//   | read | unread    | free          |
//
// Threads: that of its slabs.
class ReadBuffer {
 public:
  ReadBuffer() = default;
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;
  ~ReadBuffer() { Clear(); }

  // Valid until the next call that is not const.
  std::string_view unread() const { return std::string_view(begin_, size()); }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }
  bool empty() const { return begin_ == end_; }

  // Appends the first `count` bytes of `slab`. Allocates only if more is unread
  // than fits into one slab.
  void Append(Slab slab, size_t count);

  // Drops the first `count` bytes. REQUIRES: there are so many.
  void Consume(size_t count) {
    begin_ += count;
    if (begin_ == end_) Clear();
  }

  void Clear();

 private:
  static constexpr size_t kSmallBlock = 1024;

  // Makes `memory`, of which the first `count` bytes are unread, what is held.
  void Use(char* memory, size_t capacity, size_t count);
  void MakeRoom(size_t count);
  void FreeSmall();

  char* base_ = nullptr;  // In one of those below; null: none.
  char* begin_ = nullptr;
  char* end_ = nullptr;
  char* capacity_end_ = nullptr;
  char* small_ = nullptr;
  Slab slab_;
  std::unique_ptr<char[]> long_;
};

}  // namespace weft::internal

#endif  // WEFT_NET_READ_BUFFER_H_
