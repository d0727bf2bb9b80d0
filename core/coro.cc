// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/coro.h"

#include "weft/core/errors.h"

namespace weft::internal {

void ThrowCoroReused() { throw RuntimeError("cannot reuse already awaited coroutine"); }

}  // namespace weft::internal
