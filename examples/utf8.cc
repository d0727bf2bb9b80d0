// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/utf8.h"

namespace weft {

bool Utf8Checker::Add(std::string_view piece) {
  for (const char c : piece) {
    const auto byte = static_cast<uint8_t>(c);
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) return false;
      --missing_;
      low_ = 0x80;
      high_ = 0xBF;
      continue;
    }
    if (byte < 0x80) continue;
    if (byte < 0xC2 || byte > 0xF4) return false;
    missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    // Of the second byte, what would be overlong, a surrogate, or too large.
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  }
  return true;
}

}  // namespace weft
