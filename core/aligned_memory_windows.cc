// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <malloc.h>

#include <new>

#include "weft/core/aligned_memory.h"

namespace weft::internal {

void* AllocateAligned(size_t size, size_t alignment) {
  void* const memory = ::_aligned_malloc(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void FreeAligned(void* memory) noexcept { ::_aligned_free(memory); }

}  // namespace weft::internal
