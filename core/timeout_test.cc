// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/timeout.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TimePoint At(int seconds) { return TimePoint() + absl::Seconds(seconds); }

class TimeoutTest : public ::testing::Test {
 protected:
  Coro<int> After(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    co_return seconds;
  }
  // Runs `main` and returns "value", "timeout", "cancelled" or what() of an error.
  template <class A>
  std::string Run(A awaitable) {
    return loop_.Run(Describe(std::move(awaitable)));
  }
  template <class A>
  static Coro<std::string> Describe(A awaitable) {
    auto outcome = co_await NoThrow(std::move(awaitable));
    if (outcome.has_value()) co_return "value";
    if (outcome.cancelled()) co_return "cancelled";
    try {
      outcome.value();
    } catch (const TimeoutError&) {
      co_return "timeout";
    } catch (const std::exception& error) {
      co_return error.what();
    }
    co_return "?";
  }

  VirtualScheduler loop_;
};

// TMO 129
TEST_F(TimeoutTest, ExpiryCancelsWhatIsAwaitedAndThrowsTimeoutError) {
  bool expired = false;
  const auto main = [&]() -> Coro<> {
    auto body = [&](Timeout& timeout) -> Coro<> {
      Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(5)));
      EXPECT_TRUE(outcome.cancelled());
      expired = timeout.Expired();
      EXPECT_EQ(CurrentTask().Cancelling(), 1);
      outcome.value();
    };
    Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(1), body));
    EXPECT_THROW(outcome.value(), TimeoutError);
    EXPECT_EQ(CurrentTask().Cancelling(), 0);
  };

  loop_.Run(main());
  EXPECT_TRUE(expired);
  EXPECT_EQ(loop_.Now(), At(1));
}

// TMO 140
TEST_F(TimeoutTest, TheCancellationIsTheCauseOfTheError) {
  const auto main = [&]() -> Coro<std::vector<std::string>> {
    std::vector<std::string> causes;
    Future<int> never = MakeFuture<int>(loop_);
    try {
      co_await WithTimeout(absl::Seconds(1), After(5));
    } catch (const TimeoutError& error) {
      causes.push_back(DescribeException(error.cause()));
    }
    try {
      co_await WithTimeout(absl::Seconds(1), never);
    } catch (const TimeoutError& error) {
      causes.push_back(DescribeException(error.cause()));
    }
    Outcome<int> outcome = co_await NoThrow(WithTimeout(absl::Seconds(1), After(5)));
    try {
      outcome.value();
    } catch (const TimeoutError& error) {
      causes.push_back(DescribeException(error.cause()));
    }
    co_return causes;
  };

  EXPECT_THAT(loop_.Run(main()), Each("weft::CancelledError"));
  EXPECT_EQ(TimeoutError("by hand").cause(), nullptr);
}

TEST_F(TimeoutTest, ThrowsWithoutNoThrowToo) {
  const auto main = [&]() -> Coro<int> {
    int caught = 0;
    Future<int> never = MakeFuture<int>(loop_);
    try {
      co_await WithTimeout(absl::Seconds(1), After(5));
    } catch (const TimeoutError&) {
      ++caught;
    }
    try {
      co_await WithTimeout(absl::Seconds(1), never);
    } catch (const TimeoutError&) {
      ++caught;
    }
    try {
      co_await WithTimeout(absl::Seconds(1), MakeFuture<int>(loop_));
    } catch (const TimeoutError&) {
      ++caught;
    }
    co_return caught;
  };

  EXPECT_EQ(loop_.Run(main()), 3);
}

// TMO 130
TEST_F(TimeoutTest, EndInTimeLeavesNoTimer) {
  EXPECT_EQ(Run(WithTimeout(absl::Seconds(9), After(2))), "value");
  EXPECT_EQ(loop_.Now(), At(2));

  bool expired = true;
  auto body = [&](Timeout& timeout) -> Coro<> {
    co_await Sleep(absl::Seconds(2));
    expired = timeout.Expired();
  };
  EXPECT_EQ(Run(WithTimeout(absl::Seconds(9), body)), "value");
  EXPECT_FALSE(expired);
  EXPECT_EQ(loop_.Now(), At(4));
}

TEST_F(TimeoutTest, GivesWhatTheAwaitableGives) {
  const auto unique = []() -> Coro<std::unique_ptr<int>> {
    co_await Yield();
    co_return std::make_unique<int>(4);
  };
  const auto main = [&]() -> Coro<> {
    EXPECT_EQ(co_await WithTimeout(absl::Seconds(9), After(2)), 2);
    std::unique_ptr<int> value = co_await WithTimeout(absl::Seconds(9), unique());
    EXPECT_EQ(*value, 4);
    Future<std::string> future = MakeFuture<std::string>(loop_);
    future.SetResult("kept");
    const std::string& reference = co_await WithTimeout(absl::Seconds(9), future);
    EXPECT_EQ(&reference, &future.Result());
  };

  loop_.Run(main());
}

// TMO 131
TEST_F(TimeoutTest, ADeadlineCanBeGivenAndTakenAway) {
  const auto main = [&]() -> Coro<> {
    auto body = [&](Timeout& timeout) -> Coro<> {
      EXPECT_EQ(timeout.When(), TimePoint::InfiniteFuture());
      timeout.Reschedule(At(1));
      EXPECT_EQ(timeout.When(), At(1));
      timeout.Reschedule(TimePoint::InfiniteFuture());
      co_await Sleep(absl::Seconds(100));
    };
    co_await WithTimeoutAt(TimePoint::InfiniteFuture(), body);
    co_await WithTimeout(absl::InfiniteDuration(), body);
  };

  loop_.Run(main());
  EXPECT_EQ(loop_.Now(), At(200));
}

// TMO 132
TEST_F(TimeoutTest, NoTimeExpiresAtTheFirstWaitThatLastsARound) {
  bool began = false, went_on = false;
  auto body = [&](Timeout&) -> Coro<> {
    began = true;
    co_await Yield();
    went_on = true;
  };

  EXPECT_EQ(Run(WithTimeout(absl::ZeroDuration(), body)), "timeout");
  EXPECT_TRUE(began);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(Run(WithTimeoutAt(TimePoint() - absl::Seconds(1), body)), "timeout");
}

// TMO 133
TEST_F(TimeoutTest, AnInnerTimeoutIsNoneOfTheOuters) {
  std::vector<std::string> log;
  const auto inner_then_wait = [&](Timeout&) -> Coro<> {
    log.push_back(co_await Describe(WithTimeout(absl::Seconds(1), After(9))));
    co_await Sleep(absl::Seconds(9));
  };

  EXPECT_EQ(Run(WithTimeout(absl::Seconds(3), inner_then_wait)), "timeout");
  EXPECT_THAT(log, ElementsAre("timeout"));
  EXPECT_EQ(loop_.Now(), At(3));
}

// TMO 134
TEST_F(TimeoutTest, AnOuterTimeoutPassesTheInnerAsACancellation) {
  std::vector<std::string> log;
  const auto waits = [&](Timeout& timeout) -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(20)));
    log.push_back(timeout.Expired() ? "inner expired" : "inner not expired");
    outcome.value();
  };
  const auto inner = [&](Timeout& timeout) -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(9), waits));
    log.push_back(outcome.cancelled() ? "cancelled" : "?");
    log.push_back(timeout.Expired() ? "outer expired" : "outer not expired");
    outcome.value();
  };

  EXPECT_EQ(Run(WithTimeout(absl::Seconds(1), inner)), "timeout");
  EXPECT_THAT(log, ElementsAre("inner not expired", "cancelled", "outer expired"));
}

// TMO 135
TEST_F(TimeoutTest, ACancellationFromElsewherePasses) {
  Task<std::string> task = CreateTask(Describe(WithTimeout(absl::Seconds(9), After(20))));
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "cancelled");
}

// TMO 136
TEST_F(TimeoutTest, ErrorsOfTheBodyPass) {
  auto fails = [](Timeout&) -> Coro<> {
    throw std::runtime_error("mine");
    co_return;
  };
  auto fails_when_cancelled = [](Timeout&) -> Coro<> {
    co_await NoThrow(Sleep(absl::Seconds(9)));
    throw std::runtime_error("in answer");
  };

  EXPECT_EQ(Run(WithTimeout(absl::Seconds(1), fails)), "mine");
  EXPECT_EQ(Run(WithTimeout(absl::Seconds(1), fails_when_cancelled)), "in answer");
}

TEST_F(TimeoutTest, AResultInSpiteOfTheCancellationIsAResult) {
  auto stubborn = [](Timeout& timeout) -> Coro<bool> {
    co_await NoThrow(Sleep(absl::Seconds(9)));
    co_return timeout.Expired();
  };
  const auto main = [&]() -> Coro<bool> {
    co_return co_await WithTimeout(absl::Seconds(1), stubborn);
  };

  EXPECT_TRUE(loop_.Run(main()));
}

// TMO 137
TEST_F(TimeoutTest, ReschedulesToLaterAndToSooner) {
  auto later = [&](Timeout& timeout) -> Coro<> {
    timeout.Reschedule(At(5));
    co_await Sleep(absl::Seconds(9));
  };
  EXPECT_EQ(Run(WithTimeoutAt(At(1), later)), "timeout");
  EXPECT_EQ(loop_.Now(), At(5));

  auto sooner = [&](Timeout& timeout) -> Coro<> {
    timeout.Reschedule(At(6));
    co_await Sleep(absl::Seconds(9));
  };
  EXPECT_EQ(Run(WithTimeoutAt(At(9), sooner)), "timeout");
  EXPECT_EQ(loop_.Now(), At(6));
}

TEST_F(TimeoutTest, CannotBeRescheduledOnceItHasExpired) {
  auto body = [&](Timeout& timeout) -> Coro<> {
    co_await NoThrow(Sleep(absl::Seconds(9)));
    timeout.Reschedule(At(20));
  };

  EXPECT_EQ(Run(WithTimeout(absl::Seconds(1), body)), "Cannot change state of expiring Timeout");
}

// TMO 138: only a task can await one, which the compiler sees to.
TEST_F(TimeoutTest, OneThatWasNotEnteredCannotBeRescheduled) {
  Timeout timeout;

  EXPECT_THAT([&] { timeout.Reschedule(At(1)); },
              ::testing::ThrowsMessage<RuntimeError>("Timeout has not been entered"));
  EXPECT_FALSE(timeout.Expired());
}

// TMO 139
TEST_F(TimeoutTest, CleanupOfACancelledTaskMayUseOneOfItsOwn) {
  std::vector<std::string> log;
  const auto main = [&]() -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(9)));
    log.push_back(co_await Describe(WithTimeout(absl::Seconds(5), After(1))));
    log.push_back(co_await Describe(WithTimeout(absl::Seconds(1), After(5))));
    outcome.value();
  };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_THAT(log, ElementsAre("value", "timeout"));
  EXPECT_TRUE(task.Cancelled());
}

// TMO 141
TEST_F(TimeoutTest, AtAMoment) {
  loop_.Advance(absl::Seconds(2));

  EXPECT_EQ(Run(WithTimeoutAt(At(3), After(9))), "timeout");
  EXPECT_EQ(loop_.Now(), At(3));
}

// A cancellation that comes in the round of the expiry is not lost behind it.
TEST_F(TimeoutTest, ARequestFromElsewhereInTheSameRoundIsNotSwallowed) {
  Task<std::string> task = CreateTask(Describe(WithTimeout(absl::Seconds(1), After(9))));
  loop_.RunRound();
  loop_.CallLater(absl::Seconds(1), [&] { task.Cancel(); });
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "cancelled");
  EXPECT_EQ(task.Cancelling(), 1);
}

TEST_F(TimeoutTest, MayBeMovedBeforeItIsAwaited) {
  auto fail = [text = std::string("a closure with something to destroy")](Timeout&) -> Coro<> {
    throw std::runtime_error(text);
    co_return;
  };
  auto first = WithTimeout(absl::Seconds(1), fail);
  auto second = std::move(first);

  EXPECT_EQ(Run(std::move(second)), "a closure with something to destroy");
}

TEST_F(TimeoutTest, IsGoneWithALoopThatClosesInTheMidstOfIt) {
  auto body = [](Timeout&) -> Coro<> { co_await Sleep(absl::Seconds(9)); };
  CreateTask(Describe(WithTimeout(absl::Seconds(1), body)));
  CreateTask(Describe(WithTimeout(absl::Seconds(1), After(9))));
  CreateTask(Describe(WithTimeout(absl::ZeroDuration(), After(9))));
  loop_.RunRound();

  loop_.Close();
}

}  // namespace
}  // namespace weft
