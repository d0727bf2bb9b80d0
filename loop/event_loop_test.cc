// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/event_loop.h"

#include <signal.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/poller/poller_registry.h"
#include "weft/poller/socket_api.h"
#include "weft/testing/thrown_by.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A loop in virtual time, and a record of what happened.
class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() {
    LoopOptions options;
    options.environment.clock = &clock_;
    loop_ = *EventLoop::Create(options);
    loop_->SetExceptionHandler([this](EventLoop&, const ExceptionContext& context) {
      reports_.push_back(context.message);
    });
  }
  ~EventLoopTest() override { loop_->Close(); }

  // Logs `what` when it is called.
  auto Log(std::string what) {
    return [this, what = std::move(what)] { log_.push_back(what); };
  }
  // Runs until all that is ready by then and what that queued has run.
  void RunUntilIdle() {
    loop_->CallLater(absl::Hours(1), [this] { loop_->Stop(); });
    loop_->RunForever();
  }
  // One round.
  void RunOneRound() {
    loop_->Stop();
    loop_->RunForever();
  }

  VirtualClock clock_;
  std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> log_;
  std::vector<std::string> reports_;
};

// -- LOOP: the order of the ready queue.

TEST_F(EventLoopTest, CallbacksRunInOrderAndWhatTheyAddRunsNextRound) {  // LOOP 1, A-02, A-03
  loop_->CallSoon([this] {
    log_.push_back("1");
    loop_->CallSoon(Log("4"));
  });
  loop_->CallSoon(Log("2"));
  loop_->CallSoon(Log("3"));

  RunOneRound();
  EXPECT_THAT(log_, ElementsAre("1", "2", "3"));

  RunOneRound();
  EXPECT_THAT(log_, ElementsAre("1", "2", "3", "4"));
}

TEST_F(EventLoopTest, StopBeforeRunRunsOneRound) {  // LOOP 2, A-54
  loop_->CallSoon(Log("before"));
  loop_->Stop();
  loop_->CallSoon(Log("after"));

  loop_->RunForever();

  EXPECT_THAT(log_, ElementsAre("before", "after"));
}

TEST_F(EventLoopTest, StopFinishesTheRound) {  // LOOP 3
  loop_->CallSoon([this] {
    loop_->Stop();
    loop_->CallSoon(Log("next"));
  });
  loop_->CallSoon(Log("same"));

  loop_->RunForever();
  EXPECT_THAT(log_, ElementsAre("same"));

  RunOneRound();
  EXPECT_THAT(log_, ElementsAre("same", "next"));
}

TEST_F(EventLoopTest, ARunInsideOfARunIsRefused) {  // LOOP 4, A-53
  loop_->CallSoon([this] {
    log_.push_back(ThrownBy([this] { loop_->RunForever(); }));
    log_.push_back(ThrownBy([this] { loop_->RunUntilComplete(loop_->CreateFuture<void>()); }));
    std::unique_ptr<EventLoop> other = *EventLoop::Create();
    log_.push_back(ThrownBy([&] { other->RunForever(); }));
    other->Close();
  });

  RunUntilIdle();

  EXPECT_THAT(
      log_,
      ElementsAre("weft::RuntimeError: This event loop is already running",
                  "weft::RuntimeError: This event loop is already running",
                  "weft::RuntimeError: Cannot run the event loop while another loop is running"));
}

TEST_F(EventLoopTest, CloseInsideOfARunIsRefused) {  // LOOP 5, A-55
  loop_->CallSoon([this] { log_.push_back(ThrownBy([this] { loop_->Close(); })); });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("weft::RuntimeError: Cannot close a running event loop"));
  EXPECT_FALSE(loop_->IsClosed());
}

TEST_F(EventLoopTest, CloseTwiceIsHarmless) {  // LOOP 6
  loop_->Close();
  EXPECT_TRUE(loop_->IsClosed());
  loop_->Close();
  EXPECT_TRUE(loop_->IsClosed());
}

Coro<void> DoNothing() { co_return; }

TEST_F(EventLoopTest, AClosedLoopRefusesEverything) {  // LOOP 7, A-55
  loop_->Close();
  const std::string closed = "weft::RuntimeError: Event loop is closed";

  EXPECT_EQ(ThrownBy([this] { loop_->CallSoon([] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->CallLater(absl::Seconds(1), [] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->CallAt(TimePoint(), [] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->CallSoonThreadsafe([] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->Ref().Post([] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->RunForever(); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->RunUntilComplete(DoNothing()); }), closed);
  EXPECT_EQ(ThrownBy([this] { loop_->RunOnce(absl::ZeroDuration()); }), closed);
  EXPECT_EQ(ThrownBy([this] { (void)loop_->CreateTask(DoNothing()); }), closed);
  EXPECT_EQ(ThrownBy([this] { (void)loop_->RunInExecutor(nullptr, [] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { (void)loop_->AddReader(0, [] {}); }), closed);
  EXPECT_EQ(ThrownBy([this] { (void)loop_->AddSignalHandler(1, [] {}); }), closed);
}

Coro<int> Give(int value) { co_return value; }
Coro<int> Fail() {
  co_await Yield();
  throw TimeoutError("as it was");
}

TEST_F(EventLoopTest, RunUntilCompleteGivesTheResultOrTheError) {  // LOOP 8
  EXPECT_EQ(loop_->RunUntilComplete(Give(7)), 7);
  EXPECT_EQ(loop_->RunUntilComplete(loop_->CreateTask(Give(8))), 8);
  EXPECT_EQ(ThrownBy([this] { loop_->RunUntilComplete(Fail()); }), "weft::TimeoutError: as it was");
}

TEST_F(EventLoopTest, StopBeforeTheEndIsAnError) {  // LOOP 9, A-53
  Task<void> task = loop_->CreateTask(Sleep(absl::Hours(1)));
  loop_->CallSoon([this] { loop_->Stop(); });

  EXPECT_EQ(ThrownBy([&] { loop_->RunUntilComplete(Future<void>(task)); }),
            "weft::RuntimeError: Event loop stopped before Future completed.");
  EXPECT_FALSE(task.Done());
  task.Cancel();
  RunUntilIdle();
}

TEST_F(EventLoopTest, AnotherLoopsFutureIsRefused) {
  std::unique_ptr<EventLoop> other = *EventLoop::Create();
  Future<void> future = other->CreateFuture();

  EXPECT_EQ(ThrownBy([&] { loop_->RunUntilComplete(future); }),
            "weft::ValueError: The future belongs to a different loop than the one specified as "
            "the loop argument");
  EXPECT_FALSE(future.Done());
  other->Close();
}

TEST_F(EventLoopTest, TheBatchInWhichTheEndIsSeenRunsWhole) {  // A-26, hops: RunUntilComplete
  int rounds = 0;
  std::function<void()> count = [&] {
    ++rounds;
    loop_->CallSoon(count);
  };
  const auto main = [&]() -> Coro<void> {
    loop_->CallSoon(Log("queued by main"));
    loop_->CallSoon([this] { loop_->CallSoon(Log("a round too late")); });
    log_.push_back("main ends");
    loop_->CallSoon(count);
    co_return;
  };

  loop_->RunUntilComplete(main());

  EXPECT_THAT(log_, ElementsAre("main ends", "queued by main"));
  EXPECT_EQ(rounds, 1);
  loop_->Close();
  EXPECT_THAT(log_, ElementsAre("main ends", "queued by main"));
}

TEST_F(EventLoopTest, TheRunningLoopIsKnownInsideOnly) {  // LOOP 10, A-32, A-56, A-57
  EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  EXPECT_EQ(ThrownBy([] { GetRunningLoop(); }), "weft::RuntimeError: no running event loop");
  EXPECT_EQ(ThrownBy([] { (void)CreateTask(DoNothing()); }),
            "weft::RuntimeError: no running event loop");

  loop_->CallSoon([this] {
    EXPECT_EQ(&GetRunningLoop(), loop_.get());
    EXPECT_TRUE(loop_->IsRunning());
    EXPECT_FALSE(loop_->IsClosed());
  });
  RunUntilIdle();

  EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  EXPECT_FALSE(loop_->IsRunning());
  EXPECT_FALSE(loop_->IsClosed());
}

TEST_F(EventLoopTest, AServersLoopIsDrivenByHandAndAScriptsByRun) {
  const auto serve = [this](const std::string& name) -> Coro<void> {
    for (int i = 0; i < 2; ++i) {
      log_.push_back(name + " tick");
      co_await Sleep(absl::Seconds(1));
    }
    log_.push_back(name + " ends");
  };
  loop_->CreateTask(serve, "server").AddDoneCallback([this](const Future<void>&) {
    loop_->Stop();
  });
  loop_->RunForever();
  const std::string script = "script";
  loop_->RunUntilComplete(serve(script));

  EXPECT_THAT(log_, ElementsAre("server tick", "server tick", "server ends", "script tick",
                                "script tick", "script ends"));
}

TEST_F(EventLoopTest, MoveOnlyCallablesRunOnceAndAreDestroyedAtOnce) {  // LOOP 12
  // Logs what it owns, when it runs and when it is destroyed.
  const auto make = [this](const std::string& name) {
    const std::thread::id here = std::this_thread::get_id();
    auto owned = std::shared_ptr<void>(nullptr, [this, name, here](void*) {
      log_.push_back(name + (std::this_thread::get_id() == here ? " gone" : " gone elsewhere"));
    });
    return [this, name, owned = std::move(owned), unique = std::make_unique<int>(3)] {
      log_.push_back(name + " " + std::to_string(*unique));
    };
  };
  loop_->CallSoon(make("soon"));
  loop_->CallSoon(Log("next"));
  loop_->CallLater(absl::Seconds(1), make("later"));
  loop_->CallLater(absl::Seconds(1), Log("next"));
  RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("soon 3", "soon gone", "next", "later 3", "later gone", "next"));

  log_.clear();
  std::thread poster([&, posted = make("posted")]() mutable {
    loop_->CallSoonThreadsafe(std::move(posted));
    loop_->CallSoonThreadsafe(Log("next"));
  });
  poster.join();
  RunOneRound();
  EXPECT_THAT(log_, ElementsAre("posted 3", "posted gone", "next"));
}

TEST_F(EventLoopTest, NoCallbackIsEnteredInsideACall) {  // LOOP 14, A-05, A-15, A-22
  Future<int> done = loop_->CreateFuture<int>();
  done.SetResult(1);
  Future<int> pending = loop_->CreateFuture<int>();
  pending.AddDoneCallback([this](const Future<int>&) { log_.push_back("completed"); });
  loop_->CallSoon([&] {
    loop_->CallSoon(Log("soon"));
    loop_->CallLater(-absl::Seconds(1), Log("timer"));
    loop_->CallSoonThreadsafe(Log("post"));
    done.AddDoneCallback([this](const Future<int>&) { log_.push_back("done before"); });
    pending.SetResult(1);
    clock_.Advance(absl::Seconds(5));
    log_.push_back("the callback's end");
  });

  RunUntilIdle();

  EXPECT_THAT(
      log_, ElementsAre("the callback's end", "soon", "post", "done before", "completed", "timer"));
}

TEST_F(EventLoopTest, ACoroutineIsNoCallback) {
  const auto coroutine = []() -> Coro<void> { co_return; };
  const auto function = [] {};
  const auto is_callback = []<class F>(EventLoop* loop, const F& callable) {
    return requires { loop->CallSoon(callable); } ||
           requires { loop->CallLater(absl::ZeroDuration(), callable); } ||
           requires { loop->CallAt(TimePoint(), callable); } ||
           requires { loop->CallSoonThreadsafe(callable); } ||
           requires { loop->Ref().Post(callable); } ||
           requires { loop->AddSignalHandler(1, callable); } ||
           requires { loop->AddReader(0, callable); } || requires { loop->AddWriter(0, callable); };
  };

  EXPECT_TRUE(is_callback(loop_.get(), function));
  EXPECT_FALSE(is_callback(loop_.get(), coroutine));
}

TEST_F(EventLoopTest, ATaskThatWaitsIsInNoQueue) {
  std::vector<Future<void>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(loop_->CreateFuture());
    (void)loop_->CreateTask(futures.back());
  }
  EXPECT_TRUE(loop_->RunOnce(absl::ZeroDuration()));

  EXPECT_TRUE(loop_->ready().empty());
  EXPECT_FALSE(loop_->RunOnce(absl::ZeroDuration()));  // Nothing runs to look at them.
  EXPECT_EQ(loop_->AllTasks().size(), 100u);
  futures[7].SetResult();
  EXPECT_TRUE(loop_->RunOnce(absl::ZeroDuration()));
  EXPECT_EQ(loop_->AllTasks().size(), 99u);
  for (Future<void>& future : futures) future.Cancel();
  RunUntilIdle();
}

TEST_F(EventLoopTest, LargeCallablesWorkToo) {
  std::array<char, 200> large = {};
  large[199] = 'x';
  loop_->CallSoon([this, large] { log_.push_back(std::string(1, large[199])); });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("x"));
}

TEST_F(EventLoopTest, SoonBeatsLaterByARound) {  // A-11, G14
  loop_->CallLater(absl::ZeroDuration(), Log("later"));
  loop_->CallSoon([this] {
    log_.push_back("soon");
    loop_->CallSoon(Log("soon's next"));
  });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("soon", "later", "soon's next"));
}

// -- HDL: handles.

TEST_F(EventLoopTest, ACancelledHandleDoesNotRun) {  // HDL 15, A-19
  Handle handle = loop_->CallSoon(Log("never"));
  EXPECT_FALSE(handle.Cancelled());

  handle.Cancel();
  handle.Cancel();
  RunUntilIdle();

  EXPECT_TRUE(handle.Cancelled());
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(EventLoopTest, ACallbackMayCancelALaterOneOfItsRound) {  // HDL 16
  Handle later;
  loop_->CallSoon([&] { later.Cancel(); });
  later = loop_->CallSoon(Log("never"));

  RunUntilIdle();

  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(later.Cancelled());
}

TEST_F(EventLoopTest, ADroppedHandleCancelsNothing) {  // HDL 17
  loop_->CallSoon(Log("ran"));
  RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("ran"));
}

TEST_F(EventLoopTest, CancelReleasesTheCapturesAtOnce) {  // HDL 18
  auto captured = std::make_shared<int>();
  std::weak_ptr<int> watch = captured;
  TimerHandle handle = loop_->CallLater(absl::Hours(5), [captured = std::move(captured)] {});

  handle.Cancel();

  EXPECT_TRUE(watch.expired());
}

TEST_F(EventLoopTest, AHandleIsSafeAfterTheLoop) {  // HDL 19
  std::unique_ptr<EventLoop> other = *EventLoop::Create();
  Handle soon = other->CallSoon([] {});
  TimerHandle later = other->CallLater(absl::Hours(1), [] {});
  Handle cancelled = other->CallSoon([] {});
  cancelled.Cancel();
  other->Close();
  other.reset();

  soon.Cancel();
  later.Cancel();
  EXPECT_TRUE(cancelled.Cancelled());
  EXPECT_TRUE(soon.Cancelled());
}

TEST_F(EventLoopTest, AStaleHandleDoesNotCancelWhoeverHasTheSlotNow) {
  Handle stale = loop_->CallSoon([] {});
  RunOneRound();
  loop_->CallSoon(Log("the slot's next"));  // The free list is last in, first out.

  stale.Cancel();
  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("the slot's next"));
}

TEST_F(EventLoopTest, ACopyKnowsOfTheCancellation) {
  Handle handle = loop_->CallSoon(Log("never"));
  Handle copy = handle;

  handle.Cancel();

  EXPECT_TRUE(copy.Cancelled());
}

TEST_F(EventLoopTest, WhenIsTheTimeOfTheCallPlusTheDelay) {  // HDL 20, A-19
  TimerHandle handle = loop_->CallLater(absl::Seconds(3), [] {});
  EXPECT_EQ(handle.When(), loop_->Time() + absl::Seconds(3));
  handle.Cancel();
  EXPECT_EQ(handle.When(), loop_->Time() + absl::Seconds(3));
}

// -- TIM: timers.

TEST_F(EventLoopTest, TimersFireInOrderOfDeadlineAndEqualOnesInOrderOfScheduling) {  // TIM 22, 23
  const TimePoint at = loop_->Time() + absl::Seconds(1);
  loop_->CallAt(at + absl::Nanoseconds(1), Log("last"));
  loop_->CallAt(at, Log("a"));
  loop_->CallAt(at, Log("b"));
  loop_->CallAt(at - absl::Nanoseconds(1), Log("first"));
  loop_->CallAt(at, Log("c"));

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("first", "a", "b", "c", "last"));
}

TEST_F(EventLoopTest, PastTimersRunNextRoundBehindWhatIsReady) {  // TIM 24, A-16, A-17
  clock_.Advance(absl::Hours(1));
  loop_->CallLater(-absl::Seconds(1), Log("-1"));
  loop_->CallLater(-absl::Seconds(5), Log("-5"));
  loop_->CallLater(absl::ZeroDuration(), Log("0"));
  loop_->CallAt(TimePoint(), Log("start of time"));
  loop_->CallSoon(Log("soon"));
  EXPECT_THAT(log_, IsEmpty());

  RunOneRound();

  EXPECT_THAT(log_, ElementsAre("soon", "start of time", "-5", "-1", "0"));
}

TEST_F(EventLoopTest, ATimerAddedInARoundIsNotRunInIt) {  // TIM 25
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    loop_->CallLater(absl::ZeroDuration(), again);
    loop_->Stop();
  };
  loop_->CallLater(absl::ZeroDuration(), again);

  loop_->RunForever();
  EXPECT_EQ(runs, 1);
  loop_->RunForever();
  EXPECT_EQ(runs, 2);
}

TEST_F(EventLoopTest, ACancelledTimerIsNoReasonToWake) {  // TIM 26
  TimerHandle handle = loop_->CallLater(absl::Seconds(1), Log("never"));
  loop_->CallLater(absl::Seconds(5), [this] { loop_->Stop(); });
  handle.Cancel();

  loop_->RunForever();

  EXPECT_EQ(loop_->Time(), TimePoint() + absl::Seconds(5));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(EventLoopTest, HugeDelaysNeverFire) {  // TIM 28
  loop_->CallLater(absl::Seconds(1e9), Log("1e9 s"));
  loop_->CallLater(absl::InfiniteDuration(), Log("infinite"));
  loop_->CallLater(absl::Hours(24) * 365 * 400, Log("400 years"));
  loop_->CallLater(absl::Milliseconds(10), [this] {
    log_.push_back("10 ms");
    loop_->Stop();
  });

  loop_->RunForever();

  EXPECT_THAT(log_, ElementsAre("10 ms"));
}

TEST_F(EventLoopTest, ATimerThatCancelsAndRearmsItselfRunsEachPeriod) {  // TIM 29
  std::vector<absl::Duration> times;
  TimerHandle handle;
  std::function<void()> tick = [&] {
    times.push_back(loop_->Time() - TimePoint());
    handle.Cancel();  // The one that runs: nothing to cancel any more.
    if (times.size() == 3) return loop_->Stop();
    handle = loop_->CallLater(absl::Milliseconds(1), tick);
    handle.Cancel();
    handle = loop_->CallLater(absl::Milliseconds(5), tick);
  };
  handle = loop_->CallLater(absl::Milliseconds(5), tick);

  loop_->RunForever();

  EXPECT_THAT(times,
              ElementsAre(absl::Milliseconds(5), absl::Milliseconds(10), absl::Milliseconds(15)));
}

TEST_F(EventLoopTest, ACallbackThatBlocksDelaysTimersButNotTheirOrder) {
  loop_->CallLater(absl::Milliseconds(10), Log("10"));
  loop_->CallLater(absl::Milliseconds(20), Log("20"));
  loop_->CallSoon([this] {
    clock_.Advance(absl::Milliseconds(50));
    loop_->CallLater(absl::ZeroDuration(), Log("0 after"));
    loop_->CallSoon(Log("soon after"));
  });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("soon after", "10", "20", "0 after"));
}

// -- EXC: the exception handler.

TEST_F(EventLoopTest, AnExceptionInACallbackIsReportedAndTheRoundGoesOn) {  // EXC 304, A-27
  std::vector<ExceptionContext> contexts;
  loop_->SetExceptionHandler(
      [&](EventLoop&, const ExceptionContext& context) { contexts.push_back(context); });
  loop_->CallSoon([] { throw TimeoutError("boom"); });
  loop_->CallSoon(Log("goes on"));

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("goes on"));
  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_THAT(contexts[0].message,
              AllOf(HasSubstr("Exception in callback"), HasSubstr("event_loop_test.cc")));
  EXPECT_TRUE(contexts[0].handle.has_value());
  EXPECT_EQ(DescribeException(contexts[0].exception), "weft::TimeoutError: boom");
}

TEST_F(EventLoopTest, AHandlerThatThrowsIsContained) {  // EXC 306, A-88
  loop_->SetExceptionHandler(
      [](EventLoop&, const ExceptionContext&) { throw TimeoutError("from the handler"); });
  loop_->CallSoon([] { throw 3; });
  loop_->CallSoon(Log("goes on"));

  ::testing::internal::CaptureStderr();
  RunUntilIdle();
  const std::string logged = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(log_, ElementsAre("goes on"));
  EXPECT_THAT(logged, AllOf(HasSubstr("Unhandled error in exception handler"),
                            HasSubstr("from the handler"), HasSubstr("Exception in callback")));
}

TEST_F(EventLoopTest, ALogSinkThatThrowsIsContained) {  // EXC 306
  loop_->SetExceptionHandler(nullptr);
  LogSink before =
      SetLogSink([](LogSeverity, std::string_view) { throw TimeoutError("from the sink"); });
  loop_->CallSoon([] { throw TimeoutError("boom"); });
  loop_->CallSoon(Log("goes on"));

  ::testing::internal::CaptureStderr();
  RunUntilIdle();
  loop_->SetExceptionHandler([](EventLoop&, const ExceptionContext&) { throw 1; });
  loop_->CallSoon([] { throw TimeoutError("boom again"); });
  RunUntilIdle();
  const std::string logged = ::testing::internal::GetCapturedStderr();
  SetLogSink(before);

  EXPECT_THAT(log_, ElementsAre("goes on"));
  EXPECT_THAT(logged, AllOf(HasSubstr("TimeoutError: boom"),
                            HasSubstr("Unhandled error in exception handler"),
                            HasSubstr("TimeoutError: boom again")));
}

// As in asyncio it leaves the run; after the callbacks of the round, in which it cannot
// be thrown. What was queued by then waits for the next run.
TEST_F(EventLoopTest, AKeyboardInterruptInACallbackLeavesTheRun) {
  const auto run = [this](auto add) {
    log_.clear();
    add();
    loop_->CallSoon([this] {
      log_.push_back("same round");
      loop_->CallSoon(Log("next round"));
    });
    bool interrupted = false;
    try {
      RunUntilIdle();
    } catch (const KeyboardInterrupt&) {
      interrupted = true;
    }
    return interrupted;
  };
  EXPECT_TRUE(run([this] { loop_->CallSoon([] { throw KeyboardInterrupt(); }); }));
  EXPECT_THAT(log_, ElementsAre("same round"));
  RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("same round", "next round"));

  EXPECT_TRUE(
      run([this] { loop_->CallLater(absl::Seconds(1), [] { throw KeyboardInterrupt(); }); }));
  EXPECT_TRUE(run([this] { loop_->CallSoonThreadsafe([] { throw KeyboardInterrupt(); }); }));
  EXPECT_TRUE(run([this] {
    Future<int> future = loop_->CreateFuture<int>();
    future.AddDoneCallback([](const Future<int>&) { throw KeyboardInterrupt(); });
    future.SetResult(1);
  }));
  EXPECT_TRUE(run([this] {
    NativeHandle ends[2];
    ASSERT_EQ(SystemSocketApi()->OpenPair(SocketType::kStream, ends), 0);
    ASSERT_TRUE(loop_
                    ->AddWriter(ends[1],
                                [this, ends = std::to_array(ends)] {
                                  loop_->RemoveWriter(ends[1]);
                                  for (NativeHandle end : ends) SystemSocketApi()->Close(end);
                                  throw KeyboardInterrupt();
                                })
                    .ok());
  }));
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_FALSE(run([this] { loop_->CallSoon([] { throw TimeoutError(); }); }));
  EXPECT_EQ(reports_.size(), 1u);

  loop_->SetExceptionHandler(
      [](EventLoop&, const ExceptionContext&) { throw KeyboardInterrupt(); });
  EXPECT_TRUE(run([this] { loop_->CallSoon([] { throw TimeoutError(); }); }));
}

Coro<void> ThrowInterrupt() {
  co_await Yield();
  throw KeyboardInterrupt();
}
Coro<void> AwaitIt(Task<void> task, std::vector<std::string>* log) {
  Outcome<void> outcome = co_await NoThrow(std::move(task));
  log->push_back(DescribeException(outcome.exception()));
}

TEST_F(EventLoopTest, AKeyboardInterruptInATaskLeavesTheRunAndIsTheTasks) {
  Task<void> task = loop_->CreateTask(ThrowInterrupt());
  Task<void> waiter = loop_->CreateTask(AwaitIt(task, &log_));

  EXPECT_THROW(RunUntilIdle(), KeyboardInterrupt);

  EXPECT_TRUE(task.Done());
  EXPECT_FALSE(waiter.Done());
  EXPECT_EQ(DescribeException(task.Exception()), "weft::KeyboardInterrupt");
  RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("weft::KeyboardInterrupt"));
  EXPECT_THROW(loop_->RunUntilComplete(ThrowInterrupt()), KeyboardInterrupt);
  EXPECT_THROW(loop_->RunUntilComplete(loop_->CreateTask(ThrowInterrupt())), KeyboardInterrupt);
  RunUntilIdle();
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(EventLoopTest, UserCodeMayReport) {  // EXC 307, A-88
  std::vector<ExceptionContext> contexts;
  loop_->SetExceptionHandler(
      [&](EventLoop&, const ExceptionContext& context) { contexts.push_back(context); });
  loop_->CallExceptionHandler(ExceptionContext("as given"));

  ASSERT_EQ(contexts.size(), 1u);
  EXPECT_EQ(contexts[0].message, "as given");
  EXPECT_EQ(contexts[0].exception, nullptr);
  EXPECT_FALSE(contexts[0].future);
  EXPECT_FALSE(contexts[0].handle.has_value());
}

TEST_F(EventLoopTest, WithoutAHandlerReportsAreLogged) {  // EXC 305, A-88
  EXPECT_NE(loop_->GetExceptionHandler(), nullptr);
  loop_->SetExceptionHandler(nullptr);
  EXPECT_EQ(loop_->GetExceptionHandler(), nullptr);
  loop_->CallSoon([] { throw TimeoutError("boom"); });

  ::testing::internal::CaptureStderr();
  RunUntilIdle();
  const std::string logged = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(logged, AllOf(HasSubstr("Exception in callback"), HasSubstr("boom")));
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_EQ((*EventLoop::Create())->GetExceptionHandler(), nullptr);
}

// -- Close.

struct CountsItself {
  explicit CountsItself(int* count) : count(count) { ++*count; }
  CountsItself(CountsItself&& other) noexcept : count(other.count) { ++*count; }
  ~CountsItself() { --*count; }
  int* count;
};

Coro<void> HoldForEver(CountsItself, std::vector<std::string>* log, std::string name) {
  struct Leaves {
    std::vector<std::string>* log;
    std::string name;
    ~Leaves() { log->push_back(name); }
  } leaves{log, std::move(name)};
  co_await Sleep(absl::InfiniteDuration());
  log->push_back("was resumed");
}

TEST_F(EventLoopTest, CloseDestroysWhatIsLeftAndReportsTheTasks) {  // CXX 96, A-25, A-36
  int alive = 0;
  loop_->CallLater(absl::Hours(1), [counted = CountsItself(&alive)] {});
  Task<void> held = loop_->CreateTask(HoldForEver(CountsItself(&alive), &log_, "first"));
  (void)loop_->CreateTask(HoldForEver(CountsItself(&alive), &log_, "second"));
  RunOneRound();
  loop_->CallSoon([counted = CountsItself(&alive)] {});
  (void)loop_->CreateTask(HoldForEver(CountsItself(&alive), &log_, "never started"));
  ASSERT_EQ(alive, 5);

  loop_->Close();

  EXPECT_EQ(alive, 0);
  EXPECT_THAT(log_, ElementsAre("first", "second"));
  EXPECT_THAT(reports_, ElementsAre("Task was destroyed but it is pending!",
                                    "Task was destroyed but it is pending!",
                                    "Task was destroyed but it is pending!"));
  EXPECT_FALSE(held.Done());
  EXPECT_FALSE(held.Cancel());
}

// Calls its loop when it is destroyed.
struct CallsItsLoop {
  CallsItsLoop(EventLoop* loop, Future<int> future, std::vector<std::string>* log)
      : loop(loop), future(std::move(future)), log(log) {}
  ~CallsItsLoop() {
    future.SetResult(1);
    log->push_back(ThrownBy([this] { loop->CallSoon([] {}); }));
    log->push_back(ThrownBy([this] { (void)loop->CreateTask(DoNothing()); }));
  }
  EventLoop* loop;
  Future<int> future;
  std::vector<std::string>* log;
};

Coro<void> KeepForEver(std::unique_ptr<CallsItsLoop>) { co_await Sleep(absl::InfiniteDuration()); }

TEST_F(EventLoopTest, DestructorsMayCallTheLoopWhileItCloses) {  // CXX 96
  Future<int> future = loop_->CreateFuture<int>();
  future.AddDoneCallback([](const Future<int>&) { FAIL(); });
  (void)loop_->CreateTask(KeepForEver(std::make_unique<CallsItsLoop>(loop_.get(), future, &log_)));
  RunOneRound();

  loop_->Close();

  EXPECT_THAT(log_, ElementsAre("weft::RuntimeError: Event loop is closed",
                                "weft::RuntimeError: Event loop is closed"));
  EXPECT_EQ(future.Result(), 1);
}

Coro<void> WaitForEver() { co_await Sleep(absl::InfiniteDuration()); }

Coro<void> KeepShared(std::shared_ptr<void>) { co_await Sleep(absl::InfiniteDuration()); }

TEST_F(EventLoopTest, CloseInTheMidstOfCloseDoesNothing) {
  int reports = 0;
  std::vector<std::string> thrown;
  loop_->SetExceptionHandler([&](EventLoop& loop, const ExceptionContext&) {
    ++reports;
    loop.Close();
    thrown.push_back(ThrownBy([&] { loop.RunForever(); }));
    thrown.push_back(ThrownBy([&] { loop.RunOnce(absl::ZeroDuration()); }));
    thrown.push_back(ThrownBy([&] { loop.RunUntilComplete(DoNothing()); }));
  });
  // In each place from which Close() calls what is not its own.
  const auto closer = [this] {
    return std::shared_ptr<void>(nullptr, [this](void*) {
      loop_->Close();
      log_.push_back("destroyed");
    });
  };
  (void)loop_->CreateTask(WaitForEver());
  (void)loop_->CreateTask(KeepShared(closer()));
  RunOneRound();
  (void)loop_->CreateTask(KeepShared(closer()));
  loop_->CallSoon([keep = closer()] {});
  loop_->CallSoonThreadsafe([keep = closer()] {});
  loop_->CallLater(absl::Hours(1), [keep = closer()] {});
  NativeHandle ends[2];
  ASSERT_EQ(SystemSocketApi()->OpenPair(SocketType::kStream, ends), 0);
  ASSERT_TRUE(loop_->AddReader(ends[0], [keep = closer()] {}).ok());
  ASSERT_TRUE(loop_->AddSignalHandler(SIGTERM, [keep = closer()] {}).ok());

  loop_->Close();

  EXPECT_TRUE(loop_->IsClosed());
  EXPECT_EQ(reports, 3);
  EXPECT_EQ(log_, std::vector<std::string>(7, "destroyed"));
  EXPECT_EQ(thrown, std::vector<std::string>(9, "weft::RuntimeError: Event loop is closed"));
  for (NativeHandle end : ends) SystemSocketApi()->Close(end);
}

TEST_F(EventLoopTest, AFutureMayOutliveItsLoop) {
  std::unique_ptr<EventLoop> other = *EventLoop::Create();
  Future<int> future = other->CreateFuture<int>();
  future.AddDoneCallback([](const Future<int>&) { FAIL(); });
  Future<int> failed = other->CreateFuture<int>();
  other->Close();
  other.reset();

  future.SetResult(3);
  EXPECT_EQ(future.Result(), 3);
  EXPECT_EQ(ThrownBy([&] { future.AddDoneCallback([](const Future<int>&) {}); }),
            "weft::RuntimeError: Event loop is closed");
  EXPECT_TRUE(failed.Cancel());
}

TEST(EventLoopUnclosedTest, TheDestructorClosesWithAWarning) {
  ::testing::internal::CaptureStderr();
  {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("unclosed event loop"));
}

// -- Making one.

TEST(EventLoopCreateTest, TheLoopSaysWhichPollerItHas) {
  std::unique_ptr<EventLoop> by_default = *EventLoop::Create();
  EXPECT_EQ(by_default->poller_name(), ResolvePollerName(""));
  LoopOptions options;
  options.poller = AvailablePollers().back().name;  // poll, where there is a choice.
  std::unique_ptr<EventLoop> by_name = *EventLoop::Create(options);
  EXPECT_EQ(by_name->poller_name(), options.poller);

  // The same rules, whichever it is.
  for (EventLoop* loop : {by_default.get(), by_name.get()}) {
    std::vector<std::string> log;
    loop->CallLater(absl::ZeroDuration(), [&] {
      log.push_back("later");
      loop->Stop();
    });
    loop->CallSoon([&] { log.push_back("soon"); });
    loop->RunForever();
    EXPECT_THAT(log, ElementsAre("soon", "later"));
    loop->Close();
  }
}

TEST(EventLoopCreateTest, AnUnknownPollerIsNamed) {
  LoopOptions options;
  options.poller = "no such thing";

  const absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create(options);

  EXPECT_EQ(loop.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loop.status().message()),
              AllOf(HasSubstr("no such thing"), HasSubstr(AvailablePollers().front().name)));
}

// -- To live inside a foreign loop.

TEST_F(EventLoopTest, RunOnceRunsOneRound) {
  loop_->CallSoon([this] {
    log_.push_back("1");
    loop_->CallSoon(Log("2"));
  });
  EXPECT_TRUE(loop_->RunOnce(absl::ZeroDuration()));
  EXPECT_THAT(log_, ElementsAre("1"));
  EXPECT_TRUE(loop_->RunOnce(absl::ZeroDuration()));
  EXPECT_THAT(log_, ElementsAre("1", "2"));
  EXPECT_FALSE(loop_->RunOnce(absl::ZeroDuration()));

  loop_->CallLater(absl::Seconds(2), Log("timer"));
  EXPECT_FALSE(loop_->RunOnce(absl::Seconds(1)));
  EXPECT_TRUE(loop_->RunOnce(absl::Seconds(10)));
  EXPECT_THAT(log_, ElementsAre("1", "2", "timer"));
}

}  // namespace
}  // namespace weft
