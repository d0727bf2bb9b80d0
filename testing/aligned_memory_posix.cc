// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cstdlib>

#include "weft/testing/aligned_memory.h"

namespace weft::internal {

void* AllocateAligned(size_t size, size_t alignment) {
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void FreeAligned(void* memory) { std::free(memory); }

}  // namespace weft::internal
