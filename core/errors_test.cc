// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/errors.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

template <class E>
std::string Describe(const E& error) {
  return DescribeException(std::make_exception_ptr(error));
}

TEST(ErrorsTest, ACancellationIsNoStdException) {
  static_assert(!std::is_base_of_v<std::exception, CancelledError>);
  static_assert(!std::is_base_of_v<std::exception, KeyboardInterrupt>);
}

TEST(ErrorsTest, AreDescribedWithTheirType) {
  EXPECT_EQ(DescribeException(nullptr), "no exception");
  EXPECT_EQ(Describe(CancelledError()), "weft::CancelledError");
  EXPECT_EQ(Describe(CancelledError("why")), "weft::CancelledError: why");
  EXPECT_EQ(Describe(TimeoutError()), "weft::TimeoutError: timed out");
  EXPECT_EQ(Describe(std::string("text")), "std::string: text");
  EXPECT_EQ(Describe(7), "int: 7");
  EXPECT_EQ(Describe(7.5), "double");
}

TEST(ErrorsTest, AGroupSaysHowManyItHolds) {
  const std::exception_ptr one = std::make_exception_ptr(1);

  EXPECT_STREQ(ExceptionGroup("errors", {one}).what(), "errors (1 sub-exception)");
  EXPECT_STREQ(ExceptionGroup("errors", {one, one}).what(), "errors (2 sub-exceptions)");
}

TEST(ErrorsTest, CancellationsAreTold) {
  EXPECT_FALSE(internal::IsCancelledError(nullptr));
  EXPECT_FALSE(internal::IsCancelledError(std::make_exception_ptr(1)));
  EXPECT_TRUE(internal::IsCancelledError(std::make_exception_ptr(CancelledError())));
  EXPECT_FALSE(internal::IsKeyboardInterrupt(nullptr));
  EXPECT_FALSE(internal::IsKeyboardInterrupt(std::make_exception_ptr(1)));
  EXPECT_FALSE(internal::IsKeyboardInterrupt(std::make_exception_ptr(CancelledError())));
  EXPECT_TRUE(internal::IsKeyboardInterrupt(std::make_exception_ptr(KeyboardInterrupt())));
  EXPECT_FALSE(internal::IsHandlingCancelledError());
  try {
    throw CancelledError();
  } catch (...) {
    EXPECT_TRUE(internal::IsHandlingCancelledError());
  }
}

TEST(ErrorsTest, AGroupIsDescribedWithWhatItHolds) {
  const std::exception_ptr inner =
      std::make_exception_ptr(ExceptionGroup("inner", {std::make_exception_ptr(ValueError("c"))}));
  const std::exception_ptr group = std::make_exception_ptr(
      ExceptionGroup("outer", {std::make_exception_ptr(std::runtime_error("a")), inner}));

  EXPECT_EQ(DescribeException(group),
            "weft::ExceptionGroup: outer (2 sub-exceptions) [std::runtime_error: a, "
            "weft::ExceptionGroup: inner (1 sub-exception) [weft::ValueError: c]]");

  const std::exception_ptr one = std::make_exception_ptr(1);
  EXPECT_EQ(DescribeException(std::make_exception_ptr(
                ExceptionGroup("many", std::vector<std::exception_ptr>(9, one)))),
            "weft::ExceptionGroup: many (9 sub-exceptions) [int: 1, int: 1, int: 1, int: 1, "
            "int: 1, int: 1, int: 1, int: 1, ...]");
}

TEST(ErrorsTest, GroupsInGroupsNeedNoStack) {
  std::exception_ptr group = std::make_exception_ptr(1);
  for (int i = 0; i < 100'000; ++i) {
    group = std::make_exception_ptr(ExceptionGroup("group", {std::move(group)}));
  }
  const std::string text = DescribeException(group);
  EXPECT_EQ(text.substr(text.size() - 10), " [...]]]]]") << text;

  group = nullptr;
}

}  // namespace
}  // namespace weft
