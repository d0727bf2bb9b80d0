// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task.h"

#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/testing/matches_regex.h"
#include "weft/testing/thrown_by.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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
  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// TASK 64, A-32
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

// neither calls nor what is done already let others run.
TEST_F(TaskTest, OnlyAWaitAReturnOrAnErrorGivesUpTheTurn) {
  Future<> done = MakeFuture<void>(loop_);
  done.SetResult();
  const auto works = [&](std::string name, std::string how) -> Coro<> {
    for (int i = 0; i < 3; ++i) {
      co_await Log(name + std::to_string(i));
      co_await done;
    }
    if (how == "throws") throw std::runtime_error(how);
    if (how == "waits") co_await Yield();
    log_.push_back(name + how);
  };
  Task<> waits = CreateTask(works("a", "waits"));
  Task<> returns = CreateTask(works("b", "returns"));
  Task<> throws = CreateTask(works("c", "throws"));
  CreateTask(Log("d"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("a0", "a1", "a2", "b0", "b1", "b2", "breturns", "c0", "c1", "c2",
                                "d", "awaits"));
  EXPECT_NE(throws.Exception(), nullptr);
}

// The root's frame goes within the task's last step: what it holds runs as the task, in
// its context, and before anybody who waits for it. As in CPython, where a coroutine's
// variables go while the task runs it.
TEST_F(TaskTest, WhatARootCoroutineHoldsGoesWithinTheLastStep) {
  struct Held {
    explicit Held(std::vector<std::string>* target) : log(target) {}
    Held(Held&& other) noexcept : log(std::exchange(other.log, nullptr)) {}
    ~Held() {
      if (log == nullptr) return;
      log->push_back(CurrentTask() ? CurrentTask().name() : "nobody");
      EXPECT_FALSE(CurrentTask() && CurrentTask().state()->done());
      EXPECT_THAT(CurrentTask().GetStack(), IsEmpty());
    }
    std::vector<std::string>* log;
  };
  const auto returns = [](Held) -> Coro<> { co_return; };
  const auto throws = [](Held) -> Coro<> {
    co_await Yield();
    throw std::runtime_error("failed");
  };
  const auto waits = [this](TaskRef task, std::string name) -> Coro<> {
    while (!task.Done()) co_await Yield();
    log_.push_back(name);
  };
  Task<> returning = CreateTask(returns(Held(&log_)), "returning");
  Task<> throwing = CreateTask(throws(Held(&log_)), "throwing");
  CreateTask(waits(returning, "returned"));
  CreateTask(waits(throwing, "threw"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("returning", "returned", "throwing", "threw"));
  EXPECT_NE(throwing.Exception(), nullptr);
}

// created, first step, waiting, woken, resumed, done, reclaimed.
TEST_F(TaskTest, GoesThroughItsLife) {
  struct Local {
    Local(std::vector<std::string>* target, int number) : log(target), value(number) {}
    ~Local() { log->push_back("locals gone"); }
    std::vector<std::string>* log;
    int value;
  };
  Future<int> future = MakeFuture<int>(loop_);
  const auto main = [&](int number) -> Coro<int> {
    Local local(&log_, number);
    log_.push_back("first step");
    const int awaited = co_await future;
    log_.push_back("resumed");
    co_return local.value + awaited;
  };
  auto argument = std::make_shared<int>(0);
  const auto keeps = [&](std::shared_ptr<int>) -> Coro<int> { co_return co_await main(40); };

  Task<int> task = CreateTask(keeps(argument));
  log_.push_back("created");
  loop_.RunRound();
  EXPECT_THAT(log_, ElementsAre("created", "first step"));
  EXPECT_TRUE(loop_.ready().empty());  // It waits: nothing but the future knows of it.
  future.SetResult(2);
  EXPECT_FALSE(loop_.ready().empty());  // Woken, but not resumed.
  EXPECT_EQ(log_.size(), 2u);
  EXPECT_EQ(argument.use_count(), 2);
  loop_.RunRound();

  EXPECT_THAT(log_, ElementsAre("created", "first step", "resumed", "locals gone"));
  EXPECT_EQ(argument.use_count(), 1);  // The frame is gone, the result is kept.
  EXPECT_EQ(task.Result(), 42);
  EXPECT_EQ(task.Result(), 42);
}

//
TEST_F(TaskTest, TwoThatAreAwaitedOneAfterTheOtherTakeAsLongAsTheLonger) {
  const auto main = [&]() -> Coro<> {
    Task<int> first = CreateTask(After(1));
    Task<int> second = CreateTask(After(2));
    co_await first;
    co_await second;
  };

  loop_.Run(main());
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(2));
}

// a thread that is blocked is so for all, and their times add up.
TEST_F(TaskTest, ThoseThatBlockTheThreadRunOneAfterTheOther) {
  const auto blocks = [&](std::string name, int seconds) -> Coro<> {
    log_.push_back(name + " begin");
    loop_.Advance(absl::Seconds(seconds));
    log_.push_back(name + " end");
    co_return;
  };
  CreateTask(blocks("a", 1));
  CreateTask(blocks("b", 2));
  CreateTask(blocks("c", 3));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("a begin", "a end", "b begin", "b end", "c begin", "c end"));
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(6));
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
  EXPECT_EQ(ThrownBy([&] { error.Result(); }), "std::runtime_error: failed");
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

  EXPECT_THAT(ThrownBy([&] { task.Result(); }),
              StartsWith("weft::RuntimeError: Task cannot await on itself"));
}

//
TEST_F(TaskTest, CannotAwaitAFutureOfAnotherLoop) {
  auto other = std::make_unique<VirtualScheduler>();
  Future<> future = MakeFuture<void>(*other);
  const auto main = [&]() -> Coro<> { co_await future; };
  auto task = internal::StartTask(static_cast<Scheduler&>(loop_), main(), SourceLocation());
  loop_.RunUntilIdle();

  EXPECT_THAT(ThrownBy([&] { task.Result(); }), HasSubstr("attached to a different loop"));
}

// TASK 71
TEST_F(TaskTest, HasANameGivenOrMade) {
  Task<int> named = CreateTask(After(0), "worker");
  Task<int> unnamed = CreateTask(After(0));
  EXPECT_EQ(named.name(), "worker");
  EXPECT_THAT(unnamed.name(), MatchesRegex("Task-[0-9]+"));
  EXPECT_NE(CreateTask(After(0)).name(), unnamed.name());

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

  EXPECT_EQ(ThrownBy([&] { CreateTask(keeps(held)); }), "weft::RuntimeError: Event loop is closed");
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

// CANC 78, A-41
TEST_F(TaskTest, CancelledBeforeItsStartItNeverRuns) {
  Task<> task = CreateTask(Log("ran"));
  const auto awaits = [&]() -> Coro<bool> {
    Outcome<void> outcome = co_await NoThrow(task);
    co_return outcome.cancelled();
  };

  EXPECT_TRUE(task.Cancel());
  EXPECT_TRUE(loop_.Run(awaits()));

  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(task.Cancelled());
  EXPECT_THROW(task.Result(), CancelledError);
}

// CANC 83
TEST_F(TaskTest, CancelledWhileItAwaitsAFutureItCancelsThatAtOnce) {
  Future<> future = MakeFuture<void>(loop_);
  const auto main = [&]() -> Coro<> { co_await future; };
  Task<> task = CreateTask(main());
  loop_.RunRound();

  task.Cancel("why");

  EXPECT_TRUE(future.Cancelled());
  EXPECT_FALSE(task.Done());
  loop_.RunRound();
  EXPECT_TRUE(task.Cancelled());
  EXPECT_EQ(ThrownBy([&] { future.Result(); }), "weft::CancelledError: why");
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
  EXPECT_EQ(ThrownBy([&] { task.Result(); }), "weft::CancelledError: why");
}

// What a cancelled await throws is decided by the first request; a later one, before
// the task runs, only counts.
TEST_F(TaskTest, TheFirstMessageIsTheOneThatArrives) {
  Future<int> shared = MakeFuture<int>(loop_);
  Task<int> inner = CreateTask(After(1));
  const std::vector<std::function<Coro<>()>> waits = {
      [&]() -> Coro<> { co_await inner; },
      []() -> Coro<> { co_await Sleep(absl::Hours(1)); },
      [&]() -> Coro<> { co_await MakeFuture<int>(loop_); },
      [&]() -> Coro<> { co_await shared; },
  };
  for (const auto& wait : waits) {
    Task<> task = CreateTask(wait());
    loop_.RunRound();

    EXPECT_TRUE(task.Cancel("first"));
    EXPECT_TRUE(task.Cancel("second"));
    loop_.RunUntilIdle();

    EXPECT_EQ(ThrownBy([&] { task.Result(); }), "weft::CancelledError: first");
    EXPECT_EQ(task.Cancelling(), 2);
  }

  // Where there is nothing that could be cancelled, it is the last.
  const auto yields = []() -> Coro<> { co_await Yield(); };
  Task<> yielding = CreateTask(yields());
  Task<> not_begun = CreateTask(yields());
  loop_.CallSoon([&] {
    for (Task<> task : {yielding, not_begun}) {
      task.Cancel("first");
      task.Cancel("second");
    }
  });
  Task<> late = CreateTask(yields());
  late.Cancel("first");
  late.Cancel("second");
  loop_.RunUntilIdle();
  for (Task<> task : {yielding, not_begun, late}) {
    EXPECT_EQ(ThrownBy([&] { task.Result(); }), "weft::CancelledError: second");
  }
}

// The future's own error is thrown, and that the task was asked too is counted.
TEST_F(TaskTest, AFutureThatWasCancelledByOthersThrowsItsOwnMessage) {
  Future<int> future = MakeFuture<int>(loop_);
  const auto main = [&]() -> Coro<> { co_await future; };
  Task<> task = CreateTask(main());
  loop_.RunRound();

  future.Cancel("the future's");
  task.Cancel("the task's");
  loop_.RunUntilIdle();

  EXPECT_EQ(ThrownBy([&] { task.Result(); }), "weft::CancelledError: the future's");
  EXPECT_EQ(task.Cancelling(), 1);
}

TEST_F(TaskTest, AsAFutureItIsStillATask) {
  Future<int> future = CreateTask(After(1));

  EXPECT_EQ(ThrownBy([&] { future.SetResult(1); }),
            "weft::RuntimeError: Task does not support set_result operation");
  EXPECT_EQ(ThrownBy([&] { future.SetException(std::runtime_error("x")); }),
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

// Whoever is refused has given the coroutine away all the same, and it is destroyed.
TEST_F(TaskTest, ACoroutineIsTakenWhereNoTaskCanBeMade) {
  loop_.Close();
  const auto is_taken = [this] {
    auto coro = After(1);
    EXPECT_THROW(CreateTask(std::move(coro)), RuntimeError);
    EXPECT_FALSE(coro);  // NOLINT(bugprone-use-after-move): that is what is asked.
  };
  is_taken();                    // A closed loop.
  std::thread(is_taken).join();  // None.
}

// A ring is an error that is reported, not an overflow.
TEST_F(TaskTest, ARingOfTasksCanBeCancelled) {
  std::vector<Task<>> tasks(100'000);
  const auto awaits = [&](size_t next) -> Coro<> { co_await tasks[next]; };
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i] = CreateTask(awaits((i + 1) % tasks.size()));
  }
  loop_.RunRound();
  tasks[0].Cancel();
  loop_.RunUntilIdle();

  for (const Task<>& task : tasks) ASSERT_TRUE(task.Cancelled());
  EXPECT_THAT(loop_.TakeErrorMessages(),
              ElementsAre("tasks that wait for each other in a ring were cancelled"));
}

// Cancels all of them, at whatever moment its frame goes.
struct CancelsAtItsEnd {
  ~CancelsAtItsEnd() {
    for (TaskRef& task : *tasks) task.Cancel();
  }
  std::vector<TaskRef>* tasks;
};

// Destructors call Cancel(), also those of frames that a loop destroys at its end:
// some before and some after what they cancel.
TEST_F(TaskTest, CancelWhileTheLoopClosesNeverThrows) {
  std::vector<TaskRef> tasks;
  Future<> future = MakeFuture<void>(loop_);
  std::vector<Task<>> rings(7);
  const auto cancels = [&]() -> Coro<> {
    CancelsAtItsEnd cancels{&tasks};
    co_await Sleep(absl::Hours(1));
  };
  const auto awaits = [&](size_t next) -> Coro<> { co_await rings[next]; };
  const auto gathers = [&](size_t next) -> Coro<> { co_await Gather(rings[next], future); };
  const auto shields = [&](size_t next) -> Coro<> { co_await Shield(rings[next]); };
  const auto waits = [&]() -> Coro<> { co_await future; };
  const auto starts = [&]() -> Coro<> { co_return; };

  CreateTask(cancels());
  rings[0] = CreateTask(awaits(1));
  rings[1] = CreateTask(awaits(2));
  rings[2] = CreateTask(awaits(0));
  CreateTask(cancels());
  rings[3] = CreateTask(gathers(4));
  rings[4] = CreateTask(awaits(3));
  rings[5] = CreateTask(shields(6));
  rings[6] = CreateTask(awaits(5));
  for (const Task<>& task : rings) tasks.push_back(task);
  tasks.push_back(CreateTask(After(1)));
  tasks.push_back(CreateTask(waits()));
  CreateTask(cancels());
  loop_.RunRound();
  tasks.push_back(CreateTask(starts()));

  loop_.Close();

  for (TaskRef& task : tasks) {
    EXPECT_FALSE(task.Done());
    EXPECT_FALSE(task.Cancel());
  }
}

TEST_F(TaskTest, AHundredThousandTasksInAChainGoWithTheLoopWithoutRecursion) {
  const auto waits = [&]() -> Coro<> { co_await Sleep(absl::Hours(1)); };
  const auto awaits = [](Task<> task) -> Coro<> { co_await task; };
  Task<> last = CreateTask(waits());
  for (int i = 0; i < 100'000; ++i) last = CreateTask(awaits(std::move(last)));
  loop_.RunRound();

  loop_.Close();

  EXPECT_FALSE(last.Done());
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
