// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task.h"

#include <memory>
#include <sstream>
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
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

class TaskTest : public ::testing::Test {
 protected:
  Coro<> Log(std::string text) {
    log_.push_back(text);
    co_return;
  }
  Coro<int> After(int seconds) {
    co_await Sleep(absl::Seconds(seconds));
    co_return seconds;
  }
  // Waits until it is cancelled, says so, and cleans up for a round.
  Coro<> WaitAndClean(std::string name) {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
    log_.push_back(name + " cancelled");
    co_await NoThrow(Yield());
    log_.push_back(name + " clean");
    outcome.value();
  }
  template <class F>
  static std::string Thrown(F call) {
    try {
      call();
    } catch (...) {
      return DescribeException(std::current_exception());
    }
    return "nothing";
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// TASK 64
TEST_F(TaskTest, StartsWhenItsCreatorSuspends) {
  const auto main = [&]() -> Coro<> {
    CreateTask(Log("t"));
    log_.push_back("m");
    co_await Yield();
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("m", "t"));
}

// TASK 65
TEST_F(TaskTest, TasksTakeTurns) {
  const auto steps = [&](std::string name) -> Coro<> {
    for (int i = 0; i < 3; ++i) {
      log_.push_back(name + std::to_string(i));
      co_await Yield();
    }
  };
  for (const char* name : {"a", "b", "c"}) CreateTask(steps(name));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"));
}

// TASK 66
TEST_F(TaskTest, AwaitingACoroutineTakesNoRound) {
  const auto main = [&]() -> Coro<> {
    loop_.CallSoon([&] { log_.push_back("callback"); });
    co_await Log("c");
    log_.push_back("done");
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("c", "done", "callback"));
}

// TASK 67
TEST_F(TaskTest, ADoneOneHasItsResultOrError) {
  const auto fails = []() -> Coro<int> {
    throw std::runtime_error("failed");
    co_return 0;
  };
  Task<int> value = CreateTask(After(1));
  Task<int> error = CreateTask(fails());
  loop_.RunUntilIdle();

  EXPECT_EQ(value.Result(), 1);
  EXPECT_EQ(value.Exception(), nullptr);
  EXPECT_TRUE(error.Done());
  EXPECT_EQ(Thrown([&] { error.Result(); }), "std::runtime_error: failed");
  EXPECT_NE(error.Exception(), nullptr);
}

// TASK 69
TEST_F(TaskTest, CallbacksAndAwaitersStandInOneLine) {
  const auto awaits = [&](Task<> task) -> Coro<> {
    co_await task;
    log_.push_back("awaited");
  };
  const auto run = [&]() -> Coro<> {
    co_await Yield();
    log_.push_back("run");
  };
  Task<> task = CreateTask(run());
  task.AddDoneCallback([&](Future<>) { log_.push_back("cb"); });
  CreateTask(awaits(task));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("run", "cb", "awaited"));
}

// TASK 70, A-47
TEST_F(TaskTest, CannotAwaitItself) {
  Task<> task;
  const auto main = [&]() -> Coro<> { co_await task; };
  task = CreateTask(main());
  loop_.RunUntilIdle();

  EXPECT_THAT(Thrown([&] { task.Result(); }),
              StartsWith("weft::RuntimeError: Task cannot await on itself"));
}

//
TEST_F(TaskTest, CannotAwaitAFutureOfAnotherLoop) {
  auto other = std::make_unique<VirtualScheduler>();
  Future<> future = MakeFuture<void>(*other);
  const auto main = [&]() -> Coro<> { co_await future; };
  auto task = internal::StartTask(static_cast<Scheduler&>(loop_), main(), SourceLocation());
  loop_.RunUntilIdle();

  EXPECT_THAT(Thrown([&] { task.Result(); }), HasSubstr("attached to a different loop"));
}

// TASK 71
TEST_F(TaskTest, HasANameGivenOrMade) {
  Task<int> named = CreateTask(After(0), "worker");
  Task<int> unnamed = CreateTask(After(0));
  EXPECT_EQ(named.name(), "worker");
  EXPECT_THAT(unnamed.name(), MatchesRegex("Task-[0-9]+"));

  unnamed.SetName("renamed");

  EXPECT_EQ(unnamed.name(), "renamed");
}

// TASK 72, A-83
TEST_F(TaskTest, AllTasksAreThoseThatAreNotDone) {
  std::vector<std::string> names;
  const auto main = [&]() -> Coro<> {
    CreateTask(After(9), "other");
    co_await CreateTask(After(0), "done");
    for (const TaskRef& task : AllTasks()) names.push_back(task.name());
  };
  CreateTask(main(), "main");
  loop_.RunUntilIdle();

  EXPECT_THAT(names, ElementsAre("main", "other"));
}

// TASK 73, A-84
TEST_F(TaskTest, CurrentTaskIsTheOneThatRuns) {
  const auto steps = [&](std::string name) -> Coro<> {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(CurrentTask().name(), name);
      co_await Yield();
    }
  };
  CreateTask(steps("a"), "a");
  CreateTask(steps("b"), "b");
  loop_.CallSoon([] { EXPECT_FALSE(CurrentTask()); });
  loop_.RunUntilIdle();
  EXPECT_FALSE(CurrentTask());
}

// TASK 74, A-37
TEST_F(TaskTest, OneThatNobodyHoldsRunsOn) {
  const auto later = [&]() -> Coro<> {
    co_await MakeFuture<void>(loop_);
    log_.push_back("never");
  };
  CreateTask(Log("ran"));
  CreateTask(later());
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("ran"));
  EXPECT_EQ(AllTasks().size(), 1u);
}

// TASK 75
TEST_F(TaskTest, AnErrorThatNobodyReadIsReportedWhenTheLastReferenceGoes) {
  const auto fails = []() -> Coro<> {
    throw std::runtime_error("unheard");
    co_return;
  };
  {
    Task<> task = CreateTask(fails());
    loop_.RunUntilIdle();
    EXPECT_THAT(loop_.errors(), IsEmpty());
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre("Task exception was never retrieved"));
  CreateTask(fails());
  loop_.RunUntilIdle();
  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre("Task exception was never retrieved"));
}

// TASK 76
TEST_F(TaskTest, OnAClosedLoopItsCoroutineIsDestroyed) {
  auto held = std::make_shared<int>(0);
  const auto keeps = [](std::shared_ptr<int>) -> Coro<> { co_return; };
  loop_.Close();

  EXPECT_EQ(Thrown([&] { CreateTask(keeps(held)); }), "weft::RuntimeError: Event loop is closed");
  EXPECT_EQ(held.use_count(), 1);
}

// TASK 77
TEST_F(TaskTest, ItsTextNamesItsStateAndPlace) {
  Task<int> task = CreateTask(After(1), "worker");
  EXPECT_THAT(task.ToString(), StartsWith("<Task pending name='worker'"));
  loop_.RunRound();
  EXPECT_THAT(task.ToString(), HasSubstr("task_test.cc:"));
  task.Cancel();
  EXPECT_THAT(task.ToString(), StartsWith("<Task cancelling name='worker'"));
  loop_.RunUntilIdle();
  EXPECT_THAT(task.ToString(), StartsWith("<Task cancelled name='worker'"));

  Task<int> done = CreateTask(After(1), "done");
  loop_.RunUntilIdle();
  EXPECT_THAT(done.ToString(), AllOf(HasSubstr("finished name='done'"), HasSubstr("result=1")));
}

//
TEST_F(TaskTest, ItsStackIsTheChainOfAwaits) {
  const auto outer = [&]() -> Coro<> { co_await After(1); };
  Task<> task = CreateTask(outer());
  loop_.RunRound();

  const std::vector<StackFrame> stack = task.GetStack();
  ASSERT_EQ(stack.size(), 2u);
  EXPECT_THAT(std::string(stack[0].file()), HasSubstr("task_test.cc"));
  EXPECT_GT(stack[0].line(), stack[1].line());
  std::ostringstream out;
  task.PrintStack(out);
  EXPECT_THAT(out.str(), StartsWith("Stack for <Task pending"));
  loop_.RunUntilIdle();
  EXPECT_THAT(task.GetStack(), IsEmpty());
}

// CANC 78
TEST_F(TaskTest, CancelledBeforeItsStartItNeverRuns) {
  Task<> task = CreateTask(Log("ran"));

  EXPECT_TRUE(task.Cancel());
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(task.Cancelled());
  EXPECT_THROW(task.Result(), CancelledError);
}

// CANC 79, 81
TEST_F(TaskTest, ACancellationArrivesAtTheAwaitAndCleanupMayAwait) {
  Task<> task = CreateTask(WaitAndClean("task"));
  loop_.RunRound();
  task.Cancel();
  EXPECT_THAT(log_, IsEmpty());
  loop_.RunRound();
  EXPECT_THAT(log_, ElementsAre("task cancelled"));
  EXPECT_FALSE(task.Done());
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("task cancelled", "task clean"));
  EXPECT_TRUE(task.Cancelled());
}

// CANC 80, A-41
TEST_F(TaskTest, OneThatSwallowsACancellationIsNotCancelled) {
  const auto stubborn = []() -> Coro<int> {
    co_await NoThrow(Sleep(absl::Hours(1)));
    co_return 9;
  };
  Task<int> task = CreateTask(stubborn());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), 9);
  EXPECT_FALSE(task.Cancelled());
  EXPECT_EQ(task.Cancelling(), 1);
}

// CANC 82
TEST_F(TaskTest, OneThatCancelsItselfIsThrownItAtItsNextWait) {
  const auto main = [&]() -> Coro<> {
    CurrentTask().Cancel();
    log_.push_back("still");
    co_await Log("here");
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
    log_.push_back(outcome.cancelled() ? "cancelled" : "?");
    outcome.value();
  };
  Task<> task = CreateTask(main());
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("still", "here", "cancelled"));
  EXPECT_TRUE(task.Cancelled());
  EXPECT_EQ(loop_.Now(), TimePoint());
}

// CANC 84
TEST_F(TaskTest, TheInnerUnwindsBeforeTheOuter) {
  const auto outer = [&](Task<> inner) -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(inner);
    log_.push_back("outer");
    outcome.value();
  };
  Task<> inner = CreateTask(WaitAndClean("inner"));
  Task<> task = CreateTask(outer(inner));
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("inner cancelled", "inner clean", "outer"));
  EXPECT_TRUE(task.Cancelled());
}

// CANC 85
TEST_F(TaskTest, CancelOfADoneOneIsRefused) {
  Task<int> task = CreateTask(After(0));
  loop_.RunUntilIdle();

  EXPECT_FALSE(task.Cancel());
  EXPECT_EQ(task.Cancelling(), 0);
}

// CANC 86
TEST_F(TaskTest, RequestsAreCounted) {
  Task<int> task = CreateTask(After(1));
  loop_.RunRound();
  task.Cancel();
  task.Cancel();

  EXPECT_EQ(task.Cancelling(), 2);
  EXPECT_EQ(task.Uncancel(), 1);
  EXPECT_EQ(task.Uncancel(), 0);
  EXPECT_EQ(task.Uncancel(), 0);
}

// CANC 87
TEST_F(TaskTest, TheMessageOfACancellationArrives) {
  std::string inside;
  const auto main = [&]() -> Coro<> {
    try {
      co_await Sleep(absl::Hours(1));
    } catch (const CancelledError& error) {
      inside = error.message();
      throw;
    }
  };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  task.Cancel("why");
  loop_.RunUntilIdle();

  EXPECT_EQ(inside, "why");
  EXPECT_EQ(Thrown([&] { task.Result(); }), "weft::CancelledError: why");
}

TEST_F(TaskTest, AsAFutureItIsStillATask) {
  Future<int> future = CreateTask(After(1));

  EXPECT_EQ(Thrown([&] { future.SetResult(1); }),
            "weft::RuntimeError: Task does not support set_result operation");
  EXPECT_EQ(Thrown([&] { future.SetException(std::runtime_error("x")); }),
            "weft::RuntimeError: Task does not support set_exception operation");
  loop_.RunRound();
  EXPECT_TRUE(future.Cancel());
  EXPECT_FALSE(future.Done());
  loop_.RunUntilIdle();
  EXPECT_TRUE(future.Cancelled());
}

// CXX 98
TEST_F(TaskTest, KeepsTheFunctionAndItsArguments) {
  std::vector<std::string> seen;
  {
    const std::string argument = "a string that is too long to be kept in place";
    const auto function = [&seen, captured = argument](std::string text) -> Coro<> {
      co_await Yield();
      seen.push_back(text == captured ? "same" : "different");
    };
    CreateTask(function, argument);
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(seen, ElementsAre("same"));
}

TEST_F(TaskTest, NeedsARunningLoop) {
  loop_.Close();
  // The scheduler is current still, but closed.
  EXPECT_THROW(CreateTask(After(1)), RuntimeError);
}

// A ring is an error that is reported, not an overflow.
TEST_F(TaskTest, ARingOfTasksCanBeCancelled) {
  std::vector<Task<>> tasks(1'000);
  const auto awaits = [&](size_t next) -> Coro<> { co_await tasks[next]; };
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i] = CreateTask(awaits((i + 1) % tasks.size()));
  }
  loop_.RunRound();
  tasks[0].Cancel();
  loop_.RunUntilIdle();

  for (const Task<>& task : tasks) EXPECT_TRUE(task.Cancelled());
  EXPECT_EQ(loop_.TakeErrorMessages().size(), 1u);
}

TEST_F(TaskTest, AHundredThousandTasksInAChainAreCancelledWithoutRecursion) {
  std::vector<Task<>> tasks;
  const auto waits = [&]() -> Coro<> { co_await Sleep(absl::Hours(1)); };
  const auto awaits = [](Task<> task) -> Coro<> { co_await task; };
  tasks.push_back(CreateTask(waits()));
  for (int i = 0; i < 100'000; ++i) tasks.push_back(CreateTask(awaits(tasks.back())));
  loop_.RunRound();
  tasks.back().Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(tasks.back().Cancelled());
  EXPECT_TRUE(tasks.front().Cancelled());
}

}  // namespace
}  // namespace weft
