// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_request_linux.h"

#include <poll.h>
#include <sys/uio.h>

#include <algorithm>

#include "weft/poller/direction.h"
#include "weft/poller/uring_buffers_linux.h"

namespace weft::internal {

namespace {

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

uint32_t ClampSize(size_t size) { return static_cast<uint32_t>(std::min<size_t>(size, 1u << 30)); }

void FillInHeader(const Operation& op, msghdr* header) {
  *header = {};
  header->msg_iov = reinterpret_cast<iovec*>(const_cast<Buffer*>(op.buffers.data));
  header->msg_iovlen = op.buffers.count;
  if (op.control_size != 0) {
    header->msg_control = op.control;
    header->msg_controllen = op.control_size;
  }
  if (op.address == nullptr) return;
  header->msg_name = op.address->bytes;
  header->msg_namelen =
      op.opcode == OpCode::kRecvMsg ? SockAddr::kCapacity : socklen_t{op.address->length};
}

}  // namespace

void FillIn(const Operation& op, const UringRequest& request, uring::Sqe* sqe) {
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
      sqe->addr = Address(op.buffer.data);
      sqe->len = ClampSize(op.buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op.flags & ~MSG_WAITALL);
      if (request.polls_first && op.flags == 0) sqe->ioprio = uring::kRecvSendPollFirst;
      return;
    case OpCode::kSend:
      sqe->opcode = uring::kOpSend;
      sqe->addr = Address(op.buffer.data);
      sqe->len = ClampSize(op.buffer.size);
      sqe->op_flags = static_cast<uint32_t>(op.flags | MSG_NOSIGNAL);
      return;
    case OpCode::kSendMsg:
    case OpCode::kRecvMsg:
      FillInHeader(op, request.header);
      sqe->addr = Address(request.header);
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
      sqe->addr = Address(op.address->bytes);
      sqe->off = op.address->length;
      return;
    case OpCode::kRead:
    case OpCode::kWrite:
      sqe->opcode = op.opcode == OpCode::kRead ? uring::kOpRead : uring::kOpWrite;
      sqe->addr = Address(op.buffer.data);
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
      return FillInPoll(op, sqe);
    case OpCode::kAccept:
    case OpCode::kRetire:
      return;
  }
}

void FillInPoll(const Operation& op, uring::Sqe* sqe) {
  sqe->opcode = uring::kOpPollAdd;
  sqe->fd = static_cast<int>(op.handle);
  sqe->op_flags = DirectionOf(op.opcode) == kWrite ? POLLOUT : POLLIN;
}

size_t SizeOfSend(const Operation& op) {
  if (op.opcode == OpCode::kSend) return ClampSize(op.buffer.size);
  size_t size = 0;
  for (size_t i = 0; i < op.buffers.count; ++i) size += op.buffers.data[i].size;
  return size;
}

void TakeReceived(const msghdr& header, Operation* op) {
  if (op->address != nullptr) op->address->length = header.msg_namelen;
  op->control_size = static_cast<uint32_t>(header.msg_controllen);
  op->message_flags = header.msg_flags;
}

}  // namespace weft::internal
