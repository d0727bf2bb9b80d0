// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/read_buffer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/core/block_pool.h"

namespace weft::internal {

void ReadBuffer::Append(Slab slab, size_t count) {
  if (count == 0) return;
  if (empty()) {
    if (count <= kShortMessage) {
      NewHeld(kSmallBlock);
      std::memcpy(held_->short_message(), slab.data(), count);
      held_->Use(held_->short_message(), kShortMessage, count);
    } else {
      NewHeld(sizeof(Held));
      held_->slab = std::move(slab);
      held_->Use(held_->slab.data(), held_->slab.size(), count);
    }
    return;
  }
  const size_t unread = size();
  const bool is_short = held_->block_size == kSmallBlock && held_->base == held_->short_message();
  if (is_short && unread + count > kShortMessage && unread + count <= slab.size()) {
    // Both fit into the new slab.
    std::memmove(slab.data() + unread, slab.data(), count);
    std::memcpy(slab.data(), held_->begin, unread);
    held_->slab = std::move(slab);
    held_->Use(held_->slab.data(), held_->slab.size(), unread + count);
    return;
  }
  MakeRoom(count);
  std::memcpy(held_->end, slab.data(), count);
  held_->end += count;
}

void ReadBuffer::NewHeld(size_t block_size) {
  held_ = new (AllocateBlock(block_size)) Held(block_size);
}

void ReadBuffer::FreeHeld() {
  Held* const held = std::exchange(held_, nullptr);
  const size_t block_size = held->block_size;
  held->~Held();
  FreeBlock(held, block_size);
}

void ReadBuffer::MakeRoom(size_t count) {
  Held& held = *held_;
  if (static_cast<size_t>(held.capacity_end - held.end) >= count) return;
  const size_t unread = held.size();
  const size_t capacity = held.capacity();
  // Moving pays only if it makes more room than it costs; so appending stays
  // linear on the whole.
  if (capacity - unread >= count && unread <= capacity / 2) {
    std::memmove(held.base, held.begin, unread);
    held.Use(held.base, capacity, unread);
    return;
  }
  const size_t wanted = std::max(2 * capacity, unread + count);
  std::unique_ptr<char[]> bigger(new char[wanted]);
  std::memcpy(bigger.get(), held.begin, unread);
  held.heap = std::move(bigger);
  held.slab.Reset();
  held.Use(held.heap.get(), wanted, unread);
}

}  // namespace weft::internal
