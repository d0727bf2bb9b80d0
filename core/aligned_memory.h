// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_ALIGNED_MEMORY_H_
#define WEFT_CORE_ALIGNED_MEMORY_H_

#include <cstddef>

namespace weft::internal {

// Memory of just `size` bytes whose address is a multiple of `alignment`, a power of two. (An
// aligned `operator new` may round the size up to the alignment, as libstdc++'s does. Behind
// each piece the heap has a few bytes of its own, so of pieces as large as their alignment
// every second then is a hole.)
//
// Threads: any. Errors: std::bad_alloc.
void* AllocateAligned(size_t size, size_t alignment);
void FreeAligned(void* memory) noexcept;

}  // namespace weft::internal

#endif  // WEFT_CORE_ALIGNED_MEMORY_H_
