// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/gather.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
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

class GatherTest : public ::testing::Test {
 protected:
  Coro<int> After(int seconds, int value) {
    log_.push_back("start " + std::to_string(value));
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(seconds)));
    if (outcome.cancelled()) log_.push_back("cancelled " + std::to_string(value));
    outcome.value();
    log_.push_back("end " + std::to_string(value));
    co_return value;
  }
  Coro<int> Fail(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    throw std::runtime_error("failed");
  }
  Coro<std::unique_ptr<int>> MakeUnique(int value) {
    co_await Yield();
    co_return std::make_unique<int>(value);
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// GATH 102, A-39
TEST_F(GatherTest, ResultsComeInTheOrderOfTheArguments) {
  const auto main = [&]() -> Coro<> {
    auto [a, b, c] = co_await Gather(After(3, 1), After(1, 2), Sleep(absl::Seconds(2)));
    EXPECT_EQ(a, 1);
    EXPECT_EQ(b, 2);
    EXPECT_EQ(c, std::monostate());
    std::vector<Coro<int>> many;
    for (int i = 0; i < 5; ++i) many.push_back(After(5 - i, i));
    EXPECT_THAT(co_await Gather(std::move(many)), ElementsAre(0, 1, 2, 3, 4));
  };

  loop_.Run(main());
}

// GATH 102
TEST_F(GatherTest, OfNothingIsDoneAndEmpty) {
  const auto main = [&]() -> Coro<> {
    std::tuple<> nothing = co_await Gather();
    (void)nothing;
    Future<std::vector<int>> none = Gather(std::vector<Task<int>>());
    EXPECT_TRUE(none.Done());
    EXPECT_THAT(co_await none, ElementsAre());
  };

  loop_.Run(main());
}

// GATH 103
TEST_F(GatherTest, FirstFailureEndsItAndTheOthersGoOn) {
  const auto main = [&]() -> Coro<> {
    Task<int> slow = CreateTask(After(5, 1));
    auto outcome = co_await NoThrow(Gather(slow, Fail(1)));
    EXPECT_TRUE(outcome.has_exception());
    EXPECT_FALSE(outcome.cancelled());
    EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(1));
    EXPECT_EQ(co_await slow, 1);
  };

  loop_.Run(main());
}

// GATH 104
TEST_F(GatherTest, OutcomesKeepEachFailureInItsPlace) {
  const auto main = [&]() -> Coro<> {
    Task<int> cancelled = CreateTask(After(9, 2));
    cancelled.Cancel();
    auto [a, b, c] = co_await GatherOutcomes(After(2, 1), Fail(1), cancelled);
    EXPECT_EQ(a.value(), 1);
    EXPECT_THROW(b.value(), std::runtime_error);
    EXPECT_TRUE(c.cancelled());
    std::vector<Coro<int>> many;
    many.push_back(Fail(1));
    many.push_back(After(1, 7));
    std::vector<Outcome<int>> outcomes = co_await GatherOutcomes(std::move(many));
    EXPECT_TRUE(outcomes[0].has_exception());
    EXPECT_EQ(*outcomes[1], 7);
  };

  loop_.Run(main());
  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre());
}

// GATH 105
TEST_F(GatherTest, CancellingTheAwaiterCancelsAllChildrenFirst) {
  const auto gathers = [&]() -> Coro<> {
    Outcome<std::tuple<int, int>> outcome = co_await NoThrow(Gather(After(5, 1), After(6, 2)));
    log_.push_back(outcome.cancelled() ? "gather cancelled" : "?");
    outcome.value();
  };
  Task<> task = CreateTask(gathers());
  loop_.RunRounds(2);
  log_.clear();

  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("cancelled 1", "cancelled 2", "gather cancelled"));
  EXPECT_TRUE(task.Cancelled());
}

// GATH 106
TEST_F(GatherTest, AChildThatIsCancelledOnItsOwnEndsItAsCancelled) {
  const auto main = [&]() -> Coro<> {
    Task<int> victim = CreateTask(After(5, 1));
    Task<int> other = CreateTask(After(5, 2));
    Future<std::tuple<int, int>> gather = Gather(victim, other);
    victim.Cancel();
    auto outcome = co_await NoThrow(gather);
    EXPECT_TRUE(outcome.cancelled());
    EXPECT_FALSE(gather.Cancelled());  // It ended with an error, as in CPython.
    EXPECT_FALSE(other.Done());
    EXPECT_EQ(co_await other, 2);
  };

  loop_.Run(main());
}

// GATH 107
TEST_F(GatherTest, CoroutinesBecomeTasksAtTheCallInTheirOrder) {
  const auto main = [&]() -> Coro<> {
    auto gather = Gather(After(1, 1), After(1, 2), After(1, 3));
    EXPECT_EQ(AllTasks().size(), 4u);
    co_await gather;
  };

  loop_.Run(main());
  log_.resize(3);
  EXPECT_THAT(log_, ElementsAre("start 1", "start 2", "start 3"));
}

// CXX 97
TEST_F(GatherTest, ResultsAreMovedOut) {
  const auto main = [&]() -> Coro<> {
    auto [a, b] = co_await Gather(MakeUnique(1), MakeUnique(2));
    EXPECT_EQ(*a + *b, 3);
    std::vector<Coro<std::unique_ptr<int>>> many;
    many.push_back(MakeUnique(4));
    std::vector<std::unique_ptr<int>> all = co_await Gather(std::move(many));
    EXPECT_EQ(*all[0], 4);
  };

  loop_.Run(main());
}

// CXX 90
TEST_F(GatherTest, ThrowsTheVeryTypeThatAChildThrew) {
  const auto throws = []() -> Coro<> {
    co_await Yield();
    throw 7;
  };
  const auto main = [&]() -> Coro<int> {
    int caught = 0;
    try {
      co_await Gather(throws());
    } catch (int number) {
      caught = number;
    }
    co_return caught;
  };

  EXPECT_EQ(loop_.Run(main()), 7);
}

TEST_F(GatherTest, ReferencesComeAsReferenceWrappers) {
  int kept = 0;
  const auto refers = [&]() -> Coro<int&> {
    co_await Yield();
    co_return kept;
  };
  const auto main = [&]() -> Coro<> {
    auto [reference] = co_await Gather(refers());
    reference.get() = 5;
  };

  loop_.Run(main());
  EXPECT_EQ(kept, 5);
}

TEST_F(GatherTest, AChildGivenTwiceCountsOnceAndIsAskedTwice) {
  Task<int> child = CreateTask(After(5, 1));
  auto gather = Gather(child, child);
  loop_.RunRound();

  EXPECT_TRUE(gather.Cancel());

  EXPECT_EQ(child.Cancelling(), 2);
  loop_.RunUntilIdle();
  EXPECT_TRUE(gather.Done());
}

TEST_F(GatherTest, EndsAsCancelledEvenIfTheChildrenDoNot) {
  const auto stubborn = []() -> Coro<int> {
    co_await NoThrow(Sleep(absl::Seconds(1)));
    co_return 1;
  };
  Task<int> child = CreateTask(stubborn());
  auto gather = GatherOutcomes(child);
  loop_.RunRound();
  gather.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(child.Result(), 1);
  EXPECT_THROW(gather.Result(), CancelledError);
}

// It ends, and calls its callbacks, though nobody holds it.
TEST_F(GatherTest, GoesOnWhenItIsDropped) {
  bool called = false;
  Future<> future = MakeFuture<void>(loop_);
  Gather(After(1, 1), future).AddDoneCallback([&](const auto&) { called = true; });
  loop_.RunUntilIdle();
  EXPECT_FALSE(called);

  future.SetResult();
  loop_.RunUntilIdle();

  EXPECT_TRUE(called);
}

TEST_F(GatherTest, GoesWithChildrenThatNobodyCanComplete) {
  auto held = std::make_shared<int>(0);
  {
    Future<> future = MakeFuture<void>(loop_);
    Gather(future, future).AddDoneCallback([held](const auto&) {});
    EXPECT_EQ(held.use_count(), 2);
  }

  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(GatherTest, KeepsChildrenThatOnlyItsAwaiterCanCancel) {
  const auto awaits = [&]() -> Coro<> { co_await Gather(MakeFuture<void>(loop_)); };
  Task<> task = CreateTask(awaits());
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());

  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
}

TEST_F(GatherTest, IsGoneWithALoopThatClosesInTheMidstOfIt) {
  const auto awaits = [&]() -> Coro<> { co_await Gather(After(5, 1), After(6, 2)); };
  CreateTask(awaits());
  loop_.RunRounds(2);
  Task<int> child = CreateTask(After(1, 3));
  Gather(child, After(7, 4)).AddDoneCallback([](const auto&) {});
  loop_.RunRounds(1);

  loop_.Close();

  EXPECT_FALSE(child.Done());
}

TEST_F(GatherTest, AnErrorThatNobodyRetrievesIsReported) {
  {
    auto gather = Gather(Fail(1), Fail(2));
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre("Future exception was never retrieved"));
}

// As CPython looks at each child before it says that it was cancelled.
TEST_F(GatherTest, WhatItsChildrenFailedWithIsNotReportedWhenItIsCancelled) {
  const auto main = [&]() -> Coro<> {
    Task<> outcomes =
        CreateTask([&]() -> Coro<> { co_await GatherOutcomes(Fail(1), After(10, 1), Fail(2)); });
    Task<> values = CreateTask([&]() -> Coro<> { co_await Gather(After(10, 2), After(10, 3)); });
    co_await Sleep(absl::Seconds(3));
    outcomes.Cancel();
    values.Cancel();
    for (Task<>* task : {&outcomes, &values}) {
      Outcome<void> outcome = co_await NoThrow(std::move(*task));
      EXPECT_TRUE(outcome.cancelled());
    }
    for (int i = 0; i < 3; ++i) co_await Yield();
  };
  loop_.Run(main());
  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre());
}

TEST_F(GatherTest, ManyChildren) {
  const auto main = [&]() -> Coro<size_t> {
    std::vector<Coro<>> many;
    for (int i = 0; i < 10'000; ++i) many.push_back([]() -> Coro<> { co_await Yield(); }());
    auto results = co_await Gather(std::move(many));
    co_return results.size();
  };

  EXPECT_EQ(loop_.Run(main()), 10'000u);
}

}  // namespace
}  // namespace weft
