// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_IS_OPEN_H_
#define WEFT_POLLER_IS_OPEN_H_

#include "weft/poller/native_handle.h"

namespace weft::internal {

// Whether the number stands for anything open. Any number may be asked for.
bool IsOpen(NativeHandle handle);

}  // namespace weft::internal

#endif  // WEFT_POLLER_IS_OPEN_H_
