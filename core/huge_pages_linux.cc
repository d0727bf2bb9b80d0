// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// madvise(2). Where /sys/kernel/mm/transparent_hugepage/enabled says "never", and where the
// kernel has none, it fails, and nothing is lost.

#include <sys/mman.h>

#include "weft/core/huge_pages.h"

namespace weft::internal {

void PreferHugePages(void* memory, size_t size) { ::madvise(memory, size, MADV_HUGEPAGE); }

}  // namespace weft::internal
