// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_PERFORM_POSIX_H_
#define WEFT_POLLER_PERFORM_POSIX_H_

#include <cstddef>
#include <cstdint>

#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"
#include "weft/poller/would_block.h"

namespace weft::internal {

// The system calls behind operations, for backends that try first: in one place,
// so that a test can put something between them and the kernel. All return >= 0
// or a negated errno, or `kWouldBlock`; none is interrupted by a signal.

// Tries `op` once. Not for the wait operations, `kRecvLent` and `kRetire`.
int64_t Perform(Operation* op);

// The outcome of a connect that did not end at once, after the socket was
// reported writable; `kWouldBlock` if it still has none.
int64_t FinishConnect(NativeHandle socket);

// Receives into plain memory.
int64_t Receive(NativeHandle socket, void* data, size_t size, int flags);

// The same from whatever can be read. A named pipe is not at its end before anybody
// has opened it to write.
int64_t Read(NativeHandle handle, void* data, size_t size);

// A named pipe that nobody has opened to write yet: it reads as if it were at its end.
bool HasNoWriterYet(NativeHandle handle);

// 1 if `handle` is readable (writable) now, which an end or an error counts as; 0
// if it is not; -EBADF if it is not open.
int IsReady(NativeHandle handle, bool to_write);

// True if `handle` is a TCP socket and nothing else: after a read that returned
// less than was asked for, it is empty.
bool IsTcp(NativeHandle handle);

int Close(NativeHandle handle);

}  // namespace weft::internal

#endif  // WEFT_POLLER_PERFORM_POSIX_H_
