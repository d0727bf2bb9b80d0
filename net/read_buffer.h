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
// than that lies on the heap. An empty buffer holds no memory, and is a pointer.
//
//   base    begin      end             capacity_end
//   | read  | unread   | free          |
//
// Threads: that of its slabs.
class ReadBuffer {
 public:
  ReadBuffer() = default;
  ReadBuffer(const ReadBuffer&) = delete;
  ReadBuffer& operator=(const ReadBuffer&) = delete;
  ~ReadBuffer() { Clear(); }

  // Valid until the next call that is not const.
  std::string_view unread() const {
    return held_ == nullptr ? std::string_view() : std::string_view(held_->begin, held_->size());
  }
  size_t size() const { return held_ == nullptr ? 0 : held_->size(); }
  bool empty() const { return held_ == nullptr; }

  // Appends the first `count` bytes of `slab`. Allocates on the heap only if more is
  // unread than fits into one slab.
  // Errors: std::bad_alloc; then nothing has been appended.
  void Append(Slab slab, size_t count);

  // Drops the first `count` bytes. REQUIRES: there are so many.
  void Consume(size_t count) {
    if (count == 0) return;
    held_->begin += count;
    if (held_->begin == held_->end) Clear();
  }

  void Clear() {
    if (held_ != nullptr) FreeHeld();
  }

 private:
  // Where the bytes are. It is the head of a block, which is as long as it if there was
  // never a short message in it.
  struct Held {
    explicit Held(size_t size) : block_size(size) {}

    size_t size() const { return static_cast<size_t>(end - begin); }
    size_t capacity() const { return static_cast<size_t>(capacity_end - base); }
    char* short_message() { return reinterpret_cast<char*>(this + 1); }
    // Makes `memory`, of which the first `count` bytes are unread, what is held.
    void Use(char* memory, size_t capacity, size_t count) {
      base = begin = memory;
      end = memory + count;
      capacity_end = memory + capacity;
    }

    char* base = nullptr;  // Behind this, or in one of the next two.
    char* begin = nullptr;
    char* end = nullptr;
    char* capacity_end = nullptr;
    Slab slab;
    std::unique_ptr<char[]> heap;
    const size_t block_size;
  };

  static constexpr size_t kSmallBlock = 1024;
  static constexpr size_t kShortMessage = kSmallBlock - sizeof(Held);

  void NewHeld(size_t block_size);
  void FreeHeld();
  void MakeRoom(size_t count);

  Held* held_ = nullptr;  // Null: nothing is unread.
};

}  // namespace weft::internal

#endif  // WEFT_NET_READ_BUFFER_H_
