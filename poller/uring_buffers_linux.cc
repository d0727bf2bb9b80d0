// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_buffers_linux.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

namespace weft::internal {

UringBuffers::~UringBuffers() { Unmap(); }

void UringBuffers::Unmap() {
  if (slots_ == nullptr) return;
  for (char*& block : blocks_) {
    if (block != nullptr) Drop(std::exchange(block, nullptr));
  }
  ::munmap(slots_, options_.most * sizeof(uring::BufferSlot));
  slots_ = nullptr;
  is_registered_ = false;
  provided_ = 0;
  tail_ = 0;
}

int UringBuffers::Register(Uring* ring) {
  Unmap();  // An old ring may still look at its own.
  const size_t bytes = options_.most * sizeof(uring::BufferSlot);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return -errno;
  slots_ = static_cast<uring::BufferSlot*>(memory);
  try {
    blocks_.assign(options_.most, nullptr);
    free_ids_.clear();
    for (uint32_t id = options_.most; id-- > 0;) free_ids_.push_back(static_cast<uint16_t>(id));
  } catch (const std::bad_alloc&) {
    Unmap();
    return -ENOMEM;
  }
  uring::BufferRingReg registration = {};
  registration.ring_addr = reinterpret_cast<uint64_t>(memory);
  registration.ring_entries = options_.most;
  registration.group = kGroup;
  const int error = ring->Register(uring::kRegisterBufferRing, &registration, 1);
  if (error != 0) {
    Unmap();
    return error;
  }
  // A child's copy would only cost it memory; and what the kernel writes is ours.
  ::madvise(memory, bytes, MADV_DONTFORK);
  is_registered_ = true;
  return 0;
}

void UringBuffers::TopUp() {
  if (provided_ >= target_) return;
  while (provided_ < target_) {
    char* const block = pool_.Take().Release();
    if (block == nullptr) break;  // No memory; who finds none tries again.
    const uint16_t id = free_ids_.back();
    free_ids_.pop_back();
    blocks_[id] = block;
    uring::BufferSlot* slot = &slots_[tail_ & (options_.most - 1)];
    slot->addr = reinterpret_cast<uint64_t>(block);
    slot->len = options_.size;
    slot->id = id;
    ++tail_;
    ++provided_;
  }
  reinterpret_cast<std::atomic<uint16_t>*>(&slots_[0].tail)
      ->store(tail_, std::memory_order_release);
}

char* UringBuffers::Take(uint16_t id, size_t size) {
  average_size_ = static_cast<uint32_t>((15 * size_t{average_size_} + size) / 16);
  --provided_;
  free_ids_.push_back(id);
  return std::exchange(blocks_[id], nullptr);
}

void UringBuffers::OnStarved() {
  const uint32_t more = std::min(2 * target_, options_.most);
  if (target_ >= 64 && size_t{more} * average_size_ > kCacheShare) return;
  target_ = more;
}

}  // namespace weft::internal
