// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_PERFORM_WINDOWS_H_
#define WEFT_POLLER_PERFORM_WINDOWS_H_

#include <cstddef>
#include <cstdint>

#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"
#include "weft/poller/would_block.h"

namespace weft::internal {

// The calls of Winsock that do not wait, behind operations. All return >= 0, a negated errno,
// or `kWouldBlock`.

enum class FileKind : uint8_t {
  kUnknown,   // No file, or one that nobody can wait for: a console.
  kStream,    // A socket.
  kMessages,  // A socket of datagrams, or the like.
  kPipe,
  kDisk,
};

FileKind KindOf(NativeHandle handle);

// Tries `op` once: one of kRecv, kSend, kRecvMsg, kSendMsg, and of kRead and kWrite on a
// socket.
int64_t Perform(Operation* op, FileKind kind);

// Receives from a socket, or reads what a pipe has.
int64_t Receive(NativeHandle handle, FileKind kind, void* data, size_t size);

// What Winsock has said of a socket of that kind (negated), as the other systems say it.
int64_t SocketError(NativeHandle handle, FileKind kind, int64_t error);

// The same of the last call on this thread.
int64_t LastErrorOf(NativeHandle handle, FileKind kind);

// A socket is not closed as other handles are.
int Close(NativeHandle handle, FileKind kind);

}  // namespace weft::internal

#endif  // WEFT_POLLER_PERFORM_WINDOWS_H_
