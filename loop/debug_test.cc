// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Debug mode: what it refuses, and what it tells.

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/as_completed.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/wait_for.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/queue.h"
#include "weft/testing/environment_variable.h"
#include "weft/testing/thrown_by.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The same on another thread, while this one waits.
std::string ThrownOnAnotherThread(const std::function<void()>& call) {
  std::string thrown;
  std::thread thread([&] { thrown = ThrownBy(call); });
  thread.join();
  return thrown;
}

constexpr char kWrongThread[] =
    "weft::RuntimeError: Non-thread-safe operation invoked on an event loop other than the current "
    "one";

// A loop in debug mode, in virtual time.
class DebugTest : public ::testing::Test {
 protected:
  DebugTest() { loop_ = MakeLoop(); }
  ~DebugTest() override { loop_->Close(); }

  std::unique_ptr<EventLoop> MakeLoop() {
    LoopOptions options;
    options.debug = true;
    options.environment.clock = &clock_;
    return *EventLoop::Create(options);
  }
  // Runs `call` as a callback.
  void RunInLoop(const std::function<void()>& call) {
    loop_->CallSoon([&] {
      call();
      loop_->Stop();
    });
    loop_->RunForever();
  }

  VirtualClock clock_;
  std::unique_ptr<EventLoop> loop_;
};

Coro<int> Give(int value) { co_return value; }

// -- The switch.

TEST_F(DebugTest, IsSwitchedByOptionByCallAndByTheEnvironment) {  // DBG 310, A-78, RUN 45, A-79
  EXPECT_TRUE(loop_->debug());
  loop_->SetDebug(false);
  EXPECT_FALSE(loop_->debug());

  std::unique_ptr<EventLoop> plain = *EventLoop::Create();
  EXPECT_FALSE(plain->debug());
  plain->Close();
  for (const char* value : {"1", "yes"}) {
    SetEnvironment("WEFT_DEBUG", value);
    std::unique_ptr<EventLoop> by_environment = *EventLoop::Create();
    EXPECT_TRUE(by_environment->debug()) << value;
    by_environment->Close();
  }
  for (const char* value : {"0", ""}) {
    SetEnvironment("WEFT_DEBUG", value);
    std::unique_ptr<EventLoop> by_environment = *EventLoop::Create();
    EXPECT_FALSE(by_environment->debug()) << value;
    by_environment->Close();
  }
  UnsetEnvironment("WEFT_DEBUG");

  RunOptions options;
  options.debug = true;
  const auto is_debug = []() -> Coro<bool> { co_return GetRunningLoop().debug(); };
  EXPECT_TRUE(weft::Run(is_debug(), options));
  EXPECT_FALSE(weft::Run(is_debug()));
}

// -- Calls from another thread.

TEST_F(DebugTest, CallsFromAnotherThreadAreRefused) {  // DBG 308, A-69
  Future<int> future = loop_->CreateFuture<int>();
  Future<int> done = loop_->CreateFuture<int>();
  done.SetResult(1);
  CallbackId id = future.AddDoneCallback([](const Future<int>&) {});
  Task<int> task = loop_->CreateTask(Give(1));
  TaskRef task_ref = task;
  Handle handle = loop_->CallLater(absl::Hours(1), [] {});
  int changes = 0;
  const std::vector<std::function<void()>> calls = {
      [&] { loop_->CallSoon([&] { ++changes; }); },
      [&] { loop_->CallLater(absl::ZeroDuration(), [&] { ++changes; }); },
      [&] { loop_->CallAt(TimePoint(), [&] { ++changes; }); },
      [&] { loop_->CreateTask([&]() -> Coro<> { co_return static_cast<void>(++changes); }); },
      [&] { (void)loop_->CreateFuture<int>(); },
      [&] { loop_->Stop(); },
      [&] { (void)loop_->AddReader(0, [] {}); },
      [&] { (void)loop_->AddWriter(0, [] {}); },
      [&] { loop_->RemoveReader(0); },
      [&] { loop_->RemoveWriter(0); },
      [&] { (void)loop_->AddSignalHandler(1, [] {}); },
      [&] { loop_->RemoveSignalHandler(1); },
      [&] { (void)loop_->RunInExecutor(nullptr, [] {}); },
      [&] { loop_->SetDefaultExecutor(nullptr); },
      [&] { loop_->SetExceptionHandler(nullptr); },
      [&] { loop_->SetDebug(false); },
      [&] { (void)loop_->AllTasks(); },
      [&] { handle.Cancel(); },
      [&] { future.SetResult(1); },
      [&] { future.SetException(TimeoutError()); },
      [&] { future.Cancel(); },
      [&] { future.AddDoneCallback([](const Future<int>&) {}); },
      [&] { future.RemoveDoneCallback(id); },
      [&] { (void)future.Done(); },
      [&] { (void)future.Cancelled(); },
      [&] { (void)done.Result(); },
      [&] { (void)done.TakeResult(); },
      [&] { task.Cancel(); },
      [&] { task.Uncancel(); },
      [&] { task.SetName("another"); },
      [&] { task_ref.Cancel(); },
      [&] { (void)task_ref.Done(); },
  };

  std::vector<std::string> thrown;
  RunInLoop([&] {
    for (const auto& call : calls) thrown.push_back(ThrownOnAnotherThread(call));
  });

  EXPECT_THAT(thrown, Each(kWrongThread));
  EXPECT_EQ(changes, 0);
  EXPECT_TRUE(handle.IsPending());
  EXPECT_FALSE(future.Done());
  EXPECT_FALSE(task.Cancelled());
  EXPECT_TRUE(loop_->debug());
}

TEST_F(DebugTest, WhoeverWaitsOnALoopIsWokenByItAlone) {  // DBG 308
  Event event;
  Lock lock;
  Queue<int> queue;
  const auto wait_for_event = [&]() -> Coro<> { (void)co_await event.Wait(); };
  const auto wait_for_lock = [&]() -> Coro<> { (void)co_await lock.Acquire(); };
  const auto wait_for_item = [&]() -> Coro<> { (void)co_await queue.Get(); };
  Lock::Guard guard = lock.TryAcquire();
  loop_->CreateTask(wait_for_event);
  loop_->CreateTask(wait_for_lock);
  loop_->CreateTask(wait_for_item);
  loop_->CallLater(absl::Seconds(1), [&] { loop_->Stop(); });
  loop_->RunForever();

  std::vector<std::string> thrown;
  RunInLoop([&] {
    thrown.push_back(ThrownOnAnotherThread([&] { event.Set(); }));
    thrown.push_back(ThrownOnAnotherThread([&] { lock.Release(); }));
    thrown.push_back(ThrownOnAnotherThread([&] { queue.PutNowait(1); }));
    thrown.push_back(ThrownOnAnotherThread([&] { queue.Shutdown(); }));
  });

  EXPECT_THAT(thrown, Each(kWrongThread));
  EXPECT_FALSE(event.IsSet());
  EXPECT_TRUE(lock.Locked());
  EXPECT_TRUE(queue.Empty());
  event.Set();
  guard.Release();
  queue.PutNowait(1);
  RunInLoop([] {});
  EXPECT_TRUE(loop_->AllTasks().empty());
}

TEST_F(DebugTest, TheDoorsForOtherThreadsStayOpen) {
  int ran = 0;
  RunInLoop([&] {
    EXPECT_EQ(ThrownOnAnotherThread([&] { loop_->CallSoonThreadsafe([&] { ++ran; }); }), "nothing");
    EXPECT_EQ(ThrownOnAnotherThread([&] { loop_->Ref().Post([&] { ++ran; }); }), "nothing");
  });
  RunInLoop([] {});

  EXPECT_EQ(ran, 2);
}

TEST_F(DebugTest, ALoopThatDoesNotRunIsNobodys) {
  Future<int> future = loop_->CreateFuture<int>();

  EXPECT_EQ(ThrownOnAnotherThread([&] { future.SetResult(1); }), "nothing");
  EXPECT_EQ(ThrownOnAnotherThread([&] { loop_->CallSoon([] {}); }), "nothing");
}

TEST_F(DebugTest, OutsideOfDebugModeNothingIsChecked) {  // DBG 308
  loop_->SetDebug(false);
  int ran = 0;

  RunInLoop([&] {
    EXPECT_EQ(ThrownOnAnotherThread([&] { loop_->CallSoon([&] { ++ran; }); }), "nothing");
  });
  RunInLoop([] {});

  EXPECT_EQ(ran, 1);
}

TEST_F(DebugTest, AClosedLoopThrowsNothingAtDestructors) {
  Future<int> future = loop_->CreateFuture<int>();
  Future<int> other = loop_->CreateFuture<int>();
  loop_->Close();

  EXPECT_EQ(ThrownOnAnotherThread([&] { future.SetResult(1); }), "nothing");
  EXPECT_EQ(ThrownOnAnotherThread([&] { other.Cancel(); }), "nothing");
}

// -- Futures of another loop.

TEST_F(DebugTest, AFutureOfAnotherLoopIsRefusedInEveryUse) {
  std::unique_ptr<EventLoop> other = MakeLoop();
  Future<int> future = other->CreateFuture<int>();
  Task<int> task = other->CreateTask(Give(1));
  CallbackId id = future.AddDoneCallback([](const Future<int>&) {});
  const std::vector<std::function<void()>> calls = {
      [&] { future.SetResult(1); },
      [&] { future.SetException(TimeoutError()); },
      [&] { future.Cancel(); },
      [&] { future.AddDoneCallback([](const Future<int>&) {}); },
      [&] { future.RemoveDoneCallback(id); },
      [&] { task.Cancel(); },
      [&] { task.SetName("another"); },
  };

  std::vector<std::string> thrown;
  RunInLoop([&] {
    for (const auto& call : calls) thrown.push_back(ThrownBy(call));
  });

  EXPECT_THAT(thrown, Each(HasSubstr("attached to a different loop")));
  EXPECT_THAT(thrown.front(), StartsWith("weft::RuntimeError: Future <Future pending>"));
  EXPECT_FALSE(future.Done());
  task.Cancel();
  other->RunOnce(absl::ZeroDuration());
  other->Close();
}

class OtherLoopTest : public ::testing::TestWithParam<bool> {};

// What asyncio leaves hanging, in part: refused in every mode.
TEST_P(OtherLoopTest, IsRefusedAtEveryAwait) {
  LoopOptions options;
  options.debug = GetParam();
  std::unique_ptr<EventLoop> other = *EventLoop::Create(options);
  Future<int> future = other->CreateFuture<int>();
  std::vector<std::string> thrown;
  const auto await_all = [&]() -> Coro<> {
    const auto thrown_by = [&](auto awaitable) -> Coro<> {
      Outcome<void> outcome = co_await NoThrow(awaitable());
      thrown.push_back(DescribeException(outcome.exception()));
    };
    auto plain = [&]() -> Coro<> { co_await future; };
    auto shielded = [&]() -> Coro<> { co_await Shield(future); };
    auto in_time = [&]() -> Coro<> { co_await WaitFor(future, absl::Seconds(1)); };
    auto at_once = [&]() -> Coro<> { co_await WaitFor(future, absl::ZeroDuration()); };
    auto gathered = [&]() -> Coro<> { co_await Gather(Give(1), future); };
    auto completed = [&]() -> Coro<> {
      std::vector<Future<int>> futures;
      futures.push_back(future);
      auto range = AsCompleted(std::move(futures));
      co_await range.Next();
    };
    co_await thrown_by(plain);
    co_await thrown_by(shielded);
    co_await thrown_by(in_time);
    co_await thrown_by(at_once);
    co_await thrown_by(gathered);
    co_await thrown_by(completed);
  };

  weft::Run(await_all());
  std::unique_ptr<EventLoop> third = *EventLoop::Create();
  thrown.push_back(ThrownBy([&] { third->RunUntilComplete(future); }));
  third->Close();

  ASSERT_EQ(thrown.size(), 7u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(thrown[i], AllOf(StartsWith("weft::RuntimeError: Task <Task"),
                                 HasSubstr("attached to a different loop")));
  }
  for (size_t i = 4; i < 7; ++i) {
    EXPECT_THAT(thrown[i],
                HasSubstr("The future belongs to a different loop than the one specified as the "
                          "loop argument"));
  }
  EXPECT_FALSE(future.Done());
  other->Close();
}

INSTANTIATE_TEST_SUITE_P(Debug, OtherLoopTest, ::testing::Bool());

// -- Coroutines where a callback belongs: they do not compile.

using ReturnsCoro = Coro<> (*)();
using StartsTask = Task<> (*)();

template <class F>
concept CanCallSoon = requires(EventLoop& loop, F callback) { loop.CallSoon(callback); };
template <class F>
concept CanCallLater =
    requires(EventLoop& loop, F callback) { loop.CallLater(absl::Seconds(1), callback); };
template <class F>
concept CanPost = requires(EventLoop& loop, F callback) { loop.Ref().Post(callback); };
template <class F>
concept CanAddReader = requires(EventLoop& loop, F callback) { loop.AddReader(0, callback); };
template <class F>
concept CanAddSignalHandler =
    requires(EventLoop& loop, F callback) { loop.AddSignalHandler(1, callback); };
template <class F>
concept CanRunInExecutor =
    requires(EventLoop& loop, F callback) { loop.RunInExecutor(nullptr, callback); };
template <class F>
concept CanRunInThread = requires(F callback) { ToThread(callback); };
template <class F>
concept CanBeDoneCallback =
    requires(Future<int>& future, F callback) { future.AddDoneCallback(callback); };

static_assert(CanCallSoon<StartsTask> && !CanCallSoon<ReturnsCoro> && !CanCallSoon<Coro<>>);
static_assert(CanCallLater<StartsTask> && !CanCallLater<ReturnsCoro>);
static_assert(CanPost<StartsTask> && !CanPost<ReturnsCoro>);
static_assert(CanAddReader<StartsTask> && !CanAddReader<ReturnsCoro>);
static_assert(CanAddSignalHandler<StartsTask> && !CanAddSignalHandler<ReturnsCoro>);
static_assert(CanRunInExecutor<int (*)()> && !CanRunInExecutor<ReturnsCoro>);
static_assert(CanRunInThread<int (*)()> && !CanRunInThread<ReturnsCoro>);
static_assert(CanBeDoneCallback<void (*)(Future<int>)> &&
              !CanBeDoneCallback<Coro<> (*)(Future<int>)>);

// -- Handles in words.

TEST_F(DebugTest, AHandleSaysWhereItWasCreatedAndThatItWasCancelled) {  // DBG 313, A-20
  Handle handle = loop_->CallSoon([] {});
  EXPECT_THAT(handle.ToString(), StartsWith("<Handle created at loop/debug_test.cc:"));
  handle.Cancel();
  EXPECT_THAT(handle.ToString(), StartsWith("<Handle cancelled created at loop/debug_test.cc:"));

  TimerHandle timer = loop_->CallLater(absl::Milliseconds(1500), [] {});
  EXPECT_THAT(timer.ToString(),
              StartsWith("<TimerHandle when=1.5s created at loop/debug_test.cc:"));
  TimerHandle copy = timer;
  timer.Cancel();
  EXPECT_EQ(copy.ToString(), "<TimerHandle when=1.5s cancelled>");

  Handle ran = loop_->CallSoon([] {});
  RunInLoop([] {});
  EXPECT_EQ(ran.ToString(), "<Handle done>");
}

}  // namespace
}  // namespace weft
