// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/no_throw.h"

#include <coroutine>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/async_generator.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/gather.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

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

// How the await of NoThrow(make()) ended, in words.
template <class Make>
Coro<std::string> Ending(Make make) {
  try {
    auto outcome = co_await NoThrow(make());
    if (outcome.has_value()) co_return "value";
    co_return DescribeException(outcome.exception());
  } catch (...) {
    co_return "thrown";
  }
}

// What is wrong is found out when the awaiter is made, asked whether it is ready,
// or suspended: nothing of it is thrown.
TEST_F(NoThrowTest, AMisuseIsAnOutcomeToo) {
  Future<int> foreign = MakeFuture<int>(loop_);
  VirtualScheduler loop;
  const auto one = []() -> Coro<int> { co_return 1; };
  Coro<int> used = one();
  const auto ending = [&](auto make) { return loop.Run(Ending(make)); };
  EXPECT_EQ(ending([&] { return std::move(used); }), "value");

  const std::string reused = "weft::RuntimeError: cannot reuse already awaited coroutine";
  EXPECT_EQ(ending([&] { return std::move(used); }), reused);
  EXPECT_EQ(ending([&] { return WithTimeout(absl::Seconds(1), std::move(used)); }), reused);
  EXPECT_EQ(ending([&] { return WaitFor(std::move(used), absl::Seconds(1)); }), reused);
  EXPECT_EQ(ending([&] { return WaitFor(std::move(used), absl::ZeroDuration()); }), reused);
  EXPECT_EQ(ending([&] { return NoThrow(std::move(used)); }), "value");  // An outcome.

  EXPECT_THAT(ending([] { return Future<int>(); }), HasSubstr("This future is empty"));
  EXPECT_THAT(ending([&] { return foreign; }), HasSubstr("attached to a different loop"));
  EXPECT_THAT(ending([&] { return WaitFor(foreign, absl::ZeroDuration()); }),
              HasSubstr("attached to a different loop"));
  EXPECT_THAT(ending([&] { return Wait(std::vector<Future<int>>{foreign}); }),
              HasSubstr("attached to a different loop"));
  EXPECT_EQ(ending([] { return Wait(std::vector<Future<int>>()); }),
            "weft::ValueError: Set of Tasks/Futures is empty.");
  EXPECT_FALSE(foreign.Done());

  const auto body = [&](Timeout&) -> Coro<int> {
    throw std::runtime_error("no coroutine");
    return one();
  };
  EXPECT_EQ(ending([&] { return WithTimeout(absl::Seconds(1), body); }),
            "std::runtime_error: no coroutine");
  const auto group_body = [&](TaskGroup&) -> Coro<int> {
    throw std::runtime_error("no coroutine");
    return one();
  };
  EXPECT_THAT(ending([&] { return WithTaskGroup(group_body); }), HasSubstr("ExceptionGroup"));
}

TEST_F(NoThrowTest, AGeneratorThatRunsElsewhereIsAnOutcome) {
  const auto generate = []() -> AsyncGenerator<int> {
    co_await Sleep(absl::Seconds(1));
    co_yield 1;
  };
  AsyncGenerator<int> generator = generate();
  const auto next = [&]() -> Coro<> { co_await generator.Next(); };
  Task<> task = CreateTask(next());
  loop_.RunRound();

  EXPECT_THAT(loop_.Run(Ending([&] { return generator.Next(); })), HasSubstr("already running"));
  generator = generate();
  task = CreateTask(next());
  loop_.RunRound();
  EXPECT_THAT(loop_.Run(Ending([&] { return generator.Close(); })), HasSubstr("already running"));
}

// Throws where it is told to; of somebody else.
struct Throwing {
  explicit Throwing(std::string at) : where(std::move(at)) {}
  void At(const char* here) const {
    if (where == here) throw std::runtime_error(where);
  }
  bool await_ready() const {
    At("ready");
    return false;
  }
  void await_suspend(std::coroutine_handle<> handle) const {
    At("suspend");
    handle.resume();
    At("suspend, resumed already");
  }
  int await_resume() const {
    At("resume");
    return 1;
  }
  std::string where;
};

TEST_F(NoThrowTest, SomebodyElsesAwaiterMayThrowAnywhere) {
  for (const char* where : {"ready", "suspend", "suspend, resumed already", "resume"}) {
    EXPECT_EQ(loop_.Run(Ending([&] { return Throwing(where); })),
              std::string("std::runtime_error: ") + where);
    const auto main = [&]() -> Coro<std::string> {
      try {
        co_await Throwing(where);
      } catch (const std::runtime_error& error) {
        co_return error.what();
      }
      co_return "";
    };
    EXPECT_EQ(loop_.Run(main()), where);
  }
  EXPECT_EQ(loop_.Run(Ending([] { return Throwing("nowhere"); })), "value");
}

// Its moves throw, after so many; none if negative.
struct Fragile {
  Fragile() { ++alive; }
  Fragile(Fragile&&) : Fragile() {
    if (moves_left >= 0 && moves_left-- == 0) throw std::runtime_error("moved");
  }
  ~Fragile() { --alive; }
  static inline int moves_left = -1;
  static inline int alive = 0;
};

// Ready at once, and an awaiter itself or of which one is made.
struct FragileAwaiter : Fragile {
  bool await_ready() const { return true; }
  void await_suspend(std::coroutine_handle<>) const {}
  int await_resume() const { return 1; }
};
struct FragileAwaitable : Fragile {
  FragileAwaiter operator co_await() && {
    Fragile moved(std::move(*this));
    return FragileAwaiter();
  }
};

TEST_F(NoThrowTest, AnAwaitableWhoseMoveThrowsIsAnOutcome) {
  const auto main = [](auto first, auto second, int moves) -> Coro<> {
    auto waiting = NoThrow(std::move(first));
    Fragile::moves_left = moves;
    auto outcome = co_await std::move(waiting);
    EXPECT_TRUE(outcome.has_value() || moves < 2);
    Fragile::moves_left = -1;
    auto timeout = NoThrow(WithTimeout(absl::Seconds(1), std::move(second)));
    Fragile::moves_left = moves;
    auto in_time = co_await std::move(timeout);
    EXPECT_TRUE(in_time.has_value() || moves < 3);
    Fragile::moves_left = -1;
  };
  for (int moves = 0; moves < 8; ++moves) {
    Fragile::moves_left = -1;
    loop_.Run(main(FragileAwaiter(), FragileAwaiter(), moves));
    loop_.Run(main(FragileAwaitable(), FragileAwaitable(), moves));
    EXPECT_EQ(Fragile::alive, 0);
  }
}

TEST_F(NoThrowTest, AValueWhoseMoveThrowsIsAnOutcome) {
  const auto make = [](bool waits) -> Coro<Fragile> {
    if (waits) co_await NoThrow(Yield());
    co_return Fragile();
  };
  const auto run = [&](const char* what, auto made) {
    bool has_value = false;
    for (int moves = 0; moves < 20; ++moves) {
      Fragile::moves_left = moves;
      const std::string ending = loop_.Run(Ending(made));
      Fragile::moves_left = -1;
      EXPECT_THAT(ending, AnyOf("value", "std::runtime_error: moved")) << what << moves;
      EXPECT_EQ(Fragile::alive, 0) << what << moves;
      has_value = ending == "value";
    }
    EXPECT_TRUE(has_value) << what;
  };

  for (const bool waits : {false, true}) {
    run("coroutine", [&] { return make(waits); });
    run("task", [&] { return CreateTask(make(waits)); });
    run("shield", [&] { return Shield(make(waits)); });
    run("gather", [&] { return Gather(make(waits), make(waits)); });
    run("outcomes", [&] { return GatherOutcomes(make(waits), make(waits)); });
    run("timeout", [&] { return WithTimeout(absl::Seconds(1), make(waits)); });
    run("wait for", [&] { return WaitFor(make(waits), absl::Seconds(1)); });
    run("no throw", [&] { return NoThrow(make(waits)); });
    // A result in spite of the cancellation.
    run("expired", [&] { return WithTimeout(absl::ZeroDuration(), make(waits)); });
  }
}

}  // namespace
}  // namespace weft
