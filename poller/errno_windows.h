// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_ERRNO_WINDOWS_H_
#define WEFT_POLLER_ERRNO_WINDOWS_H_

#include <cstdint>

namespace weft::internal {

// What Windows says went wrong, as the errno (positive) that the rest of weft knows. What
// has no errno of its own is EIO.
//
// Threads: any.

// Of GetLastError(), and of WSAGetLastError(), whose numbers do not overlap.
int ErrnoOfWin32(uint32_t error);

// Of an NTSTATUS, as `OVERLAPPED::Internal` holds it: an error or a warning. 0 for success.
int ErrnoOfStatus(uint32_t status);

// The negated errno of the last call that failed on this thread, or of the last one of
// Winsock.
int64_t LastError();
int64_t LastSocketError();

}  // namespace weft::internal

#endif  // WEFT_POLLER_ERRNO_WINDOWS_H_
