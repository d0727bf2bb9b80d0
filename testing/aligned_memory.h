// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ALIGNED_MEMORY_H_
#define WEFT_TESTING_ALIGNED_MEMORY_H_

#include <cstddef>

namespace weft::internal {

// Memory of the C library; null if there is none. What comes from the first goes to the
// second.
void* AllocateAligned(size_t size, size_t alignment);
void FreeAligned(void* memory);

}  // namespace weft::internal

#endif  // WEFT_TESTING_ALIGNED_MEMORY_H_
