// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/websocket.h"

#include <algorithm>

namespace weft {
namespace {

constexpr uint8_t kLast = 0x80, kReserved = 0x70, kOpcode = 0x0F;  // Of the first byte.
constexpr uint8_t kMasked = 0x80, kLength = 0x7F;                  // Of the second.
constexpr uint8_t kLengthIn16 = 126, kLengthIn64 = 127;
constexpr size_t kLongestControl = 125;

// A number, the most significant byte first.
uint64_t ReadNumber(const uint8_t* bytes, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) number = number << 8 | bytes[i];
  return number;
}

void AppendNumber(std::string* out, uint64_t number, size_t size) {
  for (size_t i = size; i-- > 0;) out->push_back(static_cast<char>(number >> (8 * i)));
}

// Which codes a close frame may hold.
bool IsCloseCode(uint64_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

void AppendHeader(std::string* out, WebSocketOpcode opcode, size_t size, bool is_masked,
                  bool is_last) {
  const uint8_t masked = is_masked ? kMasked : 0;
  out->push_back(static_cast<char>((is_last ? kLast : 0) | static_cast<uint8_t>(opcode)));
  if (size < kLengthIn16) {
    out->push_back(static_cast<char>(masked | size));
  } else if (size <= 0xFFFF) {
    out->push_back(static_cast<char>(masked | kLengthIn16));
    AppendNumber(out, size, 2);
  } else {
    out->push_back(static_cast<char>(masked | kLengthIn64));
    AppendNumber(out, size, 8);
  }
}

}  // namespace

WebSocketDecoder::Result WebSocketDecoder::Fail(uint16_t code, std::string_view error) {
  error_code_ = code;
  error_ = error;
  return Result::kError;
}

// As far as it is known: the second byte says how long it is.
size_t WebSocketDecoder::HeaderSize() const {
  if (header_size_ < 2) return 2;
  const uint8_t length = header_[1] & kLength;
  const size_t extended = length == kLengthIn16 ? 2 : length == kLengthIn64 ? 8 : 0;
  return 2 + extended + ((header_[1] & kMasked) != 0 ? 4 : 0);
}

// The header is there. False, if it is not one that may be.
bool WebSocketDecoder::BeginFrame() {
  const uint8_t opcode = header_[0] & kOpcode;
  const bool is_masked = (header_[1] & kMasked) != 0;
  const uint8_t* next = &header_[2];
  is_last_ = (header_[0] & kLast) != 0;
  left_ = header_[1] & kLength;
  if (left_ >= kLengthIn16) {
    const size_t size = left_ == kLengthIn16 ? 2 : 8;
    left_ = ReadNumber(next, size);
    next += size;
    if (left_ < kLengthIn16 || (size == 8 && left_ <= 0xFFFF) || left_ >> 63 != 0) {
      Fail(kProtocolError, "a length that is not in its shortest form");
      return false;
    }
  }
  mask_ = {};
  masked_ = 0;
  if (is_masked) std::copy_n(next, mask_.size(), mask_.begin());

  frame_opcode_ = static_cast<WebSocketOpcode>(opcode);
  if ((header_[0] & kReserved) != 0) {
    Fail(kProtocolError, "a reserved bit is set");
  } else if ((opcode > 2 && opcode < 8) || opcode > 10) {
    Fail(kProtocolError, "a reserved opcode");
  } else if (is_masked != (role_ == Role::kServer)) {
    Fail(kProtocolError, is_masked ? "a server masks nothing" : "a client masks everything");
  } else if (IsControl() && !is_last_) {
    Fail(kProtocolError, "a control frame in fragments");
  } else if (IsControl() && left_ > kLongestControl) {
    Fail(kProtocolError, "a control frame that is too long");
  } else if (!IsControl() && is_in_message_ != (frame_opcode_ == WebSocketOpcode::kContinuation)) {
    Fail(kProtocolError,
         is_in_message_ ? "a message within a message" : "a continuation of no message");
  } else if (!IsControl() && left_ > max_message_ - message_.size()) {
    Fail(kMessageTooBig, "the message is too big");
  } else {
    if (!IsControl() && !is_in_message_) {
      is_in_message_ = true;
      message_opcode_ = frame_opcode_;
      utf8_ = Utf8Checker();
    }
    control_.clear();
    return true;
  }
  return false;
}

bool WebSocketDecoder::EndClose() {
  close_code_ = kNoStatus;
  if (control_.empty()) return true;
  if (control_.size() < 2) {
    Fail(kProtocolError, "a close code of one byte");
    return false;
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(control_.data());
  close_code_ = static_cast<uint16_t>(ReadNumber(bytes, 2));
  payload_.remove_prefix(2);
  if (!IsCloseCode(close_code_)) {
    Fail(kProtocolError, "a close code that may not be sent");
    return false;
  }
  Utf8Checker reason;
  if (reason.Add(payload_) && reason.is_complete()) return true;
  Fail(kInvalidPayload, "the reason is not UTF-8");
  return false;
}

WebSocketDecoder::Result WebSocketDecoder::Decode(std::string_view* input) {
  if (error_code_ != 0) return Result::kError;
  if (!is_in_message_) std::string().swap(message_);  // Who is silent holds no memory.
  while (true) {
    if (!is_in_payload_) {
      while (header_size_ < HeaderSize()) {
        if (input->empty()) return Result::kIncomplete;
        header_[header_size_++] = static_cast<uint8_t>(input->front());
        input->remove_prefix(1);
      }
      if (!BeginFrame()) return Result::kError;
      header_size_ = 0;
      is_in_payload_ = true;
    }

    std::string& target = IsControl() ? control_ : message_;
    const size_t begin = target.size();
    target.append(input->substr(0, left_));
    const size_t count = target.size() - begin;
    input->remove_prefix(count);
    left_ -= count;
    for (size_t i = begin; i < target.size(); ++i) target[i] ^= mask_[masked_++ % 4];
    const bool is_text = !IsControl() && message_opcode_ == WebSocketOpcode::kText;
    // At once, and not when it has come whole: the peer is told where it is wrong.
    if (is_text && !utf8_.Add(std::string_view(target).substr(begin))) {
      return Fail(kInvalidPayload, "the text is not UTF-8");
    }
    if (left_ > 0) return Result::kIncomplete;
    is_in_payload_ = false;

    if (IsControl()) {
      opcode_ = frame_opcode_;
      payload_ = control_;
      if (opcode_ == WebSocketOpcode::kClose && !EndClose()) return Result::kError;
      return Result::kMessage;
    }
    if (!is_last_) continue;
    if (is_text && !utf8_.is_complete()) return Fail(kInvalidPayload, "the text is not UTF-8");
    is_in_message_ = false;
    opcode_ = message_opcode_;
    payload_ = message_;
    return Result::kMessage;
  }
}

void AppendFrame(std::string* out, WebSocketOpcode opcode, std::string_view payload, bool is_last) {
  AppendHeader(out, opcode, payload.size(), /*is_masked=*/false, is_last);
  out->append(payload);
}

void AppendMaskedFrame(std::string* out, WebSocketOpcode opcode, std::string_view payload,
                       std::array<uint8_t, 4> mask, bool is_last) {
  AppendHeader(out, opcode, payload.size(), /*is_masked=*/true, is_last);
  out->append(mask.begin(), mask.end());
  for (size_t i = 0; i < payload.size(); ++i) {
    out->push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  }
}

std::string ClosePayload(uint16_t code, std::string_view reason) {
  std::string payload;
  AppendNumber(&payload, code, 2);
  payload.append(reason.substr(0, kLongestControl - 2));
  return payload;
}

}  // namespace weft
