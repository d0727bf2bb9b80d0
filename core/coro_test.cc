// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/coro.h"

#include <algorithm>
#include <coroutine>
#include <cstdint>
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

using ::testing::ElementsAre;

// Where the stack is, roughly.
[[gnu::noinline]] uintptr_t StackHere() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

class CoroTest : public ::testing::Test {
 protected:
  struct Guard {
    Guard(std::vector<std::string>* target, std::string text) : log(target), name(text) {}
    Guard(Guard&& other) noexcept
        : log(std::exchange(other.log, nullptr)), name(std::move(other.name)) {}
    ~Guard() {
      if (log != nullptr) log->push_back(name);
    }
    std::vector<std::string>* log;
    std::string name;
  };

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// CXX 89
TEST_F(CoroTest, ValuesOfAllKindsArriveIntact) {
  struct NoDefault {
    explicit NoDefault(int number) : value(number) {}
    int value;
  };
  int referred = 1;
  const auto nothing = []() -> Coro<> { co_return; };
  const auto unique = []() -> Coro<std::unique_ptr<int>> { co_return std::make_unique<int>(2); };
  const auto no_default = []() -> Coro<NoDefault> { co_return NoDefault(3); };
  const auto reference = [&]() -> Coro<int&> { co_return referred; };
  const auto main = [&]() -> Coro<int> {
    co_await nothing();
    std::unique_ptr<int> first = co_await unique();
    NoDefault second = co_await no_default();
    int& third = co_await reference();
    EXPECT_EQ(&third, &referred);
    int& fourth = co_await CreateTask(reference());
    EXPECT_EQ(&fourth, &referred);
    std::unique_ptr<int> fifth = co_await CreateTask(unique());
    NoDefault sixth = co_await CreateTask(no_default());
    co_await CreateTask(nothing());
    co_return *first + second.value + *fifth + sixth.value;
  };

  EXPECT_EQ(loop_.Run(main()), 10);
}

// CXX 89
TEST_F(CoroTest, AValueIsNotCopiedOnItsWay) {
  struct Counted {
    explicit Counted(int* count) : copies(count) {}
    Counted(const Counted& other) : copies(other.copies) { ++*copies; }
    Counted(Counted&& other) = default;
    int* copies;
  };
  int copies = 0;
  const auto make = [&]() -> Coro<Counted> {
    Counted value(&copies);
    co_return value;
  };
  const auto main = [&]() -> Coro<> {
    Counted first = co_await make();
    Counted second = co_await CreateTask(make());
    (void)first;
    (void)second;
  };

  loop_.Run(main());
  EXPECT_EQ(copies, 0);
}

// CXX 90
TEST_F(CoroTest, WhateverIsThrownIsCaughtAsItWas) {
  const auto throws_number = []() -> Coro<> {
    throw 5;
    co_return;
  };
  const auto throws_text = []() -> Coro<> {
    throw "text";
    co_return;
  };
  const auto main = [&]() -> Coro<> {
    try {
      co_await throws_number();
    } catch (int number) {
      log_.push_back(std::to_string(number));
    }
    try {
      co_await CreateTask(throws_text());
    } catch (const char* text) {
      log_.push_back(text);
    }
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("5", "text"));
}

// CXX 91
TEST_F(CoroTest, AnErrorBeforeTheFirstSuspensionAppearsAtTheAwait) {
  const auto throws = []() -> Coro<> {
    throw std::runtime_error("at once");
    co_return;
  };
  Coro<> coro = throws();
  const auto main = [&]() -> Coro<std::string> {
    try {
      co_await std::move(coro);
    } catch (const std::runtime_error& error) {
      co_return error.what();
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "at once");
}

// CXX 92
TEST_F(CoroTest, OneThatIsNeverAwaitedOnlyDestroysItsArguments) {
  const auto never = [&](Guard) -> Coro<> {
    log_.push_back("ran");
    co_return;
  };
  {
    Coro<> coro = never(Guard(&log_, "argument"));
  }

  EXPECT_THAT(log_, ElementsAre("argument"));
}

TEST_F(CoroTest, CannotBeAwaitedTwice) {
  const auto nothing = []() -> Coro<> { co_return; };
  const auto main = [&]() -> Coro<std::string> {
    Coro<> coro = nothing();
    co_await std::move(coro);
    EXPECT_FALSE(coro);  // NOLINT(bugprone-use-after-move): what it is about.
    try {
      co_await std::move(coro);
    } catch (const RuntimeError& error) {
      co_return error.what();
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "cannot reuse already awaited coroutine");
}

// CXX 93
TEST_F(CoroTest, LocalsOfNestedFramesGoInnermostFirst) {
  const auto inner = [&]() -> Coro<> {
    Guard first(&log_, "inner 1");
    Guard second(&log_, "inner 2");
    co_await Sleep(absl::Hours(1));
  };
  const auto middle = [&]() -> Coro<> {
    Guard guard(&log_, "middle");
    co_await inner();
  };
  const auto outer = [&]() -> Coro<> {
    Guard guard(&log_, "outer");
    co_await middle();
  };
  Task<> task = CreateTask(outer());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("inner 2", "inner 1", "middle", "outer"));

  // The same when the loop closes in the midst of it.
  log_.clear();
  CreateTask(outer());
  loop_.RunRound();
  loop_.Close();
  EXPECT_THAT(log_, ElementsAre("inner 2", "inner 1", "middle", "outer"));
}

// CXX 94
TEST_F(CoroTest, AMillionAwaitsThatDoNotSuspend) {
  const auto number = [](int value) -> Coro<int> { co_return value; };
  uintptr_t first = 0;
  const auto main = [&]() -> Coro<int64_t> {
    first = StackHere();
    int64_t sum = 0;
    Future<int> done = MakeFuture<int>(loop_);
    done.SetResult(1);
    for (int i = 0; i < 1'000'000; ++i) {
      sum += co_await number(i);
      sum += co_await done;
    }
    const uintptr_t last = StackHere();
    EXPECT_LT(std::max(first, last) - std::min(first, last), 4096u);
    co_return sum;
  };

  EXPECT_EQ(loop_.Run(main()), int64_t{499'999'500'000} + 1'000'000);
}

// CXX 94
TEST_F(CoroTest, AMillionAwaitsInsideEachOther) {
  struct Recursive {
    static Coro<int> Down(int depth) {
      if (depth == 0) co_return 0;
      const int below = co_await Down(depth - 1);
      co_return below + 1;
    }
  };

  EXPECT_EQ(loop_.Run(Recursive::Down(1'000'000)), 1'000'000);
}

// CXX 95
TEST_F(CoroTest, DeepRecursionThatSuspendsAtTheBottom) {
  struct Recursive {
    static Coro<int> Down(int depth) {
      if (depth == 0) {
        co_await Yield();
        co_return 0;
      }
      const int below = co_await Down(depth - 1);
      co_return below + 1;
    }
  };

  EXPECT_EQ(loop_.Run(Recursive::Down(100'000)), 100'000);
}

TEST_F(CoroTest, DeepRecursionIsDestroyedAndThrownThroughWithoutRecursion) {
  struct Recursive {
    static Coro<> Down(int depth) {
      if (depth == 0) co_await Sleep(absl::Hours(1));
      if (depth > 0) co_await Down(depth - 1);
    }
  };
  Task<> cancelled = CreateTask(Recursive::Down(10'000));
  loop_.RunRound();
  cancelled.Cancel();
  loop_.RunUntilIdle();
  EXPECT_TRUE(cancelled.Cancelled());

  Task<> destroyed = CreateTask(Recursive::Down(100'000));
  loop_.RunRound();
  loop_.Close();
  EXPECT_FALSE(destroyed.Done());
}

// CANC 88
TEST_F(CoroTest, AChainOfAThousandIsCancelledInnermostFirst) {
  struct Recursive {
    static Coro<> Down(int depth, std::vector<int>* order) {
      Outcome<void> outcome;
      if (depth == 0) {
        outcome = co_await NoThrow(Sleep(absl::Hours(1)));
      } else {
        outcome = co_await NoThrow(Down(depth - 1, order));
      }
      order->push_back(depth);
      outcome.value();
    }
  };
  std::vector<int> order;
  Task<> task = CreateTask(Recursive::Down(999, &order));
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  ASSERT_EQ(order.size(), 1'000u);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(order[i], i);
}

// CXX 96
TEST_F(CoroTest, DestructorsOfFramesThatGoWithTheLoopMayCallIntoIt) {
  bool refused = false;
  struct Caller {
    Caller(Scheduler* scheduler, Future<> target, bool* was_refused)
        : loop(scheduler), future(std::move(target)), refused(was_refused) {}
    ~Caller() {
      future.SetResult();
      try {
        loop->CallSoon([] {});
      } catch (const RuntimeError&) {
        *refused = true;
      }
    }
    Scheduler* loop;
    Future<> future;
    bool* refused;
  };
  Future<> future = MakeFuture<void>(loop_);
  const auto waits = [&]() -> Coro<> {
    Caller caller(&loop_, future, &refused);
    co_await Sleep(absl::Hours(1));
  };
  CreateTask(waits());
  loop_.RunRound();

  loop_.Close();

  EXPECT_TRUE(refused);
  EXPECT_TRUE(future.Done());
}

// An awaiter that knows nothing of tasks: it is given a handle to resume.
struct Foreign {
  explicit Foreign(std::coroutine_handle<>* target) : handle(target) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) { *handle = waiting; }
  int await_resume() const { return 8; }
  std::coroutine_handle<>* handle;
};

TEST_F(CoroTest, AwaitsWhatIsNotWefts) {
  std::coroutine_handle<> handle;
  const auto main = [&]() -> Coro<int> {
    const int value = co_await Foreign(&handle);
    log_.push_back("resumed");
    co_return value;
  };
  Task<int> task = CreateTask(main());
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());

  handle.resume();
  EXPECT_THAT(log_, ElementsAre());  // It only queues the task.
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), 8);
}

TEST_F(CoroTest, ACancellationOfAForeignAwaitArrivesWhenThatIsOver) {
  std::coroutine_handle<> handle;
  const auto main = [&]() -> Coro<int> { co_return co_await Foreign(&handle); };
  Task<int> task = CreateTask(main());
  loop_.RunUntilIdle();

  task.Cancel();
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());
  handle.resume();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
}

// Each has the next as a parameter. A stack of eight megabytes would hold some ten thousand
// of their destructors.
constexpr int kLongChain = 100'000;

Coro<> Nest(Coro<> inner) { co_await std::move(inner); }
Coro<> NestLate(Coro<> inner) {
  co_await Sleep(absl::Hours(1));
  co_await std::move(inner);
}
template <class Link>
Coro<> Chain(Link link) {
  Coro<> chain = []() -> Coro<> { co_return; }();
  for (int i = 0; i < kLongChain; ++i) chain = link(std::move(chain));
  return chain;
}

TEST_F(CoroTest, AChainOfCoroutinesThatIsDroppedNeedsNoStack) {
  internal::NeverAwaitedIsFine silence;
  Coro<> chain = Chain(&Nest);
  chain.Close();
}

TEST_F(CoroTest, AChainThatIsCancelledBeforeItIsAwaitedNeedsNoStack) {
  internal::NeverAwaitedIsFine silence;
  for (Coro<> (*link)(Coro<>) : {&Nest, &NestLate}) {
    for (const bool is_started : {false, true}) {
      if (link == &Nest && is_started) continue;  // It runs to its end.
      Task<> task = CreateTask(Chain(link));
      if (is_started) loop_.RunRound();
      task.Cancel();
      loop_.RunUntilIdle();
      EXPECT_TRUE(task.Cancelled());
    }
  }
}

TEST_F(CoroTest, AChainThatGoesWithItsLoopNeedsNoStack) {
  CreateTask(Chain(&NestLate));
  loop_.RunRound();
  loop_.Close();
}

TEST_F(CoroTest, AllOfAChainGoesThatIsDropped) {
  internal::NeverAwaitedIsFine silence;
  const auto link = [](Coro<> inner, Guard guard) -> Coro<> {
    (void)guard;
    co_await std::move(inner);
  };
  Coro<> chain = []() -> Coro<> { co_return; }();
  for (int i = 0; i < 1000; ++i) chain = link(std::move(chain), Guard(&log_, std::to_string(i)));
  EXPECT_THAT(log_, ElementsAre());

  chain.Close();

  EXPECT_EQ(log_.size(), 1000u);
}

}  // namespace
}  // namespace weft
