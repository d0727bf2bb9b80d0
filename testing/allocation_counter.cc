// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The replaced operators. The ones that throw not, and those for arrays, come
// down to these two by the standard's defaults.

#include "weft/testing/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "weft/testing/aligned_memory.h"

namespace {

constinit std::atomic<int64_t> allocations{0};

void* Count(void* memory) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace weft {

int64_t AllocationsSoFar() { return allocations.load(std::memory_order_relaxed); }

}  // namespace weft

void* operator new(size_t size) { return Count(std::malloc(size)); }

void* operator new(size_t size, std::align_val_t alignment) {
  return Count(weft::internal::AllocateAligned(size, static_cast<size_t>(alignment)));
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  weft::internal::FreeAligned(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  weft::internal::FreeAligned(memory);
}
