// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_HEADERS_WINDOWS_H_
#define WEFT_NET_HEADERS_WINDOWS_H_

// Windows' own headers in the order that they need, and without those of their macros
// that are names of ours. For sources alone: no header of ours includes this.

// clang-format off
#include <winsock2.h>
#include <ws2tcpip.h>
#include <windows.h>
#include <iphlpapi.h>
#include <shellapi.h>
#include <winternl.h>
// clang-format on

#undef Yield
#undef interface

#endif  // WEFT_NET_HEADERS_WINDOWS_H_
