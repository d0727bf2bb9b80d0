// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/utf8.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace weft {
namespace {

// However it is cut in two.
bool IsUtf8(std::string_view text) {
  Utf8Checker whole;
  const bool is_valid = whole.Add(text) && whole.is_complete();
  for (size_t i = 0; i <= text.size(); ++i) {
    Utf8Checker checker;
    const bool is_valid_in_parts =
        checker.Add(text.substr(0, i)) && checker.Add(text.substr(i)) && checker.is_complete();
    EXPECT_EQ(is_valid_in_parts, is_valid) << "cut at " << i;
  }
  return is_valid;
}

// Each code point by itself, as the definition has it, without a look at what is allowed.
std::string Encode(uint32_t code) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8Test, EveryCodePointButSurrogates) {
  for (uint32_t code = 0; code < 0x120000; ++code) {
    const std::string text = Encode(code);
    Utf8Checker checker;
    const bool is_valid = checker.Add(text) && checker.is_complete();
    ASSERT_EQ(is_valid, code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF)) << std::hex << code;
  }
}

TEST(Utf8Test, TextsInPieces) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("gr\u00fc\u00df dich, \u20ac und \U0001F642"));
}

TEST(Utf8Test, OverlongForms) {
  EXPECT_FALSE(IsUtf8("\xC0\x80"));
  EXPECT_FALSE(IsUtf8("\xC1\xBF"));
  EXPECT_FALSE(IsUtf8("\xE0\x9F\xBF"));
  EXPECT_FALSE(IsUtf8("\xF0\x8F\xBF\xBF"));
}

TEST(Utf8Test, WhatBeginsAndDoesNotEnd) {
  EXPECT_FALSE(IsUtf8("a\xC3"));
  EXPECT_FALSE(IsUtf8("\xE2\x82"));
  EXPECT_FALSE(IsUtf8("\xF0\x9F\x99"));
  EXPECT_FALSE(IsUtf8("\xE2\x82z"));
}

TEST(Utf8Test, WhatEndsAndDoesNotBegin) {
  EXPECT_FALSE(IsUtf8("\x80"));
  EXPECT_FALSE(IsUtf8("\xC3\xBC\xBC"));
  EXPECT_FALSE(IsUtf8("\xFF"));
  EXPECT_FALSE(IsUtf8("\xF5\x80\x80\x80"));
}

TEST(Utf8Test, FailsAtTheFirstByteThatIsWrong) {
  Utf8Checker checker;
  EXPECT_TRUE(checker.Add("\xF4"));
  EXPECT_FALSE(checker.Add("\x90"));
}

}  // namespace
}  // namespace weft
