// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <malloc.h>

#include "weft/testing/aligned_memory.h"

namespace weft::internal {

void* AllocateAligned(size_t size, size_t alignment) { return ::_aligned_malloc(size, alignment); }

void FreeAligned(void* memory) { ::_aligned_free(memory); }

}  // namespace weft::internal
