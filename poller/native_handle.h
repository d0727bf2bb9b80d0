// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_NATIVE_HANDLE_H_
#define WEFT_POLLER_NATIVE_HANDLE_H_

#include <cstdint>

namespace weft {

// What the operating system calls an open file or socket: a descriptor on
// POSIX, a HANDLE or a SOCKET on Windows. One integer that holds each of them,
// so that no shared code needs to know which it is.
//
// A descriptor goes in and out by `static_cast<int>(handle)`.
using NativeHandle = intptr_t;

inline constexpr NativeHandle kInvalidHandle = -1;

}  // namespace weft

#endif  // WEFT_POLLER_NATIVE_HANDLE_H_
