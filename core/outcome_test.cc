// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/outcome.h"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(OutcomeTest, HoldsAValueAnErrorOrACancellation) {
  Outcome<int> outcome;
  EXPECT_TRUE(outcome.empty());
  EXPECT_THROW(outcome.value(), InvalidStateError);

  outcome.Emplace(3);
  EXPECT_TRUE(outcome.has_value());
  EXPECT_EQ(*outcome, 3);
  EXPECT_EQ(outcome.exception(), nullptr);

  outcome.SetError(std::make_exception_ptr(std::runtime_error("failed")));
  EXPECT_TRUE(outcome.has_exception());
  EXPECT_FALSE(outcome.cancelled());
  EXPECT_THROW(outcome.value(), std::runtime_error);

  outcome.SetCancelled(std::make_exception_ptr(CancelledError("why")));
  EXPECT_TRUE(outcome.cancelled());
  EXPECT_THROW(outcome.value(), CancelledError);
}

TEST(OutcomeTest, KnowsACancellationThatIsBeingHandled) {
  Outcome<void> outcome;
  try {
    throw CancelledError();
  } catch (...) {
    outcome.SetCurrentException();
  }
  EXPECT_TRUE(outcome.cancelled());

  try {
    throw 7;
  } catch (...) {
    outcome.SetCurrentException();
  }
  EXPECT_TRUE(outcome.has_exception());
  EXPECT_FALSE(outcome.cancelled());
}

TEST(OutcomeTest, OfAReferenceIsThatReference) {
  int number = 1;
  Outcome<int&> outcome;
  outcome.Emplace(number);

  outcome.value() = 5;

  EXPECT_EQ(number, 5);
}

TEST(OutcomeTest, MovesWhatCannotBeCopied) {
  Outcome<std::unique_ptr<int>> outcome;
  outcome.Emplace(std::make_unique<int>(4));
  Outcome<std::unique_ptr<int>> moved = std::move(outcome);

  std::unique_ptr<int> value = std::move(moved).value();

  EXPECT_EQ(*value, 4);
}

TEST(OutcomeTest, CopiesWhatCan) {
  Outcome<std::string> outcome;
  outcome.Emplace("text");
  Outcome<std::string> copy = outcome;
  copy = outcome;

  EXPECT_EQ(*copy, "text");
  EXPECT_EQ(*outcome, "text");
  static_assert(!std::is_copy_constructible_v<Outcome<std::vector<std::unique_ptr<int>>>>);
}

TEST(OutcomeTest, ShowsTheMembersOfItsValue) {
  Outcome<std::string> outcome;
  outcome.Emplace("text");
  const Outcome<std::string>& same = outcome;
  outcome->append("s");

  EXPECT_EQ(same->size(), 5u);

  outcome.SetError(std::make_exception_ptr(std::runtime_error("none")));
  EXPECT_THROW((void)same->size(), std::runtime_error);
}

TEST(OutcomeTest, KnowsWhatCannotBeCopiedInsideOfOthers) {
  using Uncopyable = std::vector<std::unique_ptr<int>>;
  static_assert(!internal::IsCopyable<Uncopyable>::value);
  static_assert(!internal::IsCopyable<std::pair<Uncopyable, int>>::value);
  static_assert(!internal::IsCopyable<std::tuple<int, Uncopyable>>::value);
  static_assert(!internal::IsCopyable<std::vector<std::pair<int, Uncopyable>>>::value);
  static_assert(internal::IsCopyable<std::pair<std::vector<int>, int>>::value);
}

}  // namespace
}  // namespace weft
