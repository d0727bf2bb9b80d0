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
  constexpr auto kBit = [](OpCode of) { return 1u << static_cast<unsigned>(of); };
  constexpr unsigned kWrites = kBit(OpCode::kSend) | kBit(OpCode::kSendMsg) |
                               kBit(OpCode::kConnect) | kBit(OpCode::kWrite) |
                               kBit(OpCode::kFsync) | kBit(OpCode::kWaitWritable);
  return static_cast<Direction>((kWrites >> static_cast<unsigned>(opcode)) & 1);
}

// Whether it takes nothing, so that it may be ahead of others.
inline bool IsWait(const Operation* op) {
  return op->opcode == OpCode::kWaitReadable || op->opcode == OpCode::kWaitWritable;
}

}  // namespace weft::internal

#endif  // WEFT_POLLER_DIRECTION_H_
