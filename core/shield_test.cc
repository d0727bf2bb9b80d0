// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/shield.h"

#include <memory>
#include <stdexcept>
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
#include "weft/core/wait_for.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class ShieldTest : public ::testing::Test {
 protected:
  Coro<int> Slow() {
    co_await Sleep(absl::Seconds(5));
    finished_ = true;
    co_return 3;
  }
  Coro<int> Fails() {
    co_await Yield();
    throw std::runtime_error("failed");
  }

  bool finished_ = false;
  VirtualScheduler loop_;
};

// SHLD 125
TEST_F(ShieldTest, CancellingTheAwaiterLeavesTheInnerAlone) {
  const auto waits = [&]() -> Coro<> { co_await Shield(Slow()); };
  Task<> task = CreateTask(waits());
  loop_.RunRounds(2);

  task.Cancel();
  loop_.RunRounds(2);

  EXPECT_TRUE(task.Cancelled());
  EXPECT_FALSE(finished_);
  loop_.RunUntilIdle();
  EXPECT_TRUE(finished_);
}

// SHLD 126
TEST_F(ShieldTest, CancellingTheInnerCancelsIt) {
  Task<int> inner = CreateTask(Slow());
  Future<int> shield = Shield(inner);
  loop_.RunRound();

  inner.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(shield.Cancelled());
}

// SHLD 127
TEST_F(ShieldTest, PassesResultsAndErrorsOn) {
  const auto unique = []() -> Coro<std::unique_ptr<int>> {
    co_await Yield();
    co_return std::make_unique<int>(4);
  };
  const auto main = [&]() -> Coro<> {
    EXPECT_EQ(co_await Shield(Slow()), 3);
    std::unique_ptr<int> value = co_await Shield(unique());
    EXPECT_EQ(*value, 4);
    Outcome<int> outcome = co_await NoThrow(Shield(Fails()));
    EXPECT_THROW(outcome.value(), std::runtime_error);
  };

  loop_.Run(main());
}

// SHLD 128
TEST_F(ShieldTest, OfWhatIsDoneIsThatItself) {
  Future<int> future = MakeFuture<int>(loop_);
  future.SetResult(1);

  EXPECT_EQ(Shield(future), future);
}

// WFOR 119
TEST_F(ShieldTest, AWaitForThatTimesOutLeavesTheInnerAlone) {
  const auto main = [&]() -> Coro<> {
    Task<int> inner = CreateTask(Slow());
    Outcome<int> outcome = co_await NoThrow(WaitFor(Shield(inner), absl::Seconds(1)));
    EXPECT_THROW(outcome.value(), TimeoutError);
    EXPECT_FALSE(inner.Done());
    EXPECT_EQ(co_await inner, 3);
  };

  loop_.Run(main());
}

TEST_F(ShieldTest, CompletesWhenItIsDropped) {
  std::vector<int> results;
  Future<int> inner = MakeFuture<int>(loop_);
  Shield(inner).AddDoneCallback([&](Future<int> done) { results.push_back(done.Result()); });

  inner.SetResult(8);
  loop_.RunUntilIdle();

  EXPECT_THAT(results, ElementsAre(8));
}

TEST_F(ShieldTest, GoesWithAnInnerThatNobodyCanComplete) {
  auto held = std::make_shared<int>(0);
  Shield(MakeFuture<int>(loop_)).AddDoneCallback([held](const auto&) {});

  EXPECT_EQ(held.use_count(), 1);
}

// Whatever refers to whatever, and whatever of it was cancelled or ended: when
// nobody holds any of it, it goes.
TEST_F(ShieldTest, NothingOfARingThatIsDroppedIsKept) {
  auto held = std::make_shared<int>(0);
  for (int variant = 0; variant < 192; ++variant) {
    SCOPED_TRACE(variant);
    {
      Future<int> inner = MakeFuture<int>(loop_);
      Future<int> shield = Shield(inner);
      Future<int> outer = Shield(shield);
      auto gather = GatherOutcomes(outer, shield, inner);
      auto of_gather = Shield(gather);
      inner.AddDoneCallback([held](const auto&) {});
      shield.AddDoneCallback([held](const auto&) {});
      of_gather.AddDoneCallback([held](const auto&) {});
      if ((variant & 1) != 0) shield.Cancel();
      if ((variant & 2) != 0) outer.Cancel();
      if ((variant & 4) != 0) of_gather.Cancel();
      if ((variant & 8) != 0) gather.Cancel();
      if ((variant & 16) != 0 && !inner.Done()) inner.SetResult(1);
      loop_.RunRounds(variant >> 5);
    }
    loop_.RunUntilIdle();

    EXPECT_EQ(held.use_count(), 1);
  }
}

TEST_F(ShieldTest, ManyInsideEachOtherGoWithoutRecursion) {
  const auto nest = [](Future<int> inner) {
    for (int i = 0; i < 200'000; ++i) inner = Shield(inner);
    return inner;
  };
  Future<int> inner = MakeFuture<int>(loop_);
  Future<int> outer = nest(inner);
  inner.SetResult(8);
  loop_.RunUntilIdle();
  EXPECT_EQ(outer.Result(), 8);
  outer = Future<int>();

  auto held = std::make_shared<int>(0);
  outer = nest(MakeFuture<int>(loop_));
  outer.AddDoneCallback([held](const auto&) {});
  outer = Future<int>();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(ShieldTest, AnErrorBehindACancelledShieldIsReportedAsTheInners) {
  const auto waits = [&]() -> Coro<> { co_await Shield(Fails()); };
  Task<> task = CreateTask(waits());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre("Task exception was never retrieved"));
}

TEST_F(ShieldTest, IsGoneWithALoopThatClosesInTheMidstOfIt) {
  Future<int> kept = Shield(Slow());
  const auto waits = [&]() -> Coro<> { co_await Shield(Slow()); };
  CreateTask(waits());
  loop_.RunRounds(3);

  loop_.Close();

  EXPECT_FALSE(kept.Done());
  EXPECT_TRUE(kept.Cancel());
}

}  // namespace
}  // namespace weft
