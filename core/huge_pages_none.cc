// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/huge_pages.h"

namespace weft::internal {

void PreferHugePages(void*, size_t) {}

}  // namespace weft::internal
