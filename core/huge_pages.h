// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_HUGE_PAGES_H_
#define WEFT_CORE_HUGE_PAGES_H_

#include <cstddef>

namespace weft::internal {

// What a huge page is, where there are any.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Asks the system to back fresh memory by huge pages: what is used in random order then
// misses the TLB no more, which is dear on a virtual machine above all. The system may not
// care. REQUIRES: aligned to kHugePage, as is the size.
void PreferHugePages(void* memory, size_t size);

}  // namespace weft::internal

#endif  // WEFT_CORE_HUGE_PAGES_H_
