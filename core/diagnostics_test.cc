// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What tasks and coroutines tell of themselves: stacks, what a task waits for,
// where it was created, and what was forgotten.

#include <exception>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/as_completed.h"
#include "weft/core/async_generator.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/testing/captured_log.h"
#include "weft/testing/matches_regex.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Coro<> SleepLong() { co_await Sleep(absl::Hours(1)); }
Coro<int> GiveOne() { co_return 1; }
Coro<> Outer() { co_await SleepLong(); }
Coro<> FailAtOnce() {
  throw TimeoutError("failed");
  co_return;
}

class DiagnosticsTest : public ::testing::Test {
 protected:
  // Starts `coro` and everything it starts, and lets them come to where they wait.
  template <class T>
  Task<T> Start(Coro<T> coro) {
    Task<T> task = CreateTask(std::move(coro));
    Settle();
    return task;
  }
  // Until all wait; time stands still.
  void Settle() {
    while (!loop_.ready().empty()) loop_.RunRound();
  }
  static std::vector<std::string> Functions(const TaskRef& task) {
    std::vector<std::string> names;
    for (const StackFrame& frame : task.GetStack()) names.push_back(frame.function());
    return names;
  }
  static std::string Stack(const TaskRef& task) {
    std::ostringstream out;
    task.PrintStack(out);
    return out.str();
  }

  VirtualScheduler loop_;
  CapturedLog log_;
};

// -- The names of functions.

struct Session {
  Coro<> Read(int) const { co_await Sleep(absl::Hours(1)); }
  template <class T>
  Coro<> Write(T) {
    co_await Sleep(absl::Hours(1));
  }
};

TEST_F(DiagnosticsTest, AFunctionIsNamedWithoutWhatTheCompilerAdds) {
  Session session;
  const auto lambda = [](int) -> Coro<> { co_await SleepLong(); };
  const std::vector<Task<>> tasks = {CreateTask(SleepLong()), CreateTask(session.Read(1)),
                                     CreateTask(session.Write(std::string("x"))),
                                     CreateTask(lambda(1))};

  // Before its first step each has the place of its definition, then that of an await.
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(tasks[0].GetStack()[0].function(), "weft::SleepLong");
    EXPECT_EQ(tasks[1].GetStack()[0].function(), "weft::Session::Read");
    EXPECT_EQ(tasks[2].GetStack()[0].function(), "weft::Session::Write");
    EXPECT_THAT(tasks[3].GetStack()[0].function(),
                AllOf(StartsWith("weft::"), HasSubstr("TestBody()::<lambda")));
    loop_.RunRound();
  }
}

// -- Coroutines that are never awaited.

TEST_F(DiagnosticsTest, ACoroutineThatIsNeverAwaitedIsNamed) {  // DBG 311, A-35
  {
    Coro<int> dropped = GiveOne();
  }

  EXPECT_THAT(log_.Take(),
              ElementsAre(AllOf(StartsWith("coroutine 'weft::GiveOne' was never awaited"),
                                HasSubstr("defined at: core/diagnostics_test.cc:"))));
}

TEST_F(DiagnosticsTest, NothingIsSaidOfOneThatWasAwaitedMovedOrClosed) {
  const auto main = []() -> Coro<> {
    co_await GiveOne();
    Coro<int> coro = GiveOne();
    Coro<int> moved = std::move(coro);
    co_await std::move(moved);
    CreateTask(GiveOne());
    Coro<int> closed = GiveOne();
    closed.Close();
    closed.Close();
  };
  loop_.Run(main());

  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(DiagnosticsTest, OneThatIsInAnAwaitableThatIsDroppedIsNamedToo) {
  {
    auto dropped = WithTimeout(absl::Seconds(1), GiveOne());
    auto also_dropped = NoThrow(GiveOne());
  }

  EXPECT_EQ(log_.Take().size(), 2u);
}

TEST_F(DiagnosticsTest, OneWhoseTaskIsRefusedIsNamed) {
  loop_.Close();

  EXPECT_THROW(CreateTask(GiveOne()), RuntimeError);

  EXPECT_THAT(log_.Take(), ElementsAre(HasSubstr("was never awaited")));
}

TEST_F(DiagnosticsTest, ATaskThatIsCancelledBeforeItStartsForgetsNothing) {
  Task<int> task = CreateTask(WithTimeout(absl::Seconds(1), GiveOne()));
  task.Cancel();
  loop_.RunUntilIdle();
  const auto zero = []() -> Coro<> {
    co_await NoThrow(WaitFor(SleepLong(), absl::ZeroDuration()));
  };
  loop_.Run(zero());

  EXPECT_THAT(log_.Take(), IsEmpty());
}

TEST_F(DiagnosticsTest, AGroupThatIsOverDropsWhatItIsGivenInSilence) {  // TG 148
  const auto main = []() -> Coro<> {
    TaskGroup* kept = nullptr;
    auto body = [&](TaskGroup& group) -> Coro<> {
      kept = &group;
      group.CreateTask(FailAtOnce());
      co_await NoThrow(Sleep(absl::Hours(1)));
      EXPECT_THROW(kept->CreateTask(GiveOne()), RuntimeError);
    };
    co_await NoThrow(WithTaskGroup(body));
  };
  loop_.Run(main());

  EXPECT_THAT(log_.Take(), IsEmpty());
}

// -- A cancellation that is swallowed.

Coro<int> Swallow() {
  Outcome<void> outcome = co_await NoThrow(SleepLong());
  co_return outcome.cancelled() ? 9 : 0;
}

TEST_F(DiagnosticsTest, ASwallowedCancellationIsNamedInDebugMode) {
  for (bool debug : {true, false}) {
    loop_.SetDebug(debug);
    Task<int> task = Start(Swallow());
    task.SetName("deaf");
    task.Cancel();
    loop_.RunUntilIdle();

    EXPECT_EQ(task.Result(), 9);
    const std::vector<std::string> log = log_.Take();
    if (!debug) {
      EXPECT_THAT(log, IsEmpty());
      continue;
    }
    ASSERT_EQ(log.size(), 1u);
    EXPECT_THAT(log[0], AllOf(StartsWith("a task was cancelled, swallowed that and returned: <Task "
                                         "finished name='deaf' coro=weft::Swallow"),
                              HasSubstr("its last await: core/diagnostics_test.cc:")));
  }
}

TEST_F(DiagnosticsTest, ACancellationThatWasMeantAndTakenBackIsNotSwallowed) {
  loop_.SetDebug(true);
  const auto main = []() -> Coro<> {
    co_await NoThrow(WithTimeout(absl::Seconds(1), SleepLong()));
    auto body = [](TaskGroup& group) -> Coro<> {
      group.CreateTask(FailAtOnce());
      co_await SleepLong();
    };
    co_await NoThrow(WithTaskGroup(body));
  };
  loop_.Run(main());
  Task<> cancelled = Start(SleepLong());
  cancelled.Cancel();
  Task<int> before_start = CreateTask(GiveOne());
  before_start.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(cancelled.Cancelled() && before_start.Cancelled());
  EXPECT_THAT(log_.Take(), IsEmpty());
}

// -- Stacks, and what a task waits for.

TEST_F(DiagnosticsTest, AStackNamesEachFrameAndWhatTheTaskWaitsFor) {  // DBG 315, A-85
  Task<> task = CreateTask(Outer(), "sleeper");
  EXPECT_THAT(Stack(task),
              MatchesRegex("Stack for <Task pending name='sleeper' coro=weft::Outer created at "
                           "core/diagnostics_test.cc:[0-9]+> \\(most recent call last\\):\n"
                           "  File \"core/diagnostics_test.cc\", line [0-9]+, in weft::Outer, "
                           "not started\n"
                           "  waits for its turn\n"));
  loop_.RunRound();
  loop_.Advance(absl::Minutes(15));

  EXPECT_THAT(Stack(task),
              MatchesRegex("Stack for <Task pending name='sleeper' coro=weft::Outer at "
                           "core/diagnostics_test.cc:[0-9]+> \\(most recent call last\\):\n"
                           "  File \"core/diagnostics_test.cc\", line [0-9]+, in weft::Outer\n"
                           "  File \"core/diagnostics_test.cc\", line [0-9]+, in weft::SleepLong\n"
                           "  waits for <Sleep for another 45m>\n"));

  loop_.RunUntilIdle();
  EXPECT_THAT(Stack(task), StartsWith("No stack for <Task finished name='sleeper'"));
  EXPECT_EQ(task.WaitsFor(), "");
}

TEST_F(DiagnosticsTest, ATaskThatRunsSaysSo) {
  std::string stack;
  const auto main = [&]() -> Coro<> {
    co_await Yield();
    stack = Stack(CurrentTask());
  };
  loop_.Run(main());

  EXPECT_THAT(stack, EndsWith("  runs, since that await\n"));
}

TEST_F(DiagnosticsTest, WhatATaskWaitsForIsNamed) {
  Future<int> future = MakeFuture<int>(loop_);
  Task<> inner = CreateTask(SleepLong(), "inner");
  const auto waits_for = [&](auto function) {
    Task<> task = CreateTask(function);
    Settle();
    const std::string text = task.WaitsFor();
    task.Cancel();
    Settle();
    return text;
  };
  const std::string inner_text = "<Task pending name='inner' coro=weft::SleepLong at core/";

  EXPECT_EQ(waits_for([&]() -> Coro<> { co_await future; }), "<Future pending>");
  future = MakeFuture<int>(loop_);
  EXPECT_EQ(waits_for([]() -> Coro<> { co_await Sleep(absl::InfiniteDuration()); }),
            "<Sleep for ever>");
  EXPECT_THAT(waits_for([&]() -> Coro<> { co_await Shield(inner); }),
              StartsWith("<Shield>: " + inner_text));
  EXPECT_THAT(waits_for([&]() -> Coro<> {
                std::vector<Task<>> tasks = {inner};
                co_await Wait(std::move(tasks));
              }),
              StartsWith("<Wait 0 of 1 done>: " + inner_text));
  EXPECT_THAT(waits_for([&]() -> Coro<> {
                std::vector<Task<>> tasks = {inner};
                auto range = AsCompleted(std::move(tasks));
                co_await range.Next();
              }),
              StartsWith("<AsCompleted>: " + inner_text));
  EXPECT_THAT(waits_for([&]() -> Coro<> {
                std::vector<Future<void>> both = {inner, CreateTask(Yield())};
                co_await Shield(Gather(std::move(both)));
              }),
              StartsWith("<Shield>: <Future pending>"));
  EXPECT_THAT(waits_for([&]() -> Coro<> {
                Future<void> child = Shield(inner);
                co_await Gather(child, GiveOne());
              }),
              StartsWith("<Gather 1 of 2 done>: <Future pending>"));
  EXPECT_THAT(waits_for([&]() -> Coro<> {
                auto body = [](TaskGroup& group) -> Coro<> {
                  group.CreateTask(SleepLong(), "child");
                  co_return;
                };
                co_await WithTaskGroup(body);
              }),
              StartsWith("<TaskGroup tasks=1 entered>: <Task pending name='child'"));
  EXPECT_THAT(waits_for([&]() -> Coro<> { co_await inner; }), StartsWith(inner_text));
}

TEST_F(DiagnosticsTest, ManyChildrenAreCounted) {
  std::vector<Coro<>> children;
  for (int i = 0; i < 20; ++i) children.push_back(SleepLong());
  const auto main = [&]() -> Coro<> { co_await Gather(std::move(children)); };
  Task<> task = Start(main());

  EXPECT_THAT(task.WaitsFor(),
              AllOf(StartsWith("<Gather 0 of 20 done>: <Task pending"), EndsWith("and 12 more")));
}

TEST_F(DiagnosticsTest, TheChainGoesThroughWhatRunsInPlace) {
  const auto generator = []() -> AsyncGenerator<int> {
    co_await SleepLong();
    co_yield 1;
  };
  const auto named = [&](auto function) { return Functions(Start(function())); };

  EXPECT_THAT(named([]() -> Coro<> { co_await WithTimeout(absl::Minutes(1), Outer()); }),
              ElementsAre(HasSubstr("lambda"), "weft::Outer", "weft::SleepLong"));
  EXPECT_THAT(named([]() -> Coro<> { co_await WaitFor(Outer(), absl::Minutes(1)); }),
              ElementsAre(HasSubstr("lambda"), "weft::Outer", "weft::SleepLong"));
  EXPECT_THAT(named([]() -> Coro<> { co_await NoThrow(Outer()); }),
              ElementsAre(HasSubstr("lambda"), "weft::Outer", "weft::SleepLong"));
  EXPECT_THAT(named([&]() -> Coro<> {
                auto values = generator();
                co_await values.Next();
              }),
              ElementsAre(HasSubstr("lambda"), HasSubstr("lambda"), "weft::SleepLong"));
  EXPECT_THAT(named([]() -> Coro<> {
                auto body = [](TaskGroup&) -> Coro<> { co_await SleepLong(); };
                co_await WithTaskGroup(body);
              }),
              ElementsAre(HasSubstr("lambda"), "weft::internal::RunTaskGroup", HasSubstr("lambda"),
                          "weft::SleepLong"));
}

TEST_F(DiagnosticsTest, WhatKeepsAFunctionForATaskIsNotInItsStack) {
  const auto wait = [](int, std::string) -> Coro<> { co_await SleepLong(); };
  Task<> task = CreateTask(wait, 1, "x");
  loop_.RunRound();

  EXPECT_THAT(Functions(task), ElementsAre(HasSubstr("lambda"), "weft::SleepLong"));
  EXPECT_THAT(task.ToString(), AllOf(HasSubstr(" coro="), Not(HasSubstr("CallInCoro"))));
}

TEST_F(DiagnosticsTest, ADumpHasAllTasks) {
  CreateTask(Outer(), "a");
  Task<> b = CreateTask(SleepLong(), "b");
  loop_.RunRound();
  b.Cancel();
  std::ostringstream out;

  DumpTasks(out);

  EXPECT_THAT(out.str(), MatchesRegex("2 tasks\n"
                                      "<Task pending name='a' coro=weft::Outer at [^>]*>\n"
                                      "  File [^\n]* in weft::Outer\n"
                                      "  File [^\n]* in weft::SleepLong\n"
                                      "  waits for <Sleep for another 1h>\n"
                                      "  created at core/diagnostics_test.cc:[0-9]+\n"
                                      "<Task cancelling name='b' coro=weft::SleepLong at [^>]*>\n"
                                      "  File [^\n]* in weft::SleepLong\n"
                                      "  waits for its turn\n"
                                      "  created at core/diagnostics_test.cc:[0-9]+\n"));
}

// -- Where things were created.

TEST_F(DiagnosticsTest, ATaskOfAFunctionKnowsWhereItWasCreated) {
  const auto add = [](int a, int b, int c) -> Coro<int> { co_return a + b + c; };
  const auto line = [](const TaskRef& task) { return task.state()->created_at().line(); };
  const auto none = []() -> Coro<int> { co_return 0; };
  const auto one = [](int a) -> Coro<int> { co_return a; };
  const auto two = [](int a, int b) -> Coro<int> { co_return a + b; };
  const uint32_t here = SourceLocation::current().line();
  Task<int> a = CreateTask(none);
  Task<int> b = CreateTask(one, 1);
  Task<int> c = CreateTask(two, 1, 2);
  Task<int> d = CreateTask(add, 1, 2, 3);

  EXPECT_EQ(line(a), here + 1);
  EXPECT_EQ(line(b), here + 2);
  EXPECT_EQ(line(c), here + 3);
  EXPECT_EQ(line(d), here + 4);
}

TEST_F(DiagnosticsTest, AnErrorThatNobodyReadComesWithItsTask) {  // A-34, TASK 75, FUT 59
  CreateTask(FailAtOnce(), "forgotten");
  loop_.RunUntilIdle();
  {
    Future<int> future = MakeFuture<int>(loop_);
    future.SetException(TimeoutError("nobody looks"));
  }
  loop_.RunUntilIdle();

  ASSERT_EQ(loop_.errors().size(), 2u);
  EXPECT_THAT(ToString(loop_.errors()[0]),
              MatchesRegex("Task exception was never retrieved\n"
                           "  exception: weft::TimeoutError: failed\n"
                           "  future: <Task finished name='forgotten' coro=weft::FailAtOnce "
                           "created at [^>]* exception=weft::TimeoutError: failed>\n"
                           "  created at: core/diagnostics_test.cc:[0-9]+"));
  EXPECT_THAT(ToString(loop_.errors()[1]),
              MatchesRegex("Future exception was never retrieved\n"
                           "  exception: weft::TimeoutError: nobody looks\n"
                           "  future: <Future finished exception=[^>]*>\n"
                           "  created at: core/diagnostics_test.cc:[0-9]+"));
}

TEST_F(DiagnosticsTest, AChildOfAGatherHasThePlaceOfItsCoroutine) {
  const auto main = []() -> Coro<> { co_await Gather(SleepLong(), GiveOne()); };
  Task<> task = Start(main());

  std::vector<TaskRef> tasks = AllTasks();
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_THAT(ToString(tasks[1].state()->created_at()), StartsWith("core/diagnostics_test.cc:"));
}

// -- The cause of a timeout.

TEST_F(DiagnosticsTest, ATimeoutErrorHasItsCancellationAsCause) {  // TMO 140
  std::vector<std::string> causes;
  const auto keep = [&](const Outcome<void>& outcome) {
    try {
      outcome.value();
    } catch (const TimeoutError& error) {
      causes.push_back(DescribeException(error.cause()));
    }
  };
  const auto main = [&]() -> Coro<> {
    Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(1), SleepLong()));
    keep(outcome);
    auto thrown = []() -> Coro<> { co_await WithTimeout(absl::Seconds(1), SleepLong()); };
    Outcome<void> outcome_of_throw = co_await NoThrow(thrown());
    keep(outcome_of_throw);
    Outcome<void> at_once = co_await NoThrow(WaitFor(SleepLong(), absl::ZeroDuration()));
    keep(at_once);
  };
  loop_.Run(main());

  EXPECT_THAT(causes,
              ElementsAre("weft::CancelledError", "weft::CancelledError", "weft::CancelledError"));
  EXPECT_EQ(TimeoutError().cause(), nullptr);
  EXPECT_EQ(TimeoutError("in words").cause(), nullptr);
}

}  // namespace
}  // namespace weft
