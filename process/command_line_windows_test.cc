// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/process/command_line_windows.h"

#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/net/headers_windows.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

// As a program will see it; ASCII alone.
std::vector<std::string> TakenApart(const std::string& line) {
  const std::wstring wide(line.begin(), line.end());
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(wide.c_str(), &count);
  std::vector<std::string> argv;
  for (int i = 0; i < count; ++i) {
    const std::wstring word = words[i];
    argv.emplace_back(word.begin(), word.end());
  }
  ::LocalFree(words);
  return argv;
}

TEST(CommandLineTest, QuotesWhatHasToBe) {
  EXPECT_EQ(QuoteArgument("plain\\word"), "plain\\word");
  EXPECT_EQ(QuoteArgument(""), "\"\"");
  EXPECT_EQ(QuoteArgument("two words"), "\"two words\"");
  EXPECT_EQ(QuoteArgument("a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(QuoteArgument("ends in \\"), "\"ends in \\\\\"");
}

TEST(CommandLineTest, IsTakenApartAgain) {
  const std::vector<std::string> argv = {
      "C:\\Program Files\\a.exe", "", " ", "\"", "\\", "\\\"", "a\\\\\"b c\\", "tab\there"};
  EXPECT_THAT(TakenApart(QuoteArguments(argv).value()), ElementsAreArray(argv));
}

TEST(CommandLineTest, IsTakenApartAgainWhateverIsInIt) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::string> argv = {"program"};
    for (uint32_t words = random() % 4; words > 0; --words) {
      std::string word;
      for (uint32_t size = random() % 6; size > 0; --size) word += "\\\" a"[random() % 4];
      argv.push_back(word);
    }
    const std::string line = QuoteArguments(argv).value();
    ASSERT_THAT(TakenApart(line), ElementsAreArray(argv)) << line;
  }
}

TEST(CommandLineTest, AProgramsNameHasNoQuotes) {
  EXPECT_THAT(TakenApart(QuoteArguments({"a b\\"}).value()), ElementsAre("a b\\"));
  EXPECT_EQ(QuoteArguments({"a\"b"}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::internal
