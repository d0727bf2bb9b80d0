// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_REQUEST_LINUX_H_
#define WEFT_POLLER_URING_REQUEST_LINUX_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>

#include "weft/poller/operation.h"
#include "weft/poller/uring_abi_linux.h"

namespace weft::internal {

// What operations are in the kernel's words.

// What else is to be said of one.
struct UringRequest {
  msghdr* header = nullptr;  // kSendMsg, kRecvMsg: stays there until it has ended.
  uint32_t lent_size = 0;    // kRecvLent: of a buffer.
  bool polls_first = false;  // A receive: there is nothing yet.
};

// Fills in an entry that is all zero with what `op` asks for, but for its user data.
// Not for kAccept and kRetire.
void FillIn(const Operation& op, const UringRequest& request, uring::Sqe* sqe);

// The wait until it can be tried once more.
void FillInPoll(const Operation& op, uring::Sqe* sqe);

// Whether it has a `header`.
inline bool IsMessage(const Operation& op) {
  return op.opcode == OpCode::kSendMsg || op.opcode == OpCode::kRecvMsg;
}

inline bool IsSend(const Operation& op) {
  return op.opcode == OpCode::kSend || op.opcode == OpCode::kSendMsg;
}

// Whether the kernel may have a thread of its own do it.
inline bool IsForWorkers(const Operation& op) {
  return op.opcode == OpCode::kFsync ||
         ((op.opcode == OpCode::kRead || op.opcode == OpCode::kWrite) && op.offset >= 0);
}

// How many bytes a send is to send.
size_t SizeOfSend(const Operation& op);

// What was received, but for the bytes, is where the operation wants it.
void TakeReceived(const msghdr& header, Operation* op);

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_REQUEST_LINUX_H_
