// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/wait.h"

#include <stdexcept>
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

class WaitTest : public ::testing::Test {
 protected:
  Coro<int> After(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    co_return seconds;
  }
  Coro<int> Fail(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    throw std::runtime_error("failed");
  }
  Task<int> Start(Coro<int> coro, std::string name) {
    return CreateTask(std::move(coro), std::move(name));
  }
  static std::vector<std::string> Names(const std::vector<Task<int>>& tasks) {
    std::vector<std::string> names;
    for (const Task<int>& task : tasks) names.emplace_back(task.name());
    return names;
  }
  WaitResult<Task<int>> Run(std::vector<Task<int>> tasks, ReturnWhen when = kAllCompleted,
                            absl::Duration timeout = absl::InfiniteDuration()) {
    const auto main = [&]() -> Coro<WaitResult<Task<int>>> {
      co_return co_await Wait(tasks, when, timeout);
    };
    Task<WaitResult<Task<int>>> task = CreateTask(main());
    while (!task.Done()) loop_.RunRound();
    return task.TakeResult();
  }

  VirtualScheduler loop_;
};

// WAIT 108
TEST_F(WaitTest, AllCompletedThrowsNoError) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(Fail(2), "a"));
  tasks.push_back(Start(After(1), "b"));
  WaitResult result = Run(tasks);

  EXPECT_THAT(Names(result.done), ElementsAre("a", "b"));
  EXPECT_THAT(result.pending, IsEmpty());
  EXPECT_NE(tasks[0].Exception(), nullptr);
}

// WAIT 109
TEST_F(WaitTest, FirstCompletedLeavesTheRestRunning) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(3), "a"));
  tasks.push_back(Start(After(1), "b"));
  tasks.push_back(Start(After(2), "c"));
  WaitResult result = Run(tasks, kFirstCompleted);

  EXPECT_THAT(Names(result.done), ElementsAre("b"));
  EXPECT_THAT(Names(result.pending), ElementsAre("a", "c"));
}

// WAIT 110
TEST_F(WaitTest, FirstExceptionReturnsWithWhatHadFinished) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(1), "a"));
  tasks.push_back(Start(Fail(2), "b"));
  tasks.push_back(Start(After(3), "c"));
  WaitResult result = Run(tasks, kFirstException);

  EXPECT_THAT(Names(result.done), ElementsAre("a", "b"));
  EXPECT_THAT(Names(result.pending), ElementsAre("c"));
}

// WAIT 110
TEST_F(WaitTest, FirstExceptionWithoutOneWaitsForAll) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(1), "a"));
  tasks.push_back(Start(After(3), "b"));
  tasks[0].Cancel();

  EXPECT_THAT(Names(Run(tasks, kFirstException).done), ElementsAre("a", "b"));
}

// WAIT 111
TEST_F(WaitTest, ATimeoutThrowsNothingAndCancelsNothing) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(3), "a"));
  WaitResult result = Run(tasks, kAllCompleted, absl::Seconds(1));

  EXPECT_THAT(result.done, IsEmpty());
  EXPECT_THAT(Names(result.pending), ElementsAre("a"));
  EXPECT_EQ(tasks[0].Cancelling(), 0);
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(1));
}

TEST_F(WaitTest, AnEndInTimeLeavesNoTimer) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(1), "a"));
  Run(tasks, kAllCompleted, absl::Seconds(9));
  loop_.RunUntilIdle();

  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(1));
}

// WAIT 112
TEST_F(WaitTest, CancellingItLeavesTheTasksAlone) {
  std::vector<Task<int>> tasks;
  tasks.push_back(Start(After(3), "a"));
  const auto waits = [&]() -> Coro<> { co_await Wait(tasks); };
  Task<> task = CreateTask(waits());
  loop_.RunRound();
  task.Cancel();
  loop_.RunRound();

  EXPECT_TRUE(task.Cancelled());
  EXPECT_FALSE(tasks[0].Done());
}

// WAIT 113
TEST_F(WaitTest, OfNothingIsAnError) {
  const auto main = [&]() -> Coro<std::string> {
    try {
      co_await Wait(std::vector<Task<int>>());
    } catch (const ValueError& error) {
      co_return error.what();
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "Set of Tasks/Futures is empty.");
}

TEST_F(WaitTest, WhatIsGivenTwiceComesOnce) {
  Task<int> task = Start(After(1), "a");
  std::vector<Task<int>> tasks(3, task);

  EXPECT_THAT(Names(Run(tasks).done), ElementsAre("a"));
}

TEST_F(WaitTest, FuturesOfDifferentTypes) {
  Future<std::string> text = MakeFuture<std::string>(loop_);
  const auto main = [&]() -> Coro<size_t> {
    std::vector<FutureRef> futures{text.Ref(), Start(After(1), "a").Ref()};
    WaitResult<> result = co_await Wait(futures, kFirstCompleted);
    co_return result.pending.size();
  };

  EXPECT_EQ(loop_.Run(main()), 1u);
}

}  // namespace
}  // namespace weft
