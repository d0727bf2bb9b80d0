// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/as_completed.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AsCompletedTest : public ::testing::Test {
 protected:
  Coro<int> After(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    co_return seconds;
  }
  // Takes all there is; -1 for each that did not come in time.
  template <class A>
  Coro<std::vector<int>> Collect(std::vector<A> awaitables,
                                 absl::Duration timeout = absl::InfiniteDuration()) {
    std::vector<int> results;
    auto completed = AsCompleted(std::move(awaitables), timeout);
    while (true) {
      auto outcome = co_await NoThrow(completed.Next());
      if (!outcome.has_value()) {
        results.push_back(-1);
        continue;
      }
      if (!outcome.value().has_value()) break;
      results.push_back(outcome.value()->Result());
    }
    co_return results;
  }

  VirtualScheduler loop_;
};

// ASC 121
TEST_F(AsCompletedTest, ComesInTheOrderInWhichTheyEnd) {
  std::vector<Coro<int>> coros;
  for (const int seconds : {3, 1, 2}) coros.push_back(After(seconds));

  EXPECT_THAT(loop_.Run(Collect(std::move(coros))), ElementsAre(1, 2, 3));
}

// ASC 122
TEST_F(AsCompletedTest, GivesTheSameTasks) {
  std::vector<Task<int>> tasks{CreateTask(After(2)), CreateTask(After(1))};
  const auto main = [&]() -> Coro<> {
    auto completed = AsCompleted(tasks);
    std::optional<Task<int>> first = co_await completed.Next();
    EXPECT_EQ(*first, tasks[1]);
    EXPECT_TRUE(first->Done());
    std::optional<Task<int>> second = co_await completed.Next();
    EXPECT_EQ(*second, tasks[0]);
    std::optional<Task<int>> none = co_await completed.Next();
    EXPECT_FALSE(none.has_value());
  };

  loop_.Run(main());
}

// ASC 123
TEST_F(AsCompletedTest, ATimeoutFailsEachThatIsNotDoneAndCancelsNothing) {
  std::vector<Task<int>> tasks{CreateTask(After(5)), CreateTask(After(1)), CreateTask(After(6))};

  EXPECT_THAT(loop_.Run(Collect(tasks, absl::Seconds(2))), ElementsAre(1, -1, -1));
  EXPECT_EQ(tasks[0].Result(), 5);
}

// ASC 124
TEST_F(AsCompletedTest, WhatIsGivenTwiceComesOnceAndNothingFromNothing) {
  std::vector<Task<int>> tasks(3, CreateTask(After(1)));

  EXPECT_THAT(loop_.Run(Collect(tasks)), ElementsAre(1));
  EXPECT_THAT(loop_.Run(Collect(std::vector<Task<int>>())), IsEmpty());
}

//
TEST_F(AsCompletedTest, AnotherLoopsFutureIsRefused) {
  std::vector<Future<int>> futures{MakeFuture<int>(loop_)};
  VirtualScheduler other;

  EXPECT_THAT(
      [&] { (void)AsCompleted(futures); },
      ::testing::ThrowsMessage<ValueError>(
          "The future belongs to a different loop than the one specified as the loop argument"));
}

TEST_F(AsCompletedTest, MayBeDroppedEarly) {
  Task<int> slow = CreateTask(After(5));
  const auto main = [&]() -> Coro<> {
    auto completed =
        AsCompleted(std::vector<Task<int>>{slow, CreateTask(After(1))}, absl::Seconds(9));
    std::optional<Task<int>> first = co_await completed.Next();
    EXPECT_EQ(first->Result(), 1);
  };

  loop_.Run(main());
  EXPECT_EQ(slow.Result(), 5);
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(5));
}

TEST_F(AsCompletedTest, AConsumerThatIsCancelledLeavesTheItemToTheNext) {
  Future<int> future = MakeFuture<int>(loop_);
  auto completed = AsCompleted(std::vector<Future<int>>{future, MakeFuture<int>(loop_)});
  const auto take = [&]() -> Coro<int> {
    std::optional<Future<int>> next = co_await completed.Next();
    co_return next->Result();
  };
  Task<int> first = CreateTask(take());
  Task<int> second = CreateTask(take());
  loop_.RunRound();
  future.SetResult(4);
  loop_.RunRound();
  first.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(first.Cancelled());
  EXPECT_EQ(second.Result(), 4);
}

}  // namespace
}  // namespace weft
