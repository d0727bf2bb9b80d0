// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_REQUEST_LINUX_H_
#define WEFT_POLLER_URING_REQUEST_LINUX_H_

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "weft/poller/operation.h"
#include "weft/poller/uring_abi_linux.h"
#include "weft/poller/uring_buffers_linux.h"

namespace weft::internal {

// What operations are in the kernel's words.

// What else is to be said of one.
struct UringRequest {
  msghdr* header = nullptr;  // kSendMsg, kRecvMsg: stays there until it has ended.
  uint32_t lent_size = 0;    // kRecvLent: of a buffer.
  bool polls_first = false;  // A receive: there is nothing yet.
};

// Fills in an entry that is all zero with what `op` asks for, but for its user data.
// Not for kAccept, kRetire and the waits.
inline void FillIn(const Operation& op, const UringRequest& request, uring::Sqe* sqe);

// What the kernel reads of a message, and writes of one that is received.
void FillInHeader(const Operation& op, msghdr* header);

// The wait until it is readable, or writable, by the direction of `op`.
void FillInPoll(const Operation& op, uring::Sqe* sqe);

inline bool IsSend(const Operation& op) {
  return op.opcode == OpCode::kSend || op.opcode == OpCode::kSendMsg;
}

// Whether the kernel may have a thread of its own do it.
inline bool IsForWorkers(const Operation& op) {
  return op.opcode == OpCode::kFsync ||
         ((op.opcode == OpCode::kRead || op.opcode == OpCode::kWrite) && op.offset >= 0);
}

// What is told to the kernel: its sizes have 32 bits.
inline uint32_t ClampSize(size_t size) {
  return static_cast<uint32_t>(std::min<size_t>(size, 1u << 30));
}

// How many bytes a send is to send.
inline size_t SizeOfSend(const Operation& op) {
  if (op.opcode == OpCode::kSend) return ClampSize(op.buffer.size);
  size_t size = 0;
  for (size_t i = 0; i < op.buffers.count; ++i) size += op.buffers.data[i].size;
  return size;
}

// What was received, but for the bytes, is where the operation wants it.
void TakeReceived(const msghdr& header, Operation* op);

inline uint64_t AddressOf(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// In the header, as it is on the way of each request and has one caller.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void FillIn(const Operation& op, const UringRequest& request,
                                                uring::Sqe* sqe) {
  sqe->fd = static_cast<int>(op.handle);
  switch (op.opcode) {
    case OpCode::kRecvLent:
      sqe->flags = uring::kSqeBufferSelect;
      sqe->buf_group = UringBuffers::kGroup;
      sqe->len = request.lent_size;
      if ((op.flags & kAnyFile) != 0) {
        sqe->opcode = uring::kOpRead;
        sqe->off = static_cast<uint64_t>(-1);
      } else {
        sqe->opcode = uring::kOpRecv;
        if (request.polls_first) sqe->ioprio = uring::kRecvSendPollFirst;
      }
      return;
    case OpCode::kRecv:
      sqe->opcode = uring::kOpRecv;
      sqe->addr = AddressOf(op.buffer.data);
      sqe->len = ClampSize(op.buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op.flags & ~MSG_WAITALL);
      if (request.polls_first && op.flags == 0) sqe->ioprio = uring::kRecvSendPollFirst;
      return;
    case OpCode::kSend:
      sqe->opcode = uring::kOpSend;
      sqe->addr = AddressOf(op.buffer.data);
      sqe->len = ClampSize(op.buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op.flags | MSG_NOSIGNAL);
      return;
    case OpCode::kSendMsg:
    case OpCode::kRecvMsg:
      FillInHeader(op, request.header);
      sqe->addr = AddressOf(request.header);
      sqe->len = 1;
      if (op.opcode == OpCode::kSendMsg) {
        sqe->opcode = uring::kOpSendMsg;
        sqe->op_flags = static_cast<uint32_t>(op.flags | MSG_NOSIGNAL);
      } else {
        sqe->opcode = uring::kOpRecvMsg;
        sqe->op_flags = static_cast<uint32_t>((op.flags & ~MSG_WAITALL) | MSG_CMSG_CLOEXEC);
      }
      return;
    case OpCode::kConnect:
      sqe->opcode = uring::kOpConnect;
      sqe->addr = AddressOf(op.address->bytes);
      sqe->off = op.address->length;
      return;
    case OpCode::kRead:
    case OpCode::kWrite:
      sqe->opcode = op.opcode == OpCode::kRead ? uring::kOpRead : uring::kOpWrite;
      sqe->addr = AddressOf(op.buffer.data);
      sqe->len = ClampSize(op.buffer.size);
      sqe->off = static_cast<uint64_t>(op.offset);
      if (op.opcode == OpCode::kWrite && op.offset < 0) sqe->op_flags = uring::kRwfNoSignal;
      return;
    case OpCode::kFsync:
      sqe->opcode = uring::kOpFsync;
      if ((op.flags & kDataOnly) != 0) sqe->op_flags = uring::kFsyncDataSync;
      return;
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
    case OpCode::kAccept:
    case OpCode::kRetire:
      return;
  }
}

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_REQUEST_LINUX_H_
