// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_bank_linux.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::internal {

int64_t UringBank::CopyTo(Operation* op, UringBuffers* buffers) {
  if (error_ != 0) return std::exchange(error_, 0);
  const Buffer* pieces = &op->buffer;
  size_t count = 1;
  if (op->opcode == OpCode::kRecvMsg) {
    pieces = op->buffers.data;
    count = op->buffers.count;
    if (op->address != nullptr) op->address->length = 0;
    op->control_size = 0;
  }
  uint32_t at = begin_;
  for (size_t i = 0; i < count; ++i) {
    const size_t size = std::min<size_t>(pieces[i].size, end_ - at);
    std::memcpy(pieces[i].data, block_ + at, size);
    at += static_cast<uint32_t>(size);
  }
  const int64_t taken = at - begin_;
  if (op->opcode != OpCode::kRead && (op->flags & MSG_PEEK) != 0) return taken;
  begin_ = at;
  if (begin_ == end_) Free(buffers);
  return taken;
}

void UringBank::Free(UringBuffers* buffers) {
  if (block_ != nullptr) buffers->Drop(std::exchange(block_, nullptr));
  error_ = 0;
}

}  // namespace weft::internal
