// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <windows.h>

#include "weft/poller/is_open.h"

namespace weft::internal {

bool IsOpen(NativeHandle handle) {
  // -1 is the process itself, -2 the thread: handles, but no files.
  DWORD flags;
  return handle > 0 && ::GetHandleInformation(reinterpret_cast<HANDLE>(handle), &flags) != 0;
}

}  // namespace weft::internal
