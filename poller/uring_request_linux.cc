// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_request_linux.h"

#include <poll.h>
#include <sys/uio.h>

#include "weft/poller/direction.h"

namespace weft::internal {

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

void FillInPoll(const Operation& op, uring::Sqe* sqe) {
  sqe->opcode = uring::kOpPollAdd;
  sqe->fd = static_cast<int>(op.handle);
  sqe->op_flags = DirectionOf(op.opcode) == kWrite ? POLLOUT : POLLIN;
}

void TakeReceived(const msghdr& header, Operation* op) {
  if (op->address != nullptr) op->address->length = header.msg_namelen;
  op->control_size = static_cast<uint32_t>(header.msg_controllen);
  op->message_flags = header.msg_flags;
}

}  // namespace weft::internal
