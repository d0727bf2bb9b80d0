// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_WEBSOCKET_H_
#define WEFT_EXAMPLES_WEBSOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/examples/utf8.h"

// The frames of WebSocket (RFC 6455, section 5), without extensions.

namespace weft {

enum class WebSocketOpcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// Why a connection is closed (section 7.4.1, and the registry of IANA).
enum WebSocketCloseCode : uint16_t {
  kNormalClosure = 1000,
  kGoingAway = 1001,
  kProtocolError = 1002,
  kNoStatus = 1005,  // What a close frame without a code means; never sent.
  kInvalidPayload = 1007,
  kPolicyViolation = 1008,
  kMessageTooBig = 1009,
};

// WebSocketDecoder
//
// Makes messages of the frames that a peer sends: unmasks them, puts fragments together,
// and refuses what the RFC forbids. Control frames may come in the midst of a message, and are
// messages too.
//
//   while (decoder.Decode(&unread) == WebSocketDecoder::Result::kMessage) {
//     Handle(decoder.opcode(), decoder.payload());
//   }
//
// Decode() takes from the front of its input what it has understood, so that the next
// begins where this one ended. It keeps only what has come, not what was announced. After
// kError the connection is to be closed with error_code(), and nothing that follows can
// be read.
class WebSocketDecoder {
 public:
  enum class Result { kMessage, kIncomplete, kError };

  // Who reads: a server reads masked frames, a client others.
  enum class Role { kServer, kClient };

  explicit WebSocketDecoder(Role role, size_t max_message = 1024 * 1024)
      : role_(role), max_message_(max_message) {}

  Result Decode(std::string_view* input);

  // After kMessage, until the next call. Text is valid UTF-8; the payload of a close is
  // its reason.
  WebSocketOpcode opcode() const { return opcode_; }
  std::string_view payload() const { return payload_; }
  uint16_t close_code() const { return close_code_; }  // Of kClose.

  // After kError.
  uint16_t error_code() const { return error_code_; }
  std::string_view error() const { return error_; }

 private:
  Result Fail(uint16_t code, std::string_view error);
  size_t HeaderSize() const;
  bool BeginFrame();
  bool EndClose();
  bool IsControl() const { return frame_opcode_ >= WebSocketOpcode::kClose; }

  const Role role_;
  const size_t max_message_;

  // The frame at hand.
  std::array<uint8_t, 14> header_{};
  size_t header_size_ = 0;
  bool is_in_payload_ = false;
  WebSocketOpcode frame_opcode_{};
  bool is_last_ = false;
  uint64_t left_ = 0;              // Of its payload.
  std::array<uint8_t, 4> mask_{};  // Zeros: none.
  size_t masked_ = 0;              // How much of it has been unmasked.
  std::string control_;            // Its payload, if it is a control frame.

  // The message of which it may be a part.
  bool is_in_message_ = false;
  WebSocketOpcode message_opcode_{};
  std::string message_;
  Utf8Checker utf8_;

  // What the last call has found.
  WebSocketOpcode opcode_{};
  std::string_view payload_;
  uint16_t close_code_ = 0;
  uint16_t error_code_ = 0;
  std::string_view error_;
};

// Appends a frame as a server sends it. `is_last`: of its message; the other fragments of
// that are kContinuation.
void AppendFrame(std::string* out, WebSocketOpcode opcode, std::string_view payload,
                 bool is_last = true);
// The same as a client sends it.
void AppendMaskedFrame(std::string* out, WebSocketOpcode opcode, std::string_view payload,
                       std::array<uint8_t, 4> mask, bool is_last = true);
// What a close frame holds. `reason`: at most 123 bytes of UTF-8.
std::string ClosePayload(uint16_t code, std::string_view reason);

}  // namespace weft

#endif  // WEFT_EXAMPLES_WEBSOCKET_H_
