// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/read_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/core/block_pool.h"

namespace weft::internal {

void ReadBuffer::Append(Slab slab, size_t count) {
  if (count == 0) return;
  if (empty()) {
    if (count <= kSmallBlock) {
      small_ = static_cast<char*>(AllocateBlock(kSmallBlock));
      std::memcpy(small_, slab.data(), count);
      Use(small_, kSmallBlock, count);
    } else {
      slab_ = std::move(slab);
      Use(slab_.data(), slab_.size(), count);
    }
    return;
  }
  const size_t unread = size();
  if (small_ != nullptr && unread + count > kSmallBlock && unread + count <= slab.size()) {
    // Both fit into the new slab.
    std::memmove(slab.data() + unread, slab.data(), count);
    std::memcpy(slab.data(), begin_, unread);
    FreeSmall();
    slab_ = std::move(slab);
    Use(slab_.data(), slab_.size(), unread + count);
    return;
  }
  MakeRoom(count);
  std::memcpy(end_, slab.data(), count);
  end_ += count;
}

void ReadBuffer::Clear() {
  FreeSmall();
  slab_.Reset();
  long_.reset();
  Use(nullptr, 0, 0);
}

void ReadBuffer::Use(char* memory, size_t capacity, size_t count) {
  base_ = begin_ = memory;
  end_ = memory + count;
  capacity_end_ = memory + capacity;
}

void ReadBuffer::FreeSmall() {
  if (small_ != nullptr) FreeBlock(std::exchange(small_, nullptr), kSmallBlock);
}

void ReadBuffer::MakeRoom(size_t count) {
  if (static_cast<size_t>(capacity_end_ - end_) >= count) return;
  const size_t unread = size();
  const size_t capacity = static_cast<size_t>(capacity_end_ - base_);
  // Moving pays only if it makes more room than it costs; so appending stays
  // linear on the whole.
  if (capacity - unread >= count && unread <= capacity / 2) {
    std::memmove(base_, begin_, unread);
    Use(base_, capacity, unread);
    return;
  }
  const size_t wanted = std::max(2 * capacity, unread + count);
  std::unique_ptr<char[]> bigger(new char[wanted]);
  std::memcpy(bigger.get(), begin_, unread);
  long_ = std::move(bigger);
  FreeSmall();
  slab_.Reset();
  Use(long_.get(), wanted, unread);
}

}  // namespace weft::internal
