// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_DIRECTION_H_
#define WEFT_POLLER_DIRECTION_H_

#include <cstdint>

#include "weft/poller/operation.h"

namespace weft::internal {

// Of operations on one handle, those of one direction end in the order of their start.
enum Direction : uint8_t { kRead = 0, kWrite = 1 };

inline Direction DirectionOf(OpCode opcode) {
  switch (opcode) {
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kConnect:
    case OpCode::kWrite:
    case OpCode::kFsync:
    case OpCode::kWaitWritable:
      return kWrite;
    default:
      return kRead;
  }
}

// Whether it takes nothing, so that it may be ahead of others.
inline bool IsWait(const Operation* op) {
  return op->opcode == OpCode::kWaitReadable || op->opcode == OpCode::kWaitWritable;
}

}  // namespace weft::internal

#endif  // WEFT_POLLER_DIRECTION_H_
