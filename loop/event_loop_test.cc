// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/event_loop.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/sleep.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What `call` throws, in words: "nothing" if it does not.
template <class F>
std::string ThrownBy(F&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

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

TEST_F(EventLoopTest, CallbacksRunInOrderAndWhatTheyAddRunsNextRound) {  // LOOP 1, A-02
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
      log_, ElementsAre("This event loop is already running", "This event loop is already running",
                        "Cannot run the event loop while another loop is running"));
}

TEST_F(EventLoopTest, CloseInsideOfARunIsRefused) {  // LOOP 5, A-55
  loop_->CallSoon([this] { log_.push_back(ThrownBy([this] { loop_->Close(); })); });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("Cannot close a running event loop"));
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
  const std::string closed = "Event loop is closed";

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
  EXPECT_EQ(ThrownBy([this] { loop_->RunUntilComplete(Fail()); }), "as it was");
}

TEST_F(EventLoopTest, StopBeforeTheEndIsAnError) {  // LOOP 9
  Task<void> task = loop_->CreateTask(Sleep(absl::Hours(1)));
  loop_->CallSoon([this] { loop_->Stop(); });

  EXPECT_EQ(ThrownBy([&] { loop_->RunUntilComplete(Future<void>(task)); }),
            "Event loop stopped before Future completed.");
  EXPECT_FALSE(task.Done());
  task.Cancel();
  RunUntilIdle();
}

TEST_F(EventLoopTest, TheRunningLoopIsKnownInsideOnly) {  // LOOP 10, A-57
  EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  EXPECT_EQ(ThrownBy([] { GetRunningLoop(); }), "no running event loop");
  EXPECT_EQ(ThrownBy([] { (void)CreateTask(DoNothing()); }), "no running event loop");

  loop_->CallSoon([this] {
    EXPECT_EQ(&GetRunningLoop(), loop_.get());
    EXPECT_TRUE(loop_->IsRunning());
  });
  RunUntilIdle();

  EXPECT_EQ(GetRunningLoopOrNull(), nullptr);
  EXPECT_FALSE(loop_->IsRunning());
}

TEST_F(EventLoopTest, MoveOnlyCallablesRunOnceAndAreDestroyedAtOnce) {  // LOOP 12
  auto alive = std::make_shared<int>();
  std::weak_ptr<int> watch = alive;
  loop_->CallSoon([this, alive = std::move(alive), unique = std::make_unique<int>(3)] {
    log_.push_back(std::to_string(*unique));
  });
  loop_->CallSoon([this, watch] { log_.push_back(watch.expired() ? "destroyed" : "alive"); });

  RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("3", "destroyed"));
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

TEST_F(EventLoopTest, PastTimersRunNextRoundBehindWhatIsReady) {  // TIM 24
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

TEST_F(EventLoopTest, ATimerThatRearmsItselfRunsEachPeriod) {  // TIM 29
  std::vector<absl::Duration> times;
  std::function<void()> tick = [&] {
    times.push_back(loop_->Time() - TimePoint());
    if (times.size() == 3) return loop_->Stop();
    loop_->CallLater(absl::Milliseconds(5), tick);
  };
  loop_->CallLater(absl::Milliseconds(5), tick);

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

TEST(EventLoopRealTimeTest, NeverEarlyAndSoon) {  // TIM 21, 30
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  for (int i = 0; i < 20; ++i) {
    const TimePoint start = loop->Time();
    loop->CallLater(absl::Microseconds(300), [&] { loop->Stop(); });
    loop->RunForever();
    EXPECT_GE(loop->Time() - start, absl::Microseconds(300));
  }
  loop->Close();
}

TEST(EventLoopRealTimeTest, ABlockingCallbackMakesTheNextRoundLookAtTheTimers) {
  // Also a loop that is busy with callbacks and skips polls sees that a timer is due.
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<std::string> log;
  int rounds = 0;
  std::function<void()> spin = [&] {
    if (++rounds == 3) {
      const TimePoint until = loop->Time() + absl::Milliseconds(3);
      while (loop->Time() < until) {
      }
      log.push_back("blocked");
      loop->CallSoon([&] { log.push_back("the round after"); });
    }
    if (rounds < 10) loop->CallSoon(spin);
    if (rounds == 10) loop->Stop();
  };
  loop->CallLater(absl::Milliseconds(2), [&] { log.push_back("timer"); });
  loop->CallSoon(spin);

  loop->RunForever();

  EXPECT_THAT(log, ElementsAre("blocked", "the round after", "timer"));
  loop->Close();
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

TEST_F(EventLoopTest, UserCodeMayReport) {  // EXC 305, 307
  loop_->CallExceptionHandler(ExceptionContext("as given"));
  EXPECT_THAT(reports_, ElementsAre("as given"));

  loop_->SetExceptionHandler(nullptr);
  EXPECT_EQ(loop_->GetExceptionHandler(), nullptr);
}

// -- Debug mode.

Coro<void> BlockFor(absl::Duration duration) {
  const TimePoint until = SteadyClock::Read() + duration;
  while (SteadyClock::Read() < until) {
  }
  co_return;
}

TEST_F(EventLoopTest, InDebugModeASlowCallbackAndASlowTaskAreNamed) {  // DBG 309, A-80
  loop_->SetDebug(true);
  loop_->SetSlowCallbackDuration(absl::Milliseconds(1));
  loop_->CallSoon([] {
    const TimePoint until = SteadyClock::Read() + absl::Milliseconds(2);
    while (SteadyClock::Read() < until) {
    }
  });
  loop_->CreateTask(BlockFor(absl::Milliseconds(2)), "the slow one");

  ::testing::internal::CaptureStderr();
  RunUntilIdle();
  const std::string logged = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(logged, HasSubstr("Executing <Handle created at loop/event_loop_test.cc:"));
  EXPECT_THAT(logged, HasSubstr("name='the slow one'"));
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

  EXPECT_THAT(log_, ElementsAre("Event loop is closed", "Event loop is closed"));
  EXPECT_EQ(future.Result(), 1);
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
            "Event loop is closed");
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

TEST(EventLoopCreateTest, AnUnknownPollerIsNamed) {
  LoopOptions options;
  options.poller = "no such thing";

  const absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create(options);

  EXPECT_EQ(loop.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(loop.status().message()),
              AllOf(HasSubstr("no such thing"), HasSubstr("epoll")));
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
