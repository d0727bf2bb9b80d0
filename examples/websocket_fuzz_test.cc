// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Messages of WebSocket are the same however their frames are cut into pieces, are within
// their limits, and are read back as they were when they are written again. Text is UTF-8.
//
//   who reads | number of pieces | pieces | frames

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/examples/utf8.h"
#include "weft/examples/websocket.h"
#include "weft/testing/fuzz_input.h"

namespace weft {
namespace {

constexpr size_t kMaxMessage = 1000;

struct Message {
  WebSocketOpcode opcode;
  std::string payload;
  uint16_t close_code;

  bool operator==(const Message&) const = default;
};

struct Decoded {
  std::vector<Message> messages;
  uint16_t error_code = 0;
  std::string error;

  bool operator==(const Decoded&) const = default;
};

void CheckMessage(const Message& message) {
  const bool is_control = message.opcode >= WebSocketOpcode::kClose;
  FuzzCheck(message.opcode != WebSocketOpcode::kContinuation, "a continuation is no message");
  FuzzCheck(message.payload.size() <= (is_control ? 125 : kMaxMessage), "too long");
  if (message.opcode == WebSocketOpcode::kText || message.opcode == WebSocketOpcode::kClose) {
    Utf8Checker utf8;
    FuzzCheck(utf8.Add(message.payload) && utf8.is_complete(), "the text is not UTF-8");
  }
}

Decoded Decode(std::string_view frames, std::string_view pieces, WebSocketDecoder::Role role) {
  WebSocketDecoder decoder(role, kMaxMessage);
  Decoded decoded;
  for (size_t i = 0; i <= pieces.size(); ++i) {
    // A block of its own, so that a sanitizer sees whoever keeps a view of it.
    const std::string piece(
        frames.substr(0, i < pieces.size() ? static_cast<uint8_t>(pieces[i]) : frames.size()));
    frames.remove_prefix(piece.size());
    std::string_view input = piece;
    while (true) {
      const WebSocketDecoder::Result result = decoder.Decode(&input);
      if (result == WebSocketDecoder::Result::kIncomplete) break;
      if (result == WebSocketDecoder::Result::kError) {
        decoded.error_code = decoder.error_code();
        decoded.error = decoder.error();
        return decoded;
      }
      const bool is_close = decoder.opcode() == WebSocketOpcode::kClose;
      const auto close_code = static_cast<uint16_t>(is_close ? decoder.close_code() : 0);
      decoded.messages.push_back({decoder.opcode(), std::string(decoder.payload()), close_code});
      CheckMessage(decoded.messages.back());
    }
    FuzzCheck(input.empty(), "it leaves what it needs");
  }
  return decoded;
}

std::string Write(const std::vector<Message>& messages, WebSocketDecoder::Role role) {
  std::string frames;
  for (const Message& message : messages) {
    std::string payload = message.payload;
    if (message.opcode == WebSocketOpcode::kClose) {
      payload = message.close_code == kNoStatus ? "" : ClosePayload(message.close_code, payload);
    }
    if (role == WebSocketDecoder::Role::kServer) {
      AppendMaskedFrame(&frames, message.opcode, payload, {1, 2, 3, 4});
    } else {
      AppendFrame(&frames, message.opcode, payload);
    }
  }
  return frames;
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Role = weft::WebSocketDecoder::Role;
  weft::FuzzInput input(data, size);
  const Role role = input.Below(2) == 0 ? Role::kServer : Role::kClient;
  const std::string_view pieces = input.Take(input.Below(64));
  const std::string_view frames = input.Rest();
  const weft::Decoded whole = weft::Decode(frames, "", role);
  weft::FuzzCheck(weft::Decode(frames, pieces, role) == whole, "it depends on how it is cut");

  for (const Role other : {Role::kServer, Role::kClient}) {
    const weft::Decoded again = weft::Decode(weft::Write(whole.messages, other), pieces, other);
    weft::FuzzCheck(again.messages == whole.messages && again.error_code == 0,
                    "it is not the same");
  }
  return 0;
}
