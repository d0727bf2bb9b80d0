// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/websocket.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using enum WebSocketOpcode;

constexpr std::array<uint8_t, 4> kMask = {0x12, 0x34, 0x56, 0x78};

std::string Masked(WebSocketOpcode opcode, std::string_view payload, bool is_last = true) {
  std::string frame;
  AppendMaskedFrame(&frame, opcode, payload, kMask, is_last);
  return frame;
}

std::string Plain(WebSocketOpcode opcode, std::string_view payload, bool is_last = true) {
  std::string frame;
  AppendFrame(&frame, opcode, payload, is_last);
  return frame;
}

std::string Bytes(std::vector<int> bytes) { return std::string(bytes.begin(), bytes.end()); }

// Decodes `input`, which comes in two parts, to lines as "text hello", "close 1000 bye",
// "error 1002 a reserved opcode".
std::vector<std::string> Decode(std::string_view input, size_t first_part,
                                WebSocketDecoder decoder) {
  std::vector<std::string> lines;
  for (std::string_view part : {input.substr(0, first_part), input.substr(first_part)}) {
    while (true) {
      const WebSocketDecoder::Result result = decoder.Decode(&part);
      if (result == WebSocketDecoder::Result::kError) {
        lines.push_back(absl::StrCat("error ", decoder.error_code(), " ", decoder.error()));
        return lines;
      }
      if (result == WebSocketDecoder::Result::kIncomplete) break;
      const std::string_view payload = decoder.payload();
      switch (decoder.opcode()) {
        case kText:
          lines.push_back(absl::StrCat("text ", payload));
          break;
        case kBinary:
          lines.push_back(absl::StrCat("binary ", payload));
          break;
        case kPing:
          lines.push_back(absl::StrCat("ping ", payload));
          break;
        case kPong:
          lines.push_back(absl::StrCat("pong ", payload));
          break;
        case kClose:
          lines.push_back(absl::StrCat("close ", decoder.close_code(), " ", payload));
          break;
        case kContinuation:
          lines.emplace_back("continuation");
          break;
      }
    }
    EXPECT_EQ(part, "") << "not taken, though a message is not complete";
  }
  return lines;
}

// The same, however it is cut in two.
std::vector<std::string> Decode(std::string_view input,
                                WebSocketDecoder::Role role = WebSocketDecoder::Role::kServer,
                                size_t max_message = 1 << 20) {
  const WebSocketDecoder decoder(role, max_message);
  const std::vector<std::string> whole = Decode(input, input.size(), decoder);
  const size_t step = input.size() > 10'000 ? 1009 : 1;
  for (size_t i = 0; i < input.size(); i += step) {
    EXPECT_EQ(Decode(input, i, decoder), whole) << "cut at " << i;
  }
  return whole;
}

// The example of RFC 6455, section 5.7.
TEST(WebSocketTest, TheExamplesOfTheRfc) {
  const std::string hello =
      Bytes({0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58});
  std::string masked;
  AppendMaskedFrame(&masked, kText, "Hello", {0x37, 0xfa, 0x21, 0x3d});

  EXPECT_EQ(masked, hello);
  EXPECT_EQ(Plain(kText, "Hello"), absl::StrCat("\x81\x05", "Hello"));
  EXPECT_EQ(Plain(kBinary, std::string(256, 'x')).substr(0, 4), Bytes({0x82, 0x7E, 0x01, 0x00}));
  EXPECT_EQ(Plain(kBinary, std::string(65536, 'x')).substr(0, 10),
            Bytes({0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0}));
  EXPECT_THAT(Decode(hello), ElementsAre("text Hello"));
}

TEST(WebSocketTest, EveryLengthOfALength) {
  for (const size_t size : {0u, 1u, 125u, 126u, 127u, 65535u, 65536u, 70000u}) {
    const std::string payload(size, 'x');
    EXPECT_THAT(Decode(Masked(kBinary, payload)), ElementsAre(absl::StrCat("binary ", payload)));
    EXPECT_THAT(Decode(Plain(kBinary, payload), WebSocketDecoder::Role::kClient),
                ElementsAre(absl::StrCat("binary ", payload)));
  }
}

TEST(WebSocketTest, ManyInOnePiece) {
  EXPECT_THAT(Decode(absl::StrCat(Masked(kText, "a"), Masked(kBinary, ""), Masked(kPong, "b"),
                                  Masked(kText, "\u20ac"))),
              ElementsAre("text a", "binary ", "pong b", "text \u20ac"));
}

TEST(WebSocketTest, FragmentsWithControlFramesBetweenThem) {
  EXPECT_THAT(Decode(absl::StrCat(Masked(kText, "a", false), Masked(kPing, "1"),
                                  Masked(kContinuation, "", false), Masked(kPing, "2"),
                                  Masked(kContinuation, "b"), Masked(kText, "c"))),
              ElementsAre("ping 1", "ping 2", "text ab", "text c"));
}

TEST(WebSocketTest, ACharacterInTwoFragments) {
  EXPECT_THAT(Decode(absl::StrCat(Masked(kText, "\xE2", false), Masked(kContinuation, "\x82\xAC"))),
              ElementsAre("text \u20ac"));
  EXPECT_THAT(Decode(absl::StrCat(Masked(kBinary, "\xE2", false), Masked(kContinuation, "\x82"))),
              ElementsAre("binary \xE2\x82"));
}

TEST(WebSocketTest, Closing) {
  EXPECT_THAT(Decode(Masked(kClose, "")), ElementsAre("close 1005 "));
  EXPECT_THAT(Decode(Masked(kClose, ClosePayload(1000, ""))), ElementsAre("close 1000 "));
  EXPECT_THAT(Decode(Masked(kClose, ClosePayload(4999, "b\u00fc"))),
              ElementsAre("close 4999 b\u00fc"));
  EXPECT_EQ(ClosePayload(1000, std::string(200, 'x')).size(), 125u);
}

TEST(WebSocketTest, CloseCodesThatMayNotBeSent) {
  for (const int code : {0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535}) {
    EXPECT_THAT(Decode(Masked(kClose, ClosePayload(static_cast<uint16_t>(code), ""))),
                ElementsAre("error 1002 a close code that may not be sent"))
        << code;
  }
  EXPECT_THAT(Decode(Masked(kClose, "\x03")), ElementsAre("error 1002 a close code of one byte"));
  EXPECT_THAT(Decode(Masked(kClose, ClosePayload(1000, "\xFF"))),
              ElementsAre("error 1007 the reason is not UTF-8"));
}

TEST(WebSocketTest, Masking) {
  EXPECT_THAT(Decode(Plain(kText, "a")), ElementsAre("error 1002 a client masks everything"));
  EXPECT_THAT(Decode(Masked(kText, "a"), WebSocketDecoder::Role::kClient),
              ElementsAre("error 1002 a server masks nothing"));
}

TEST(WebSocketTest, ReservedBitsAndOpcodes) {
  for (const int bit : {0x10, 0x20, 0x40}) {
    EXPECT_THAT(Decode(Bytes({0x81 | bit, 0x80, 0, 0, 0, 0})),
                ElementsAre("error 1002 a reserved bit is set"));
  }
  for (const int opcode : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    EXPECT_THAT(Decode(Bytes({0x80 | opcode, 0x80, 0, 0, 0, 0})),
                ElementsAre("error 1002 a reserved opcode"));
  }
}

TEST(WebSocketTest, LengthsThatAreLongerThanNeeded) {
  const std::string error = "error 1002 a length that is not in its shortest form";
  EXPECT_THAT(Decode(Bytes({0x82, 0xFE, 0, 125, 0, 0, 0, 0})), ElementsAre(error));
  EXPECT_THAT(Decode(Bytes({0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0})),
              ElementsAre(error));
  EXPECT_THAT(Decode(Bytes({0x82, 0xFF, 0x80, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0})),
              ElementsAre(error));
}

TEST(WebSocketTest, ControlFramesAreShortAndWhole) {
  EXPECT_THAT(Decode(Masked(kPing, std::string(125, 'x'))),
              ElementsAre(absl::StrCat("ping ", std::string(125, 'x'))));
  EXPECT_THAT(Decode(Masked(kPing, std::string(126, 'x'))),
              ElementsAre("error 1002 a control frame that is too long"));
  EXPECT_THAT(Decode(Masked(kPing, "x", false)),
              ElementsAre("error 1002 a control frame in fragments"));
}

TEST(WebSocketTest, FragmentsOutOfOrder) {
  EXPECT_THAT(Decode(Masked(kContinuation, "a")),
              ElementsAre("error 1002 a continuation of no message"));
  EXPECT_THAT(Decode(absl::StrCat(Masked(kText, "a", false), Masked(kText, "b"))),
              ElementsAre("error 1002 a message within a message"));
}

TEST(WebSocketTest, TextThatIsNotUtf8) {
  const std::string error = "error 1007 the text is not UTF-8";
  EXPECT_THAT(Decode(Masked(kText, "a\xFF")), ElementsAre(error));
  EXPECT_THAT(Decode(Masked(kText, "a\xE2\x82")), ElementsAre(error));
  EXPECT_THAT(Decode(absl::StrCat(Masked(kText, "\xE2", false), Masked(kContinuation, "x"))),
              ElementsAre(error));
}

TEST(WebSocketTest, TextIsRefusedAtTheFirstByteThatIsWrong) {
  WebSocketDecoder decoder(WebSocketDecoder::Role::kServer);
  const std::string frame = Masked(kText, "a\xFF and much more");
  std::string_view begin = std::string_view(frame).substr(0, 8);

  EXPECT_EQ(decoder.Decode(&begin), WebSocketDecoder::Result::kError);
}

TEST(WebSocketTest, AMessageHasALimit) {
  const auto role = WebSocketDecoder::Role::kServer;
  const std::string error = "error 1009 the message is too big";
  EXPECT_THAT(Decode(Masked(kBinary, "12345"), role, 5), ElementsAre("binary 12345"));
  EXPECT_THAT(Decode(Masked(kBinary, "123456"), role, 5), ElementsAre(error));
  EXPECT_THAT(
      Decode(absl::StrCat(Masked(kBinary, "123", false), Masked(kContinuation, "456")), role, 5),
      ElementsAre(error));
  // It is refused when it is announced. Control frames do not count.
  EXPECT_THAT(Decode(absl::StrCat(Masked(kPing, "123456"), Masked(kBinary, "12345", false),
                                  Masked(kPing, "123456"), Masked(kContinuation, "6").substr(0, 6)),
                     role, 5),
              ElementsAre("ping 123456", "ping 123456", error));
}

TEST(WebSocketTest, AfterAnErrorThereIsNothingMore) {
  WebSocketDecoder decoder(WebSocketDecoder::Role::kServer);
  const std::string bad = Plain(kText, "a"), good = Masked(kText, "a");
  std::string_view input = bad;
  EXPECT_EQ(decoder.Decode(&input), WebSocketDecoder::Result::kError);

  input = good;

  EXPECT_EQ(decoder.Decode(&input), WebSocketDecoder::Result::kError);
  EXPECT_EQ(decoder.error_code(), kProtocolError);
}

}  // namespace
}  // namespace weft
