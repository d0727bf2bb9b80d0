// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include "weft/poller/is_open.h"

namespace weft::internal {

bool IsOpen(NativeHandle handle) { return ::fcntl(static_cast<int>(handle), F_GETFD) >= 0; }

}  // namespace weft::internal
