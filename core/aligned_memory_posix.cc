// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>
#include <new>

#include "weft/core/aligned_memory.h"

namespace weft::internal {

void* AllocateAligned(size_t size, size_t alignment) {
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size) != 0) throw std::bad_alloc();
  return memory;
}

void FreeAligned(void* memory) noexcept { std::free(memory); }

}  // namespace weft::internal
