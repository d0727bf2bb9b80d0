// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/no_throw.h"

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

class NoThrowTest : public ::testing::Test {
 protected:
  Coro<std::unique_ptr<int>> Make() {
    co_await Yield();
    co_return std::make_unique<int>(3);
  }
  Coro<int> Fails() {
    co_await Yield();
    throw std::runtime_error("failed");
  }

  VirtualScheduler loop_;
};

TEST_F(NoThrowTest, GivesTheValueOrTheError) {
  const auto main = [&]() -> Coro<> {
    Outcome<std::unique_ptr<int>> value = co_await NoThrow(Make());
    EXPECT_EQ(**value, 3);
    Outcome<int> error = co_await NoThrow(Fails());
    EXPECT_THROW(error.value(), std::runtime_error);
    Outcome<int> of_task = co_await NoThrow(CreateTask(Fails()));
    EXPECT_THROW(of_task.value(), std::runtime_error);
    Future<int> future = MakeFuture<int>(loop_);
    future.Cancel();
    Outcome<int> cancelled = co_await NoThrow(future);
    EXPECT_TRUE(cancelled.cancelled());
  };

  loop_.Run(main());
}

TEST_F(NoThrowTest, ACancellationThatItGivesCountsAsDelivered) {
  int rounds = 0;
  const auto main = [&]() -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
    EXPECT_TRUE(outcome.cancelled());
    co_await Yield();
    ++rounds;
    outcome.value();
  };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(rounds, 1);
  EXPECT_TRUE(task.Cancelled());
}

TEST_F(NoThrowTest, MayBeMovedBeforeItIsAwaited) {
  const auto main = [&]() -> Coro<> {
    auto waiting = NoThrow(Fails());
    Outcome<int> outcome = co_await std::move(waiting);
    EXPECT_TRUE(outcome.has_exception());
    Outcome<Outcome<int>> twice = co_await NoThrow(NoThrow(Fails()));
    EXPECT_TRUE(twice.value().has_exception());
  };

  loop_.Run(main());
}

// Ready at once, and throws: of somebody else.
struct Foreign {
  Foreign() {}
  bool await_ready() const { return true; }
  void await_suspend(std::coroutine_handle<>) const {}
  int await_resume() const { throw 5; }
};

TEST_F(NoThrowTest, OfAnAwaiterThatIsNotWefts) {
  const auto main = []() -> Coro<int> {
    Outcome<int> outcome = co_await NoThrow(Foreign());
    try {
      outcome.value();
    } catch (int number) {
      co_return number;
    }
    co_return 0;
  };

  EXPECT_EQ(loop_.Run(main()), 5);
}

}  // namespace
}  // namespace weft
