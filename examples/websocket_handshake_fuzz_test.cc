// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Whatever is taken for the head of a request can be written and read again, and the answer
// to it is one, with nothing in it that the client could have put there.
//
//   text

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/examples/websocket_handshake.h"
#include "weft/testing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::FuzzCheck;
  const std::string_view text = weft::FuzzInput(data, size).Rest();
  const absl::StatusOr<weft::HttpHead> head = weft::ParseHttpHead(text);
  if (!head.ok()) {
    FuzzCheck(!head.status().message().empty(), "it is not said what is wrong");
    return 0;
  }
  std::string written =
      absl::StrCat(head->method, " ", head->target, " HTTP/1.", head->minor_version, "\r\n");
  for (const auto& [name, value] : head->headers) {
    absl::StrAppend(&written, name, ":", value, "\r\n");
  }
  const absl::StatusOr<weft::HttpHead> again = weft::ParseHttpHead(absl::StrCat(written, "\r\n"));
  FuzzCheck(again.ok() && again->method == head->method && again->target == head->target &&
                again->headers == head->headers,
            "it is not the same");

  const weft::WebSocketHandshake handshake = weft::AnswerHandshake(*head);
  const weft::WebSocketHandshake same = weft::AnswerHandshake(*again);
  FuzzCheck(handshake.answer == same.answer, "the answer is not the same");
  FuzzCheck(
      absl::StartsWith(handshake.answer, handshake.is_accepted ? "HTTP/1.1 101 " : "HTTP/1.1 4"),
      "the answer is none");
  if (handshake.is_accepted) {
    FuzzCheck(absl::EndsWith(handshake.answer, "\r\n\r\n") && handshake.answer.size() == 129,
              "there is more in the answer");
  }
  return 0;
}
