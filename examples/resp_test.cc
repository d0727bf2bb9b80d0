// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/resp.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Request = std::vector<std::string>;

// All requests of `input`, which comes in two parts; the last may be an error.
std::vector<Request> ParseAll(std::string_view input, size_t first_part,
                              RespLimits limits = RespLimits()) {
  RespParser parser(limits);
  std::vector<Request> requests;
  size_t consumed = 0;
  for (const size_t available : {first_part, input.size()}) {
    while (true) {
      const std::string_view unread = input.substr(consumed, available - consumed);
      const RespParser::Result result = parser.Parse(unread);
      if (result == RespParser::Result::kError) {
        requests.push_back({parser.error()});
        return requests;
      }
      if (result == RespParser::Result::kIncomplete) {
        EXPECT_GT(parser.needed(), unread.size());
        break;
      }
      requests.emplace_back(parser.arguments().begin(), parser.arguments().end());
      consumed += parser.size();
    }
  }
  return requests;
}

// The same, however it is cut in two.
std::vector<Request> ParseAll(std::string_view input, RespLimits limits = RespLimits()) {
  const std::vector<Request> whole = ParseAll(input, input.size(), limits);
  for (size_t i = 0; i < input.size(); ++i) {
    EXPECT_EQ(ParseAll(input, i, limits), whole) << "cut at " << i;
  }
  return whole;
}

std::string ErrorOf(std::string_view input, RespLimits limits = RespLimits()) {
  const std::vector<Request> requests = ParseAll(input, limits);
  return requests.empty() ? "none" : requests.back().front();
}

TEST(RespTest, ArraysOfBulkStrings) {
  EXPECT_THAT(ParseAll("*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n"),
              ElementsAre(Request{"GET", "a"}, Request{"PING"}));
}

TEST(RespTest, ABulkStringMayHoldAnything) {
  const std::string value = absl::StrCat("\r\n$1\r\n", std::string(1, '\0'), "*");
  EXPECT_THAT(ParseAll(absl::StrCat("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$8\r\n", value, "\r\n")),
              ElementsAre(Request{"SET", "", value}));
}

TEST(RespTest, InlineCommands) {
  EXPECT_THAT(ParseAll("PING\r\n  set  a   b \nget a\r\n"),
              ElementsAre(Request{"PING"}, Request{"set", "a", "b"}, Request{"get", "a"}));
}

TEST(RespTest, InlineCommandsWithQuotes) {
  EXPECT_THAT(ParseAll("echo \"a b\\n\\x41\\x4\\\"\" 'c\\n\\'' \"\"\r\n"),
              ElementsAre(Request{"echo", "a b\nAx4\"", "c\\n'", ""}));
}

TEST(RespTest, NothingIsARequestToo) {
  EXPECT_THAT(ParseAll("\r\n*0\r\n*-1\r\nPING\r\n"),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), Request{"PING"}));
}

TEST(RespTest, SaysHowMuchIsNeeded) {
  RespParser parser;

  EXPECT_EQ(parser.Parse("*1\r\n$10\r\nabc"), RespParser::Result::kIncomplete);

  EXPECT_EQ(parser.needed(), 9u + 10u + 2u);
}

TEST(RespTest, WhatIsWrongIsNamedAsRedisNamesIt) {
  EXPECT_EQ(ErrorOf("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*01\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1048577\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*99999999999999999999\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(ErrorOf("*1\r\n:1\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(ErrorOf("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$ 1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("*1\r\n$536870913\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(ErrorOf("echo \"a\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(ErrorOf("echo \"a\"b\r\n"), "Protocol error: unbalanced quotes in request");
}

TEST(RespTest, AnArrayInAnArrayIsRefused) {
  EXPECT_EQ(ErrorOf("*1\r\n*1\r\n$1\r\na\r\n"), "Protocol error: expected '$', got '*'");
}

TEST(RespTest, LinesHaveALimit) {
  RespLimits limits;
  limits.line = 10;

  EXPECT_EQ(ErrorOf("echo 12345\r\n", limits), "echo");
  EXPECT_EQ(ErrorOf("echo 123456\r\n", limits), "Protocol error: too big inline request");
  EXPECT_EQ(ErrorOf("*0000000000\r\n", limits), "Protocol error: too big mbulk count string");
  EXPECT_EQ(ErrorOf("*00000000000", limits), "Protocol error: too big mbulk count string");
  EXPECT_EQ(ErrorOf("*1\r\n$00000000000", limits), "Protocol error: too big bulk count string");
}

TEST(RespTest, ARequestHasALimit) {
  RespLimits limits;
  limits.request = 29;

  EXPECT_EQ(ErrorOf("*2\r\n$5\r\n12345\r\n$5\r\n12345\r\n", limits), "12345");
  EXPECT_EQ(ErrorOf("*2\r\n$5\r\n12345\r\n$9\r\n", limits), "Protocol error: too big request");
}

TEST(RespTest, Answers) {
  std::string out;
  AppendSimple(&out, "OK");
  AppendError(&out, "ERR what is 'a\r\nb'?");
  AppendInteger(&out, -7);
  AppendBulk(&out, "a\r\n");
  AppendNull(&out);
  AppendNullArray(&out);
  AppendArray(&out, 2);

  EXPECT_EQ(out, "+OK\r\n-ERR what is 'a  b'?\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n");
}

}  // namespace
}  // namespace weft
