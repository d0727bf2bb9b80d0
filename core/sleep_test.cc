// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/sleep.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class SleepTest : public ::testing::Test {
 protected:
  VirtualScheduler loop_;
};

// SLP 99
TEST_F(SleepTest, LastsAtLeastItsTimeFromTheAwait) {
  const auto main = [&]() -> Coro<absl::Duration> {
    auto sleep = Sleep(absl::Seconds(2));
    loop_.Advance(absl::Seconds(5));  // A callback that blocks: no part of the time.
    const TimePoint before = loop_.Now();
    co_await std::move(sleep);
    co_return loop_.Now() - before;
  };

  EXPECT_EQ(loop_.Run(main()), absl::Seconds(2));
}

// SLP 100
TEST_F(SleepTest, EndInTheOrderOfTheirTimesAndEqualOnesInThatOfCreation) {
  std::vector<int> order;
  const auto sleeps = [&](int milliseconds) -> Coro<> {
    co_await Sleep(absl::Milliseconds(milliseconds));
    order.push_back(milliseconds);
  };
  for (const int milliseconds : {30, 10, 20, 0, -1}) CreateTask(sleeps(milliseconds));
  loop_.RunUntilIdle();

  EXPECT_THAT(order, ElementsAre(0, -1, 10, 20, 30));
}

// SLP 101
TEST_F(SleepTest, AHundredThousandAtOnce) {
  const auto main = [&]() -> Coro<> {
    std::vector<Coro<>> sleepers;
    for (int i = 0; i < 100'000; ++i) {
      sleepers.push_back([](int milliseconds) -> Coro<> {
        co_await Sleep(absl::Milliseconds(milliseconds));
      }(i * 7919 % 100));
    }
    co_await Gather(std::move(sleepers));
  };

  loop_.Run(main());
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Milliseconds(99));
}

TEST_F(SleepTest, AnInfiniteOneEndsOnlyByACancellation) {
  const auto main = []() -> Coro<> { co_await Sleep(absl::InfiniteDuration()); };
  Task<> task = CreateTask(main());
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());

  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
}

//
TEST_F(SleepTest, ACancelledOneLeavesNoTimer) {
  const auto main = []() -> Coro<> { co_await Sleep(absl::Seconds(9)); };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(loop_.Now(), TimePoint());
}

// As CPython's future, which is cancelled then whatever comes.
TEST_F(SleepTest, ACancelledOneThrowsAlsoIfTheRequestIsTakenBack) {
  bool was_cancelled = false;
  const auto main = [&]() -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(9)));
    was_cancelled = outcome.cancelled();
    co_await Sleep(absl::Seconds(1));  // Not cancelled any more.
  };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  EXPECT_TRUE(task.Cancel());
  EXPECT_TRUE(task.Cancel());
  task.Uncancel();
  task.Uncancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(was_cancelled);
  EXPECT_FALSE(task.Cancelled());
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(1));
}

TEST_F(SleepTest, ATaskThatHasCancelledItselfDoesNotSleep) {
  const auto main = []() -> Coro<> {
    CurrentTask().Cancel();
    co_await Sleep(absl::Seconds(9));
  };
  Task<> task = CreateTask(main());
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
  EXPECT_EQ(loop_.Now(), TimePoint());
}

// Between the two hops of its end: the timer has run, and the task is in the queue.
TEST_F(SleepTest, OneThatIsOverMayStillBeCancelled) {
  const auto main = []() -> Coro<> { co_await Sleep(absl::Seconds(1)); };
  Task<> task = CreateTask(main());
  const auto cancel = [&]() -> Coro<> {
    co_await Sleep(absl::Seconds(1));
    task.Cancel();
  };
  CreateTask(cancel());
  Task<> later = CreateTask(main());
  loop_.RunUntilIdle();

  EXPECT_FALSE(task.Cancelled());  // It came first.
  EXPECT_TRUE(later.Done());

  Task<> second = CreateTask(main());
  loop_.CallSoon([&] { loop_.CallLater(absl::Seconds(1), [&] { second.Cancel(); }); });
  loop_.RunUntilIdle();

  EXPECT_TRUE(second.Cancelled());
}

TEST_F(SleepTest, SaysHowLongItWillLast) {
  const auto main = [](absl::Duration delay) -> Coro<> { co_await Sleep(delay); };
  Task<> one = CreateTask(main(absl::Seconds(2)));
  Task<> other = CreateTask(main(absl::InfiniteDuration()));
  loop_.RunRound();

  EXPECT_EQ(one.task_state()->WaitsFor(), "<Sleep for another 2s>");
  EXPECT_EQ(other.task_state()->WaitsFor(), "<Sleep for ever>");
}

TEST_F(SleepTest, AYieldThatIsCancelledThrows) {
  const auto main = []() -> Coro<bool> {
    CurrentTask().Cancel();
    Outcome<void> outcome = co_await NoThrow(Yield());
    CurrentTask().Uncancel();
    co_return outcome.cancelled();
  };

  EXPECT_TRUE(loop_.Run(main()));
}

}  // namespace
}  // namespace weft
