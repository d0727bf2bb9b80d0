// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/run.h"

#include <signal.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/async_generator.h"
#include "weft/core/context_var.h"
#include "weft/core/gather.h"
#include "weft/core/latch.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/loop/to_thread.h"
#include "weft/testing/thrown_by.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Options with virtual time; the clock lives as long as this.
class RunTest : public ::testing::Test {
 protected:
  RunTest() { options_.environment.clock = &clock_; }

  VirtualClock clock_;
  RunOptions options_;
  std::vector<std::string> log_;
};

Coro<std::unique_ptr<int>> GiveMoveOnly() { co_return std::make_unique<int>(5); }
Coro<void> Throw() {
  co_await Yield();
  throw TimeoutError("unchanged");
}
Coro<void> ThrowInt() {
  co_await Yield();
  throw 42;
}

TEST_F(RunTest, GivesTheValueOrThrowsTheError) {  // RUN 39, A-50
  EXPECT_EQ(*weft::Run(GiveMoveOnly(), options_), 5);
  EXPECT_EQ(ThrownBy([this] { weft::Run(Throw(), options_); }), "weft::TimeoutError: unchanged");
  EXPECT_EQ(ThrownBy([this] { weft::Run(ThrowInt(), options_); }), "int: 42");
}

struct OwnError : std::runtime_error {
  OwnError() : std::runtime_error("own") {}
};

// Throws `value`, at once or after a wait.
template <class T>
Coro<int> ThrowValue(T value, bool waits) {
  if (waits) co_await Yield();
  throw value;
}

// Whether what `awaitable` throws is a T equal to `value`.
// (A pointer by value: of one that was rethrown, clang 16 finds the reference beside the
// exception.)
template <class T, class A>
Coro<bool> Catches(T value, A awaitable) {
  using Caught = std::conditional_t<std::is_class_v<T>, const T&, T>;
  try {
    (void)co_await std::move(awaitable);
  } catch (Caught caught) {
    if constexpr (std::is_class_v<T>) {
      co_return std::string(caught.what()) == value.what() && typeid(caught) == typeid(T);
    } else {
      co_return caught == value;
    }
  } catch (...) {
  }
  co_return false;
}

template <class T>
Coro<void> ExpectThrownAsItWas(T value) {
  for (const bool waits : {false, true}) {
    const bool by_coro = co_await Catches(value, ThrowValue(value, waits));
    EXPECT_TRUE(by_coro);
    const bool by_task = co_await Catches(value, CreateTask(ThrowValue(value, waits)));
    EXPECT_TRUE(by_task);
    const bool by_gather = co_await Catches(value, Gather(ThrowValue(value, waits)));
    EXPECT_TRUE(by_gather);
  }
}

TEST_F(RunTest, WhateverIsThrownIsCaughtAsItWas) {  // CXX 90
  weft::Run(ExpectThrownAsItWas(42), options_);
  weft::Run(ExpectThrownAsItWas<const char*>("text"), options_);
  weft::Run(ExpectThrownAsItWas(OwnError()), options_);

  EXPECT_THROW(weft::Run(ThrowValue(42, true), options_), int);
  EXPECT_THROW(weft::Run(ThrowValue<const char*>("text", true), options_), const char*);
  EXPECT_THROW(weft::Run(ThrowValue(OwnError(), true), options_), OwnError);
}

Coro<int> GiveRef(LoopRef* ref, bool throws) {
  *ref = GetRunningLoop().Ref();
  co_await Yield();
  if (throws) throw TimeoutError("unchanged");
  co_return 1;
}

TEST_F(RunTest, TheLoopIsClosedEitherWay) {  // RUN 39, A-56
  for (const bool throws : {false, true}) {
    LoopRef ref;
    ThrownBy([&] { weft::Run(GiveRef(&ref, throws), options_); });

    EXPECT_EQ(ThrownBy([&] { ref.Post([] {}); }), "weft::RuntimeError: Event loop is closed");
    EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  }
}

TEST_F(RunTest, NeedsACoroutineThatWasNotUsed) {
  Coro<std::unique_ptr<int>> coro = GiveMoveOnly();
  weft::Run(std::move(coro), options_);

  // NOLINTNEXTLINE(bugprone-use-after-move): that is the question.
  EXPECT_THAT(ThrownBy([&] { weft::Run(std::move(coro), options_); }),
              HasSubstr("weft::ValueError: main: a coroutine was expected, got "));
}

Coro<int> RunInside(std::vector<std::string>* log, std::shared_ptr<int> argument) {
  log->push_back(ThrownBy(
      [&] { weft::Run([](std::shared_ptr<int>) -> Coro<void> { co_return; }(argument)); }));
  co_return static_cast<int>(argument.use_count());
}

TEST_F(RunTest, ANestedRunIsRefusedAndItsCoroutineDestroyed) {  // RUN 40, A-52
  auto argument = std::make_shared<int>();

  const int references = weft::Run(RunInside(&log_, argument), options_);

  EXPECT_EQ(references, 2);  // Ours and the coroutine's.
  EXPECT_THAT(log_,
              ElementsAre("weft::RuntimeError: Run() cannot be called from a running event loop"));
}

Coro<void> CleansUp(std::vector<std::string>* log, std::string name) {
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
  log->push_back(name + " cancelled");
  co_await Sleep(absl::Seconds(1));
  log->push_back(name + " clean");
  outcome.value();
}

Coro<int> LeavesTwo(std::vector<std::string>* log) {
  (void)CreateTask(CleansUp(log, "a"));
  (void)CreateTask(CleansUp(log, "b"));
  co_await Yield();
  co_return 3;
}

TEST_F(RunTest, TasksThatAreLeftAreCancelledAndTheirCleanupAwaited) {  // RUN 41, A-38
  EXPECT_EQ(weft::Run(LeavesTwo(&log_), options_), 3);
  EXPECT_THAT(log_, ElementsAre("a cancelled", "b cancelled", "a clean", "b clean"));
}

Coro<void> FailsWhenCancelled() {
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
  throw TimeoutError("while cancelled");
}

Coro<int> LeavesAFailure(std::vector<std::string>* log) {
  GetRunningLoop().SetExceptionHandler([log](EventLoop&, const ExceptionContext& context) {
    log->push_back(context.message + ": " + DescribeException(context.exception));
    EXPECT_TRUE(context.future);
  });
  (void)CreateTask(FailsWhenCancelled());
  co_await Yield();
  co_return 4;
}

TEST_F(RunTest, WhatATaskThrowsWhileItIsCancelledIsReported) {  // RUN 42
  EXPECT_EQ(weft::Run(LeavesAFailure(&log_), options_), 4);
  EXPECT_THAT(log_, ElementsAre("unhandled exception during Run() shutdown: "
                                "weft::TimeoutError: while cancelled"));
}

Coro<void> Refuses(int times, std::vector<std::string>* log) {
  for (int i = 0; i < times; ++i) (void)co_await NoThrow(Sleep(absl::Hours(1)));
  log->push_back("gave in");
}

Coro<void> LeavesOneThatRefuses(std::vector<std::string>* log) {
  (void)CreateTask(Refuses(3, log));
  co_await Yield();
}

TEST_F(RunTest, PastTheDeadlineATaskIsNamedAndAskedAgain) {
  options_.shutdown_deadline = absl::Seconds(10);

  ::testing::internal::CaptureStderr();
  weft::Run(LeavesOneThatRefuses(&log_), options_);
  const std::string logged = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(log_, ElementsAre("gave in"));
  EXPECT_THAT(logged, HasSubstr("not done by the shutdown deadline: <Task cancelling"));
  EXPECT_EQ(clock_.Now() - TimePoint(), absl::Seconds(20));
}

// Each frame has one, and so has each of its parameters.
struct Counted {
  explicit Counted(int* target) : count(target) { ++*count; }
  Counted(const Counted& other) : count(other.count) { ++*count; }
  ~Counted() { --*count; }
  int* count;
};

Coro<void> LeafThatWaits(Counted counted) {
  Counted local(counted.count);
  co_await Sleep(absl::Hours(1));
}
Coro<void> CountedChild(Counted counted) { co_await LeafThatWaits(counted); }
Coro<void> CountedThatRefuses(Counted counted) {
  (void)co_await NoThrow(LeafThatWaits(counted));
  co_await Sleep(absl::Seconds(1));
}
AsyncGenerator<int> CountedGenerator(Counted counted) {
  Counted local(counted.count);
  for (int i = 0;; ++i) co_yield i;
}
Coro<int> CountedMain(Counted counted, bool throws) {
  Counted local(counted.count);
  (void)CreateTask(CountedChild(counted));
  (void)CreateTask(CountedThatRefuses(counted));
  AsyncGenerator<int> numbers = CountedGenerator(counted);
  co_await numbers.Next();
  Coro<void> never_started = CountedChild(counted);
  co_await Yield();
  (void)CreateTask(CountedChild(counted));  // Cancelled before its first step.
  if (throws) throw TimeoutError("unchanged");
  co_return 1;
}

TEST_F(RunTest, NoFrameIsLeft) {  // RUN 43
  for (const bool throws : {false, true}) {
    int alive = 0;
    ThrownBy([&] { weft::Run(CountedMain(Counted(&alive), throws), options_); });
    EXPECT_EQ(alive, 0);
  }
}

Coro<EventLoop*> TheLoop() { co_return &GetRunningLoop(); }
Coro<bool> IsDebug() { co_return GetRunningLoop().debug(); }

TEST_F(RunTest, EachRunHasALoopOfItsOwn) {  // RUN 44, 45, A-66
  LoopRef first, second;
  weft::Run(GiveRef(&first, /*throws=*/false), options_);
  EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  weft::Run(GiveRef(&second, /*throws=*/false), options_);
  EXPECT_NE(first, second);
  EXPECT_FALSE(weft::Run(IsDebug(), options_));
  options_.debug = true;
  EXPECT_TRUE(weft::Run(IsDebug(), options_));
}

TEST_F(RunTest, ARunnerKeepsItsLoop) {  // RUN 46, 47, A-61
  Runner runner(options_);
  EventLoop* first = runner.Run(TheLoop());
  EXPECT_EQ(ThrownBy([&] { runner.Run(Throw()); }), "weft::TimeoutError: unchanged");
  EXPECT_EQ(runner.Run(TheLoop()), first);
  EXPECT_EQ(&runner.GetLoop(), first);

  EXPECT_FALSE(first->IsClosed());
  runner.Close();
  EXPECT_TRUE(first->IsClosed());
  runner.Close();

  EXPECT_EQ(ThrownBy([&] { runner.Run(TheLoop()); }), "weft::RuntimeError: Runner is closed");
  EXPECT_EQ(ThrownBy([&] { runner.GetLoop(); }), "weft::RuntimeError: Runner is closed");
}

ContextVar<int> variable("variable", 0);

Coro<void> SetVariable(int value) {
  variable.Set(value);
  co_return;
}
Coro<int> GetVariable() { co_return variable.Get(); }

TEST_F(RunTest, TheRunsOfARunnerShareAContext) {
  auto outside = variable.Set(1);
  Runner runner(options_);
  EXPECT_EQ(runner.Run(GetVariable()), 1);
  variable.Set(2);  // Too late for a runner that has begun.
  EXPECT_EQ(runner.Run(GetVariable()), 1);
  runner.Run(SetVariable(3));

  EXPECT_EQ(runner.Run(GetVariable()), 3);
  EXPECT_EQ(variable.Get(), 2);
  EXPECT_EQ(weft::Run(GetVariable(), options_), 2);
  variable.Reset(outside);
}

TEST_F(RunTest, AnUnusedRunnerClosesQuietly) { Runner runner(options_); }

TEST_F(RunTest, APollerThatDoesNotExistIsNamed) {
  options_.poller = "nosuch";
  EXPECT_THAT(ThrownBy([this] { weft::Run(TheLoop(), options_); }), HasSubstr("nosuch"));
}

// Counts rounds until the loop is closed.
Coro<void> CountRoundsFrom(int* rounds) {
  struct Counter {
    static void Next(EventLoop& loop, int* rounds) {
      loop.CallSoon([&loop, rounds] {
        ++*rounds;
        Next(loop, rounds);
      });
    }
  };
  Counter::Next(GetRunningLoop(), rounds);
  co_return;
}

TEST_F(RunTest, ClosingTakesExactlyFiveRoundsWithNothingLeftOver) {  // hops: Run()
  int rounds = 0;
  weft::Run(CountRoundsFrom(&rounds), options_);
  EXPECT_EQ(rounds, 5);
}

// Lets the job go on only when it is cleaned up itself, at the end of the run.
Coro<void> LetsGoWhenCancelled(std::vector<std::string>* log, Latch* may_end) {
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::InfiniteDuration()));
  log->push_back("task cancelled");
  may_end->count_down();
  outcome.value();
}
Coro<int> StartSlowJob(std::vector<std::string>* log, Latch* may_end) {
  (void)CreateTask(LetsGoWhenCancelled(log, may_end));
  (void)ToThread([log, may_end] {
    may_end->wait();
    log->push_back("job done");
  });
  co_await Yield();
  log->push_back("main ends");
  co_return 1;
}

TEST_F(RunTest, WaitsForTheDefaultExecutor) {  // EXEC 300, A-50, A-72
  Latch may_end(1);
  EXPECT_EQ(weft::Run(StartSlowJob(&log_, &may_end), options_), 1);
  EXPECT_THAT(log_, ElementsAre("main ends", "task cancelled", "job done"));
}

Coro<void> InterruptItself(std::vector<std::string>* log) {
  ::raise(SIGINT);
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
  log->push_back(outcome.cancelled() ? "cancelled inside" : "not cancelled");
  outcome.value();
}

TEST(RunInterruptTest, SigintCancelsMainAndComesOutAsKeyboardInterrupt) {  // RUN 48, A-64
  std::vector<std::string> log;
  bool interrupted = false;
  try {
    weft::Run(InterruptItself(&log));
  } catch (const KeyboardInterrupt&) {
    interrupted = true;
  }
  EXPECT_TRUE(interrupted);
  EXPECT_THAT(log, ElementsAre("cancelled inside"));
}

Coro<void> RefusesToEnd(std::vector<std::string>* log) {
  ::raise(SIGINT);
  co_await NoThrow(Sleep(absl::Hours(1)));
  log->push_back("cancelled");
  ::raise(SIGINT);
  co_await NoThrow(Sleep(absl::Hours(1)));  // Until Run() cancels what is left.
  log->push_back("cancelled again");
}

// As a KeyboardInterrupt in asyncio, which is raised wherever the program is: the run
// ends, and closing it lets main clean up once more.
TEST(RunInterruptTest, ASecondSigintDoesNotWaitForMain) {
  std::vector<std::string> log;
  bool interrupted = false;
  try {
    weft::Run(RefusesToEnd(&log));
  } catch (const KeyboardInterrupt&) {
    interrupted = true;
  }
  EXPECT_TRUE(interrupted);
  EXPECT_THAT(log, ElementsAre("cancelled", "cancelled again"));
}

Coro<void> HandlesItself(std::vector<std::string>* log) {
  (void)GetRunningLoop().AddSignalHandler(SIGINT, [log] { log->push_back("handled"); });
  for (int i = 0; i < 4; ++i) ::raise(SIGINT);
  co_await Sleep(absl::ZeroDuration());
  co_await Sleep(absl::ZeroDuration());
}

TEST(RunInterruptTest, AHandlerOfTheProgramGoesFirst) {
  std::vector<std::string> log;
  weft::Run(HandlesItself(&log));
  EXPECT_THAT(log, ElementsAre("handled", "handled", "handled", "handled"));
}

Coro<int> SwallowAnInterrupt() {
  ::raise(SIGINT);
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
  co_return outcome.cancelled() ? 5 : 0;
}

// As in asyncio: main has answered for it.
TEST(RunInterruptTest, AMainThatSwallowsTheInterruptReturnsItsValue) {
  EXPECT_EQ(weft::Run(SwallowAnInterrupt()), 5);
}

bool IsDefault(int signal) {
  const auto now = ::signal(signal, SIG_DFL);
  ::signal(signal, now);
  return now == SIG_DFL;
}

// A main that is interrupted `times` times in its last step, `when` it is in it.
enum class When { kInTheFirstStep, kInTheLastStep, kWhenItHasEnded };
Coro<int> InterruptedAtItsEnd(When when, int times, bool throws) {
  if (when != When::kInTheFirstStep) co_await Yield();
  for (int i = 0; i < times; ++i) {
    if (when == When::kWhenItHasEnded) {
      GetRunningLoop().CallSoon([] { ::raise(SIGINT); });
    } else {
      ::raise(SIGINT);
    }
  }
  if (throws) throw TimeoutError("main's own");
  co_return 7;
}
Coro<void> InterruptedAtItsEnd() {
  co_await Yield();
  ::raise(SIGINT);
}
TEST(RunInterruptTest, ASigintInTheLastStepIsNotLost) {
  using enum When;
  for (const When when : {kInTheFirstStep, kInTheLastStep, kWhenItHasEnded}) {
    for (const int times : {1, 2}) {
      EXPECT_THROW(weft::Run(InterruptedAtItsEnd(when, times, /*throws=*/false)),
                   KeyboardInterrupt);
      EXPECT_TRUE(IsDefault(SIGINT));
    }
  }
  EXPECT_THROW(weft::Run(InterruptedAtItsEnd()), KeyboardInterrupt);

  Runner runner;
  EXPECT_THROW(runner.Run(InterruptedAtItsEnd()), KeyboardInterrupt);
  EXPECT_EQ(runner.Run(InterruptedAtItsEnd(kInTheLastStep, 0, /*throws=*/false)), 7);
}

// In CPython the error of a step in which a signal comes is the task's all the same; but
// a second signal is thrown right there.
TEST(RunInterruptTest, AnErrorInTheLastStepAnswersForOneSigint) {
  EXPECT_THROW(weft::Run(InterruptedAtItsEnd(When::kInTheLastStep, 1, /*throws=*/true)),
               TimeoutError);
  EXPECT_THROW(weft::Run(InterruptedAtItsEnd(When::kInTheLastStep, 2, /*throws=*/true)),
               KeyboardInterrupt);
}

Coro<void> YieldsWhenInterrupted(std::vector<std::string>* log) {
  co_await Yield();
  ::raise(SIGINT);
  for (int i = 0; i < 3; ++i) {
    Outcome<void> outcome = co_await NoThrow(Yield());
    log->push_back(outcome.cancelled() ? "cancelled" : "not yet");
    outcome.value();
  }
}

TEST(RunInterruptTest, MainHearsOfItAtItsNextAwait) {
  std::vector<std::string> log;
  EXPECT_THROW(weft::Run(YieldsWhenInterrupted(&log)), KeyboardInterrupt);
  EXPECT_THAT(log, ElementsAre("cancelled"));
}

Coro<void> InterruptsTheCleanup(std::vector<std::string>* log, std::shared_ptr<int>) {
  Outcome<void> outcome = co_await NoThrow(Sleep(absl::Hours(1)));
  ::raise(SIGINT);
  log->push_back("cleanup");
  co_await Sleep(absl::Hours(1));
  log->push_back("never");
}
Coro<int> LeavesAnInterruptedCleanup(std::vector<std::string>* log, std::shared_ptr<int> argument,
                                     bool throws) {
  (void)CreateTask(InterruptsTheCleanup(log, argument));
  co_await Yield();
  if (throws) throw TimeoutError("main's own");
  co_return 1;
}

AsyncGenerator<int> InterruptedGenerator() {
  try {
    co_yield 1;
  } catch (const GeneratorExit&) {
  }
  throw KeyboardInterrupt();
}
Coro<int> LeavesAGenerator(std::unique_ptr<AsyncGenerator<int>>* kept) {
  *kept = std::make_unique<AsyncGenerator<int>>(InterruptedGenerator());
  std::optional<int> value = co_await (*kept)->Next();
  co_return *value;
}

// As CPython does.
TEST(RunInterruptTest, OneThatTheCleanupOfAGeneratorThrowsEndsTheRun) {
  std::unique_ptr<AsyncGenerator<int>> kept;
  EXPECT_THROW(weft::Run(LeavesAGenerator(&kept)), KeyboardInterrupt);
}

// CPython throws it out of asyncio.run() as well, whatever main has done.
TEST(RunInterruptTest, ASigintDuringTheCleanupEndsIt) {
  ::testing::internal::CaptureStderr();                  // That the task is destroyed.
  for (const bool throws : {false, true}) {
    std::vector<std::string> log;
    auto argument = std::make_shared<int>();
    EXPECT_THROW(weft::Run(LeavesAnInterruptedCleanup(&log, argument, throws)), KeyboardInterrupt);
    EXPECT_THAT(log, ElementsAre("cleanup"));
    EXPECT_EQ(argument.use_count(), 1);
    EXPECT_TRUE(IsDefault(SIGINT));
  }
  ::testing::internal::GetCapturedStderr();
}

TEST(RunInterruptTest, ARunnersCloseThrowsItOnce) {
  std::vector<std::string> log;
  Runner runner;
  EXPECT_EQ(runner.Run(LeavesAnInterruptedCleanup(&log, nullptr, /*throws=*/false)), 1);
  EventLoop& loop = runner.GetLoop();
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(runner.Close(), KeyboardInterrupt);
  ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(loop.IsClosed());
  EXPECT_NO_THROW(runner.Close());
}

Coro<int> ThrowsFromACallback() {
  GetRunningLoop().CallSoon([] { throw KeyboardInterrupt(); });
  co_await Sleep(absl::Hours(1));
  co_return 1;
}

Coro<int> ThrowsItself(bool in_a_task) {
  const auto child = []() -> Coro<void> {
    co_await Yield();
    throw KeyboardInterrupt();
  };
  if (in_a_task) {
    Task<void> task = CreateTask(child());
    co_await Sleep(absl::Hours(1));
  }
  co_await child();
  co_return 1;
}

TEST_F(RunTest, AKeyboardInterruptLeavesRun) {
  EXPECT_THROW(weft::Run(ThrowsFromACallback(), options_), KeyboardInterrupt);
  EXPECT_EQ(clock_.Now(), TimePoint());
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(weft::Run(ThrowsItself(/*in_a_task=*/false), options_), KeyboardInterrupt);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(weft::Run(ThrowsItself(/*in_a_task=*/true), options_), KeyboardInterrupt);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("Task exception was never retrieved"));
  EXPECT_EQ(clock_.Now(), TimePoint());
}

// Deadlocks end with an error that names the tasks; the loop is closed all the same.
Coro<void> WaitForNobody() { co_await GetRunningLoop().CreateFuture<void>(); }

TEST_F(RunTest, AWaitForEverInVirtualTimeIsAnError) {
  EXPECT_THAT(ThrownBy([this] { weft::Run(WaitForNobody(), options_); }),
              HasSubstr("nothing is ready and no timer is pending"));
}

}  // namespace
}  // namespace weft
