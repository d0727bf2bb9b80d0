// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/weft_test.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest-spi.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

Coro<int> Later(int value) {
  co_await Sleep(absl::Hours(1));
  co_return value;
}

WEFT_TEST(WeftTest, AnHourTakesNoTime) {
  const TimePoint start = GetRunningLoop().Time();

  co_await Sleep(absl::Hours(1));

  WEFT_EXPECT_EQ(GetRunningLoop().Time() - start, absl::Hours(1));
}

WEFT_TEST(WeftTest, OperandsMayAwait) {
  WEFT_EXPECT_EQ(co_await Later(3), 3);
  WEFT_ASSERT_TRUE(co_await Later(1) == 1);
  WEFT_EXPECT_THAT(co_await Later(7), ::testing::Gt(6));
}

WEFT_TEST(WeftTest, TimeStandsStillWhileCodeRunsButForAdvance) {
  const TimePoint start = GetRunningLoop().Time();

  AdvanceTime(absl::Milliseconds(200));

  WEFT_EXPECT_EQ(GetRunningLoop().Time() - start, absl::Milliseconds(200));
  co_return;
}

WEFT_TEST_IN_REAL_TIME(WeftTest, TheRealClockGoesByItself) {
  const TimePoint start = GetRunningLoop().Time();
  co_await Sleep(absl::Milliseconds(1));
  WEFT_EXPECT_GE(GetRunningLoop().Time() - start, absl::Milliseconds(1));
  WEFT_EXPECT_THROW(AdvanceTime(absl::Seconds(1)), RuntimeError);
}

class WeftFixtureTest : public ::testing::Test {
 protected:
  void SetUp() override { name_ = "set up"; }
  std::string name_;
};

WEFT_TEST_F(WeftFixtureTest, HasItsFixture) {
  co_await Yield();
  WEFT_EXPECT_EQ(name_, "set up");
}

// What a failing body reports, without failing here: "file:line: message".
std::string FailureOf(const std::function<Coro<void>()>& body) {
  ::testing::TestPartResultArray results;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS, &results);
    internal::RunTest(internal::TestTime::kVirtual, "of_the_test.cc", 77, body);
  }
  std::string text;
  for (int i = 0; i < results.size(); ++i) {
    const ::testing::TestPartResult& result = results.GetTestPartResult(i);
    absl::StrAppend(&text, result.file_name(), ":", result.line_number(), ": ", result.message());
  }
  return text;
}

TEST(WeftTestFailureTest, AWaitForEverEndsAtOnceAndNamesTheTask) {
  const std::string failure = FailureOf([]() -> Coro<void> {
    CurrentTask().SetName("the waiting one");
    co_await GetRunningLoop().CreateFuture<void>();
  });

  EXPECT_THAT(failure, ::testing::HasSubstr("nothing is ready and no timer is pending"));
  EXPECT_THAT(failure, ::testing::HasSubstr("the waiting one"));
  EXPECT_THAT(failure, ::testing::HasSubstr("weft_test_test.cc"));
}

TEST(WeftTestFailureTest, AnExceptionFailsTheTest) {
  EXPECT_THAT(FailureOf([]() -> Coro<void> {
                co_await Yield();
                throw TimeoutError("too late");
              }),
              ::testing::AllOf(::testing::StartsWith("of_the_test.cc:77: "),
                               ::testing::HasSubstr("weft::TimeoutError: too late")));
}

TEST(WeftTestFailureTest, AnExceptionInACallbackFailsTheTest) {
  EXPECT_THAT(FailureOf([]() -> Coro<void> {
                GetRunningLoop().CallSoon([] { throw TimeoutError("in a callback"); });
                co_await Sleep(absl::Seconds(1));
              }),
              ::testing::AllOf(::testing::StartsWith("of_the_test.cc:77: "),
                               ::testing::HasSubstr("in a callback")));
}

TEST(WeftTestFailureTest, AFailedExpectationNamesItsOperands) {
  EXPECT_THAT(FailureOf([]() -> Coro<void> { WEFT_EXPECT_EQ(co_await Later(3), 4); }),
              ::testing::HasSubstr("co_await Later(3)"));
}

}  // namespace
}  // namespace weft
