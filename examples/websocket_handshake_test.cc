// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/websocket_handshake.h"

#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The request of RFC 6455, section 1.2.
constexpr std::string_view kRequest =
    "GET /chat HTTP/1.1\r\n"
    "Host: server.example.com\r\n"
    "Upgrade: websocket\r\n"
    "Connection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Version: 13\r\n"
    "\r\n";

// The answer to that request, with something else in the place of a part of it.
WebSocketHandshake Answer(std::string_view part = "", std::string_view other = "") {
  std::string request(kRequest);
  if (!part.empty()) {
    EXPECT_TRUE(absl::StrContains(request, part)) << part;
    request = absl::StrReplaceAll(request, {{part, other}});
  }
  absl::StatusOr<HttpHead> head = ParseHttpHead(request);
  EXPECT_TRUE(head.ok()) << head.status();
  return AnswerHandshake(*head);
}

std::string ErrorOf(std::string_view text) {
  return std::string(ParseHttpHead(text).status().message());
}

TEST(WebSocketHandshakeTest, TheExampleOfTheRfc) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");

  const WebSocketHandshake handshake = Answer();

  EXPECT_TRUE(handshake.is_accepted);
  EXPECT_THAT(handshake.answer, StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(handshake.answer,
              HasSubstr("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
}

TEST(WebSocketHandshakeTest, TokensAreListsWithoutCase) {
  EXPECT_TRUE(Answer("Connection: Upgrade", "CONNECTION:keep-alive ,  uPGRADE").is_accepted);
  EXPECT_TRUE(Answer("Connection: Upgrade", "Connection: a\r\nConnection: Upgrade").is_accepted);
  EXPECT_TRUE(Answer("Upgrade: websocket", "Upgrade: WebSocket").is_accepted);
}

TEST(WebSocketHandshakeTest, WhatIsMissing) {
  const auto status = [](std::string_view part, std::string_view other) {
    const WebSocketHandshake handshake = Answer(part, other);
    EXPECT_FALSE(handshake.is_accepted);
    return handshake.answer.substr(9, 3);
  };
  EXPECT_EQ(status("GET", "POST"), "405");
  EXPECT_EQ(status("Upgrade: websocket", "Upgrade: h2c"), "426");
  EXPECT_EQ(status("Connection: Upgrade", "Connection: close"), "426");
  EXPECT_EQ(status("HTTP/1.1", "HTTP/1.0"), "426");
  EXPECT_EQ(status("Version: 13", "Version: 8"), "426");
  EXPECT_EQ(status("Sec-WebSocket-Key", "X-Key"), "400");
  EXPECT_EQ(status("dGhlIHNhbXBsZSBub25jZQ==", "dGhl"), "400");
  EXPECT_EQ(status("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZ%%="), "400");
  EXPECT_EQ(status("Host", "Guest"), "400");
  EXPECT_THAT(Answer("Version: 13", "Version: 8").answer,
              HasSubstr("\r\nSec-WebSocket-Version: 13\r\n"));
}

TEST(WebSocketHandshakeTest, Heads) {
  const HttpHead head = ParseHttpHead("GET /a?b HTTP/1.0\r\nA: 1 \r\na:2\r\nB:\r\n\r\n").value();

  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.target, "/a?b");
  EXPECT_EQ(head.minor_version, 0);
  EXPECT_EQ(head.Find("a"), "1, 2");
  EXPECT_EQ(head.Find("b"), "");
  EXPECT_EQ(head.Find("c"), std::nullopt);
  EXPECT_TRUE(ParseHttpHead("GET / HTTP/1.1\r\n\r\n").ok());
}

TEST(WebSocketHandshakeTest, WhatIsNoHeadIsNamed) {
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\n"), HasSubstr("empty line"));
  EXPECT_THAT(ErrorOf("\r\n\r\n"), HasSubstr("first line"));
  EXPECT_THAT(ErrorOf("GET /\r\n\r\n"), HasSubstr("first line"));
  EXPECT_THAT(ErrorOf("GET  / HTTP/1.1\r\n\r\n"), HasSubstr("first line"));
  EXPECT_THAT(ErrorOf("G@T / HTTP/1.1\r\n\r\n"), HasSubstr("first line"));
  EXPECT_THAT(ErrorOf("GET / HTTP/2\r\n\r\n"), HasSubstr("version"));
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\nA b: c\r\n\r\n"), HasSubstr("no header"));
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\nA\r\n\r\n"), HasSubstr("no header"));
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\n: c\r\n\r\n"), HasSubstr("no header"));
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\n b: c\r\n\r\n"), HasSubstr("no header"));
  EXPECT_THAT(ErrorOf("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n"), HasSubstr("control"));
  EXPECT_THAT(ErrorOf(std::string_view("GET / HTTP/1.1\r\nA: \0\r\n\r\n", 24)),
              HasSubstr("control"));
}

}  // namespace
}  // namespace weft
