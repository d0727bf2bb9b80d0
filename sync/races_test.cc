// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Two things in one round, in both orders: a cancellation and a result, a
// notification, a released semaphore, an item. CPython itself once lost one or the
// other in most of these. What is expected here is what its version 3.13 does.
//
// The tests of Lock, Semaphore, Condition, Queue and Barrier have more of them, at
// random.

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/sync/barrier.h"
#include "weft/sync/condition.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/queue.h"
#include "weft/sync/semaphore.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// How a future ended: "pending", "value", "cancelled", "timeout", or what() of its
// error; the errors of a group in brackets.
std::string Words(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CancelledError&) {
    return "cancelled";
  } catch (const TimeoutError&) {
    return "timeout";
  } catch (const ExceptionGroup& group) {
    std::string text;
    for (const std::exception_ptr& inner : group.exceptions()) {
      text += (text.empty() ? "" : " ") + Words(inner);
    }
    return "[" + text + "]";
  } catch (const std::exception& error) {
    return error.what();
  }
}
template <class T>
std::string Ended(const Future<T>& future) {
  if (!future.Done()) return "pending";
  if (future.Cancelled()) return "cancelled";
  const std::exception_ptr error = future.Exception();
  return error == nullptr ? "value" : Words(error);
}

class RacesTest : public ::testing::Test {
 protected:
  // Does both in one callback, `first` first, or the other way round.
  void InOneRound(bool in_this_order, std::function<void()> first, std::function<void()> second) {
    loop_.CallSoon([=] {
      if (in_this_order) first();
      second();
      if (!in_this_order) first();
    });
    loop_.RunUntilIdle();
  }
  // A task that waits by now.
  template <class A>
  auto Waiting(A awaitable) {
    auto task = CreateTask(std::move(awaitable));
    for (int i = 0; i < 3 && !loop_.ready().empty(); ++i) loop_.RunRound();
    return task;
  }
  template <class T>
  static void SetIfPending(Future<T> future, T value) {
    if (!future.Done()) future.SetResult(value);
  }

  VirtualScheduler loop_;
};

// In both orders.
class BothOrdersTest : public RacesTest, public ::testing::WithParamInterface<bool> {
 protected:
  bool cancelled_second() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Races, BothOrdersTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "CancelledSecond" : "CancelledFirst";
});

// -- A cancellation and a result.

TEST_P(BothOrdersTest, WaitForSwallowsNoCancellation) {
  Future<int> future = MakeFuture<int>(loop_);
  Task<int> task = Waiting(WaitFor(future, absl::Seconds(5)));

  InOneRound(
      cancelled_second(), [=] { SetIfPending(future, 1); },
      [task]() mutable { EXPECT_TRUE(task.Cancel()); });

  EXPECT_EQ(Ended(task), "cancelled");
  EXPECT_EQ(Ended(future), cancelled_second() ? "value" : "cancelled");
}

TEST_P(BothOrdersTest, WaitForOfATaskThatEnds) {
  Future<int> future = MakeFuture<int>(loop_);
  Task<int> inner = Waiting(future);
  Task<int> task = Waiting(WaitFor(inner, absl::Seconds(5)));

  InOneRound(
      cancelled_second(), [=] { SetIfPending(future, 1); },
      [task]() mutable { EXPECT_TRUE(task.Cancel()); });

  EXPECT_EQ(Ended(task), "cancelled");
  EXPECT_EQ(Ended(inner), "cancelled");
}

TEST_P(BothOrdersTest, ShieldKeepsTheResult) {
  Future<int> future = MakeFuture<int>(loop_);
  Task<int> task = Waiting(Shield(future));

  InOneRound(
      cancelled_second(), [=] { SetIfPending(future, 1); }, [task]() mutable { task.Cancel(); });

  EXPECT_EQ(Ended(task), "cancelled");
  EXPECT_EQ(Ended(future), "value");
}

TEST_P(BothOrdersTest, WaitIsCancelledAndLosesNoFuture) {
  Future<int> future = MakeFuture<int>(loop_);
  auto task = Waiting(Wait(std::vector<Future<int>>{future}));

  InOneRound(
      cancelled_second(), [=] { SetIfPending(future, 1); }, [task]() mutable { task.Cancel(); });

  EXPECT_TRUE(task.Cancelled());
  EXPECT_EQ(Ended(future), "value");
}

TEST_P(BothOrdersTest, ATaskThatEnds) {
  Future<int> future = MakeFuture<int>(loop_);
  Task<int> task = Waiting(future);
  bool accepted = false;
  future.SetResult(1);
  auto cancel = [&, task]() mutable { accepted = task.Cancel(); };
  if (cancelled_second()) {
    loop_.CallSoon(cancel);  // Behind its last step.
  } else {
    cancel();
  }
  loop_.RunUntilIdle();

  EXPECT_EQ(accepted, !cancelled_second());
  EXPECT_EQ(Ended(task), cancelled_second() ? "value" : "cancelled");
}

TEST_P(BothOrdersTest, GatherOfWhichAChildFails) {
  Future<int> fails = MakeFuture<int>(loop_), other = MakeFuture<int>(loop_);
  auto task = Waiting(Gather(fails, other));

  InOneRound(
      cancelled_second(),
      [fails]() mutable {
        if (!fails.Done()) fails.SetException(std::runtime_error("failed"));
      },
      [task]() mutable { EXPECT_TRUE(task.Cancel()); });

  EXPECT_EQ(Words(task.Cancelled() ? std::make_exception_ptr(CancelledError()) : task.Exception()),
            cancelled_second() ? "failed" : "cancelled");
  EXPECT_TRUE(other.Cancelled());
  EXPECT_EQ(task.Cancelling(), 1);
}

TEST_P(BothOrdersTest, ASleepThatIsOver) {
  const auto sleeps = []() -> Coro<> { co_await Sleep(absl::Seconds(1)); };
  Task<> task;
  const auto cancel = [&] { task.Cancel(); };
  const TimePoint due = loop_.Now() + absl::Seconds(1);
  if (!cancelled_second()) loop_.CallAt(due, cancel);
  task = CreateTask(sleeps());
  loop_.RunRound();
  if (cancelled_second()) loop_.CallAt(due, cancel);
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
}

// -- Timeouts.

TEST_P(BothOrdersTest, AResultInTheRoundOfTheTimeoutIsTooLateButKept) {
  Future<int> future = MakeFuture<int>(loop_);
  const TimePoint due = loop_.Now() + absl::Seconds(1);
  const auto set = [=] { SetIfPending(future, 1); };
  if (cancelled_second()) loop_.CallAt(due, set);
  Task<int> task = CreateTask(WaitFor(future, absl::Seconds(1)));
  loop_.RunRound();
  if (!cancelled_second()) loop_.CallAt(due, set);
  loop_.RunUntilIdle();

  EXPECT_EQ(Ended(task), "timeout");
  EXPECT_EQ(Ended(future), cancelled_second() ? "value" : "cancelled");
}

TEST_P(BothOrdersTest, ACancellationInTheRoundOfTheTimeoutIsNoTimeout) {
  Task<> task;
  const auto cancel = [&] { task.Cancel(); };
  const TimePoint due = loop_.Now() + absl::Seconds(1);
  if (!cancelled_second()) loop_.CallAt(due, cancel);
  task = CreateTask(WithTimeoutAt(due, Sleep(absl::Seconds(9))));
  loop_.RunRound();
  if (cancelled_second()) loop_.CallAt(due, cancel);
  loop_.RunUntilIdle();

  EXPECT_EQ(Ended(task), "cancelled");
  EXPECT_EQ(task.Cancelling(), 1);
}

TEST_P(BothOrdersTest, OfTwoTimeoutsInOneRoundTheOuterCounts) {
  std::vector<std::string> log;
  const TimePoint outer_due = loop_.Now() + absl::Seconds(1);
  const TimePoint inner_due =
      cancelled_second() ? outer_due : outer_due - absl::Nanoseconds(1);  // Which is first.
  loop_.CallAt(inner_due - absl::Nanoseconds(1), [&] { loop_.Advance(absl::Seconds(1)); });
  const auto body = [&](Timeout&) -> Coro<> {
    Outcome<void> inner = co_await NoThrow(WithTimeoutAt(inner_due, Sleep(absl::Seconds(9))));
    log.push_back("inner " + Words(inner.exception()));
    inner.value();
  };
  const auto main = [&]() -> Coro<int> {
    Outcome<void> outer = co_await NoThrow(WithTimeoutAt(outer_due, body));
    log.push_back("outer " + Words(outer.exception()));
    co_return CurrentTask().Cancelling();
  };

  EXPECT_EQ(loop_.Run(main()), 0);
  EXPECT_THAT(log, ElementsAre("inner cancelled", "outer timeout"));
}

// -- Task groups.

TEST_P(BothOrdersTest, AGroupsFailureHidesNoCancellation) {
  Future<> fails = MakeFuture<void>(loop_);
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(fails);
    co_await Sleep(absl::InfiniteDuration());
  };
  const auto main = [&]() -> Coro<std::string> {
    Outcome<void> outcome = co_await NoThrow(WithTaskGroup(body));
    if (outcome.cancelled()) outcome.value();
    Outcome<void> next = co_await NoThrow(Yield());
    co_return Words(outcome.exception()) + (next.cancelled() ? ", then cancelled" : "");
  };
  Task<std::string> task = Waiting(main());

  InOneRound(
      cancelled_second(), [fails]() mutable { fails.SetException(std::runtime_error("failed")); },
      [task]() mutable { EXPECT_TRUE(task.Cancel()); });

  EXPECT_EQ(task.Cancelling(), 1);
  if (cancelled_second()) {
    EXPECT_EQ(task.Result(), "[failed], then cancelled");
  } else {
    EXPECT_EQ(Ended(task), "cancelled");
  }
}

// However many rounds later it comes: until the group has ended it is delivered.
TEST_F(RacesTest, ACancellationWhileAGroupEndsIsDeliveredBehindIt) {
  std::vector<std::string> log;
  for (int rounds = 0; rounds < 5; ++rounds) {
    Future<> fails = MakeFuture<void>(loop_);
    const auto body = [&](TaskGroup& group) -> Coro<> {
      group.CreateTask(fails);
      co_await Sleep(absl::InfiniteDuration());
    };
    const auto main = [&]() -> Coro<> {
      Outcome<void> outcome = co_await NoThrow(WithTaskGroup(body));
      Outcome<void> next = co_await NoThrow(Yield());
      log.push_back(Words(outcome.exception()) + (next.cancelled() ? ", then cancelled" : ""));
    };
    Task<> task = Waiting(main());
    fails.SetException(std::runtime_error("failed"));
    for (int i = 0; i < rounds; ++i) loop_.RunRound();
    task.Cancel();
    loop_.RunUntilIdle();
  }

  EXPECT_THAT(log, ElementsAre("[failed], then cancelled", "[failed], then cancelled",
                               "[failed], then cancelled", "[failed], then cancelled", "[failed]"));
}

TEST_F(RacesTest, NestedGroupsThatFailTogetherReportBoth) {
  Future<> fails = MakeFuture<void>(loop_);
  const auto child = [&](std::string name) -> Coro<> {
    co_await NoThrow(Shield(fails));
    throw std::runtime_error(name);
  };
  const auto inner = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(child, "inner");
    co_await Sleep(absl::InfiniteDuration());
  };
  const auto outer = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(child, "outer");
    co_await WithTaskGroup(inner);
  };
  const auto main = [&]() -> Coro<std::string> {
    Outcome<void> outcome = co_await NoThrow(WithTaskGroup(outer));
    co_return Words(outcome.exception()) + std::to_string(CurrentTask().Cancelling());
  };
  Task<std::string> task = Waiting(main());
  fails.SetException(std::runtime_error("failed"));
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "[outer [inner]]0");
}

// -- A cancellation and a lock, a unit, a notification, an item.

TEST_P(BothOrdersTest, ALockThatIsReleasedIsFree) {
  Lock lock;
  Lock::Guard guard = lock.TryAcquire();
  auto task = Waiting(lock.Acquire());

  InOneRound(cancelled_second(), [&] { guard.Release(); }, [task]() mutable { task.Cancel(); });

  EXPECT_TRUE(task.Cancelled());
  EXPECT_FALSE(lock.Locked());
  EXPECT_TRUE(lock.TryAcquire());
}

TEST_P(BothOrdersTest, ALockThatIsReleasedGoesToTheNext) {
  Lock lock;
  Lock::Guard guard = lock.TryAcquire();
  auto first = Waiting(lock.Acquire());
  auto second = Waiting(lock.Acquire());

  InOneRound(cancelled_second(), [&] { guard.Release(); }, [first]() mutable { first.Cancel(); });

  EXPECT_TRUE(first.Cancelled());
  EXPECT_TRUE(second.Result());
}

TEST_P(BothOrdersTest, AUnitThatIsReleasedGoesToTheNext) {
  Semaphore semaphore(0);
  auto first = Waiting(semaphore.Acquire());
  auto second = Waiting(semaphore.Acquire());

  InOneRound(
      cancelled_second(), [&] { semaphore.Release(); }, [first]() mutable { first.Cancel(); });

  EXPECT_TRUE(first.Cancelled());
  ASSERT_TRUE(second.Done());
  EXPECT_TRUE(second.Result());
  second = {};
  EXPECT_EQ(semaphore.Value(), 1);
}

TEST_P(BothOrdersTest, ANotificationGoesToTheNext) {
  Condition condition;
  const auto waits = [&]() -> Coro<> {
    Lock::Guard guard = co_await condition.Acquire();
    co_await condition.Wait();
  };
  Task<> first = Waiting(waits());
  Task<> second = Waiting(waits());

  InOneRound(
      cancelled_second(),
      [&] {
        Lock::Guard guard = condition.TryAcquire();
        condition.Notify();
      },
      [first]() mutable { first.Cancel(); });

  EXPECT_EQ(Ended(first), "cancelled");
  EXPECT_EQ(Ended(second), "value");
  EXPECT_FALSE(condition.Locked());
}

TEST_P(BothOrdersTest, AnItemGoesToTheNext) {
  Queue<int> queue;
  Task<int> first = Waiting(queue.Get());
  Task<int> second = Waiting(queue.Get());

  InOneRound(
      cancelled_second(), [&] { queue.PutNowait(1); }, [first]() mutable { first.Cancel(); });

  EXPECT_EQ(Ended(first), "cancelled");
  ASSERT_EQ(Ended(second), "value");
  EXPECT_EQ(second.Result(), 1);
}

TEST_P(BothOrdersTest, APlaceGoesToTheNext) {
  Queue<int> queue(1);
  queue.PutNowait(0);
  Task<> first = Waiting(queue.Put(1));
  Task<> second = Waiting(queue.Put(2));

  InOneRound(
      cancelled_second(), [&] { EXPECT_EQ(queue.GetNowait(), 0); },
      [first]() mutable { first.Cancel(); });

  EXPECT_EQ(Ended(first), "cancelled");
  EXPECT_EQ(Ended(second), "value");
  EXPECT_EQ(queue.GetNowait(), 2);
}

TEST_P(BothOrdersTest, AnEventThatIsSetReleasesTheOthers) {
  Event event;
  Task<> first = Waiting(event.Wait());
  Task<> second = Waiting(event.Wait());

  InOneRound(
      cancelled_second(),
      [&] {
        event.Set();
        event.Clear();
      },
      [first]() mutable { first.Cancel(); });

  EXPECT_EQ(Ended(first), "cancelled");
  EXPECT_EQ(Ended(second), "value");
}

TEST_P(BothOrdersTest, AShutdownReachesTheOthers) {
  Queue<int> queue;
  Task<int> first = Waiting(queue.Get());
  Task<int> second = Waiting(queue.Get());

  InOneRound(cancelled_second(), [&] { queue.Shutdown(); }, [first]() mutable { first.Cancel(); });

  EXPECT_EQ(Ended(first), "cancelled");
  EXPECT_EQ(Ended(second), QueueShutDown().what());
}

TEST_F(RacesTest, TheLastOfABarrierAndAPartyThatIsCancelled) {
  Barrier barrier(3);
  Task<int> first = Waiting(barrier.Wait());
  Task<int> second = Waiting(barrier.Wait());
  Task<int> last = CreateTask(barrier.Wait());
  loop_.RunRound();
  first.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(Ended(first), "cancelled");
  EXPECT_EQ(second.Result(), 1);
  EXPECT_EQ(last.Result(), 2);
  EXPECT_EQ(barrier.NWaiting(), 0);
}

TEST_P(BothOrdersTest, NobodyHearsOfWhatNobodyLost) {
  {
    Future<int> future = MakeFuture<int>(loop_);
    Task<int> task = Waiting(WaitFor(Shield(future), absl::Seconds(5)));
    InOneRound(
        cancelled_second(), [=] { SetIfPending(future, 1); }, [task]() mutable { task.Cancel(); });
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.errors(), IsEmpty());
}

// -- Many at once.

TEST_F(RacesTest, AMillionThatWaitForOneEventAreCancelledAtOnce) {
  constexpr int kMany = 1'000'000;
  Event event;
  int alive = 0;
  struct Counted {
    explicit Counted(int* target) : count(target) { ++*count; }
    ~Counted() { --*count; }
    int* count;
  };
  const auto waits = [&]() -> Coro<> {
    Counted counted(&alive);
    co_await event.Wait();
  };
  std::vector<Task<>> tasks;
  tasks.reserve(kMany);
  for (int i = 0; i < kMany; ++i) tasks.push_back(CreateTask(waits()));
  loop_.RunRound();
  EXPECT_EQ(alive, kMany);

  for (Task<>& task : tasks) task.Cancel();
  loop_.RunRound();

  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(tasks.front().Cancelled());
  EXPECT_TRUE(tasks.back().Cancelled());
  EXPECT_THAT(AllTasks(), IsEmpty());
  EXPECT_EQ(event.ToString(), "<Event [unset]>");
}

}  // namespace
}  // namespace weft
