// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SMOKE_SMOKE_H_
#define WEFT_SMOKE_SMOKE_H_

#include "absl/status/statusor.h"

namespace weft {

absl::StatusOr<int> Half(int n);

}  // namespace weft

#endif  // WEFT_SMOKE_SMOKE_H_
