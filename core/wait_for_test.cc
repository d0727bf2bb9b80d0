// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/wait_for.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kNone = absl::ZeroDuration();

class WaitForTest : public ::testing::Test {
 protected:
  Coro<std::unique_ptr<int>> After(int seconds) {
    log_.push_back("begin");
    co_await Sleep(absl::Seconds(seconds));
    co_return std::make_unique<int>(seconds);
  }
  Coro<> Cleans() {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(9)));
    co_await Sleep(absl::Seconds(1));
    log_.push_back("cleaned");
    outcome.value();
  }
  template <class A>
  Coro<> Log(A awaitable) {
    auto outcome = co_await NoThrow(std::move(awaitable));
    if (outcome.has_value()) {
      log_.push_back("value");
    } else if (outcome.cancelled()) {
      log_.push_back("cancelled");
      outcome.value();
    } else {
      try {
        outcome.value();
      } catch (const TimeoutError&) {
        log_.push_back("timeout");
      }
    }
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// WFOR 114
TEST_F(WaitForTest, PassesAnErrorOn) {
  const auto fails = []() -> Coro<> {
    co_await Yield();
    throw ValueError("as it was");
  };
  for (const absl::Duration timeout : {absl::Seconds(2), absl::InfiniteDuration()}) {
    const auto main = [&]() -> Coro<std::string> {
      Outcome<void> outcome = co_await NoThrow(WaitFor(fails(), timeout));
      co_return DescribeException(outcome.exception());
    };

    EXPECT_EQ(loop_.Run(main()), "weft::ValueError: as it was");
  }
}

// WFOR 114
TEST_F(WaitForTest, PassesTheValueOn) {
  const auto main = [&]() -> Coro<int> {
    std::unique_ptr<int> in_time = co_await WaitFor(After(1), absl::Seconds(2));
    std::unique_ptr<int> unlimited = co_await WaitFor(After(1), absl::InfiniteDuration());
    Future<int> future = MakeFuture<int>(loop_);
    future.SetResult(3);
    const int& kept = co_await WaitFor(future, absl::Seconds(1));
    co_return *in_time + *unlimited + kept;
  };

  EXPECT_EQ(loop_.Run(main()), 5);
}

// WFOR 115
TEST_F(WaitForTest, ATimeoutComesWhenTheCleanupHasEnded) {
  loop_.Run(Log(WaitFor(Cleans(), absl::Seconds(2))));

  EXPECT_THAT(log_, ElementsAre("cleaned", "timeout"));
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(3));
}

// TMO 140
TEST_F(WaitForTest, WithNoTimeTheCancellationIsTheCause) {
  const auto main = [&]() -> Coro<std::string> {
    try {
      co_await WaitFor(MakeFuture<int>(loop_), kNone);
    } catch (const TimeoutError& error) {
      co_return DescribeException(error.cause());
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "weft::CancelledError");
}

// WFOR 116
TEST_F(WaitForTest, WithNoTimeACoroutineIsNotStartedAndAFutureIsCancelled) {
  Future<int> future = MakeFuture<int>(loop_);
  loop_.Run(Log(WaitFor(After(1), kNone)));
  loop_.Run(Log(WaitFor(After(1), -absl::Seconds(1))));
  loop_.Run(Log(WaitFor(future, kNone)));

  EXPECT_THAT(log_, ElementsAre("timeout", "timeout", "timeout"));
  EXPECT_TRUE(future.Cancelled());
}

// WFOR 117
TEST_F(WaitForTest, WithNoTimeWhatIsDoneGivesItsResult) {
  Future<int> future = MakeFuture<int>(loop_);
  future.SetResult(7);
  const auto main = [&]() -> Coro<int> { co_return co_await WaitFor(future, kNone); };

  EXPECT_EQ(loop_.Run(main()), 7);
}

TEST_F(WaitForTest, WithNoTimeWhatSwallowsTheCancellationGivesItsResult) {
  const auto stubborn = []() -> Coro<int> {
    co_await NoThrow(Sleep(absl::Seconds(1)));
    co_return 6;
  };
  const auto main = [&]() -> Coro<int> {
    Task<int> task = CreateTask(stubborn());
    co_await Yield();
    co_return co_await WaitFor(std::move(task), kNone);
  };

  EXPECT_EQ(loop_.Run(main()), 6);
}

// It ends with a CancelledError as its error, which is what the timeout asked for.
TEST_F(WaitForTest, WithNoTimeAGatherTimesOutToo) {
  loop_.Run(Log(WaitFor(Gather(MakeFuture<int>(loop_), MakeFuture<int>(loop_)), kNone)));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("timeout"));
  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre());
}

//
TEST_F(WaitForTest, AnotherLoopsFutureIsRefusedAndNotCancelled) {
  Future<int> future = MakeFuture<int>(loop_);
  VirtualScheduler other;
  for (const absl::Duration timeout : {absl::Seconds(1), kNone}) {
    const auto main = [&]() -> Coro<std::string> {
      try {
        co_await WaitFor(future, timeout);
      } catch (const RuntimeError& error) {
        co_return error.what();
      }
      co_return "";
    };

    EXPECT_THAT(other.Run(main()), ::testing::HasSubstr("attached to a different loop"));
    EXPECT_FALSE(future.Done());
  }
}

// WFOR 118
TEST_F(WaitForTest, ACancellationReachesWhatIsAwaited) {
  for (const absl::Duration timeout : {absl::Seconds(5), kNone}) {
    log_.clear();
    Task<> inner = CreateTask(Cleans());
    Task<> task = CreateTask(Log(WaitFor(inner, timeout)));
    loop_.RunRound();
    task.Cancel();
    loop_.RunUntilIdle();

    EXPECT_TRUE(task.Cancelled());
    EXPECT_TRUE(inner.Cancelled());
  }
}

// WFOR 120
TEST_F(WaitForTest, AnEndInTimeLeavesNoTimer) {
  loop_.Run(Log(WaitFor(Sleep(absl::Seconds(1)), absl::Seconds(9))));

  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(1));
}

}  // namespace
}  // namespace weft
