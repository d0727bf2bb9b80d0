// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/condition.h"

#include <algorithm>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

class ConditionTest : public ::testing::Test {
 public:
  Coro<void> Waiter(int n) {
    Lock::Guard guard = co_await condition_->Acquire();
    Outcome<void> outcome = co_await NoThrow(condition_->Wait());
    trace_(n, outcome.cancelled() ? " cancelled" : "", condition_->Locked() ? "" : " unlocked");
    std::move(outcome).value();
  }

  Coro<void> Notifier(int64_t n, int yields = 0) {
    Lock::Guard guard = co_await condition_->Acquire();
    condition_->Notify(n);
    for (int i = 0; i < yields; ++i) co_await Yield();
    trace_("notified");
  }

  Trace trace_;
  std::unique_ptr<Condition> condition_ = std::make_unique<Condition>();
  TestLoop loop_;
};

// COND 166
TEST_F(ConditionTest, NeedsTheLock) {
  Task<void> wait = CreateTask(condition_->Wait());
  loop_.RunRound();

  EXPECT_THAT([&] { wait.Result(); },
              ::testing::ThrowsMessage<RuntimeError>("cannot wait on un-acquired lock"));
  EXPECT_THAT([&] { condition_->Notify(); },
              ::testing::ThrowsMessage<RuntimeError>("cannot notify on un-acquired lock"));
  EXPECT_THROW(condition_->NotifyAll(), RuntimeError);
  EXPECT_THAT([&] { condition_->Release(); },
              ::testing::ThrowsMessage<RuntimeError>("Lock is not acquired."));
}

// COND 167
TEST_F(ConditionTest, NotifyWakesThoseWhoWaitedLongest) {
  for (int i = 0; i < 4; ++i) Spawn(Waiter(i));
  loop_.RunRound();
  EXPECT_FALSE(condition_->Locked());

  Spawn(Notifier(2, /*yields=*/3));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "notified, 0, 1");
  EXPECT_FALSE(condition_->Locked());
  EXPECT_EQ(condition_->ToString(), "<Condition [unlocked, waiters:2]>");
}

// COND 168; hops: all of NotifyAll +1 if nobody awaits while holding the lock.
TEST_F(ConditionTest, NotifyAllWakesAllInOrder) {
  for (int i = 0; i < 4; ++i) Spawn(Waiter(i));
  loop_.RunRound();

  Lock::Guard guard = condition_->TryAcquire();
  condition_->NotifyAll();
  guard.Release();
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0, 1, 2, 3");
}

// hops: else one lock hop each.
TEST_F(ConditionTest, WhoAwaitsWithTheLockHoldsUpTheNext) {
  auto waiter = [&](int n) -> Coro<void> {
    Lock::Guard guard = co_await condition_->Acquire();
    co_await condition_->Wait();
    trace_(n);
    co_await Yield();
  };
  for (int i = 0; i < 3; ++i) Spawn(waiter, i);
  loop_.RunRound();
  Lock::Guard guard = condition_->TryAcquire();
  condition_->NotifyAll();
  guard.Release();

  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "0");
  loop_.RunRound();  // The first lets go.
  EXPECT_EQ(trace_.Take(), "");
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "1");
  loop_.RunRound();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "2");
}

// COND 169
TEST_F(ConditionTest, CancelledWaiterHoldsTheLock) {
  Task<void> task = CreateTask(Waiter(0));
  loop_.RunRound();

  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled");
  EXPECT_FALSE(condition_->Locked());
}

// COND 170
TEST_F(ConditionTest, SecondCancelDoesNotMakeItLeaveWithoutTheLock) {
  Task<void> task = CreateTask(Waiter(0));
  loop_.RunRound();
  Lock::Guard guard = condition_->TryAcquire();

  task.Cancel("first");
  for (int i = 0; i < 3; ++i) loop_.RunRound();
  task.Cancel("second");
  for (int i = 0; i < 3; ++i) loop_.RunRound();
  EXPECT_FALSE(task.Done());
  trace_("release");
  guard.Release();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "release, 0 cancelled");
  EXPECT_FALSE(condition_->Locked());
  EXPECT_TRUE(task.Cancelled());
}

// COND 171
TEST_F(ConditionTest, WaitForReturnsThePredicatesValue) {
  std::string value;
  Task<std::optional<std::string>> task = CreateTask([&]() -> Coro<std::optional<std::string>> {
    Lock::Guard guard = co_await condition_->Acquire();
    co_return co_await condition_->WaitFor([&] {
      trace_("looked");
      return value.empty() ? std::nullopt : std::optional<std::string>(value);
    });
  });
  loop_.RunRound();

  Spawn(Notifier(1));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "looked, notified, looked");
  EXPECT_FALSE(task.Done());
  value = "v3";
  Spawn(Notifier(1));
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "v3");
}

TEST_F(ConditionTest, APredicateThatThrowsLeavesTheLockToTheGuard) {
  Task<void> task = CreateTask([&]() -> Coro<void> {
    Lock::Guard guard = co_await condition_->Acquire();
    co_await condition_->WaitFor([]() -> bool { throw ValueError("from the predicate"); });
  });
  loop_.RunUntilIdle();

  EXPECT_THAT([&] { task.Result(); }, ::testing::ThrowsMessage<ValueError>("from the predicate"));
  EXPECT_FALSE(condition_->Locked());
}

TEST_F(ConditionTest, WaitForOfWhatHoldsDoesNotSuspend) {
  Task<bool> task = CreateTask(condition_->WaitFor([] { return true; }));

  loop_.RunRound();

  EXPECT_TRUE(task.Result());
}

// Lost by CPython before 3.13.
TEST_F(ConditionTest, NotificationOfACancelledWaiterGoesOn) {
  Task<void> first = CreateTask(Waiter(0));
  Spawn(Waiter(1));
  loop_.RunRound();

  Spawn([&]() -> Coro<void> {
    Lock::Guard guard = co_await condition_->Acquire();
    condition_->Notify(1);
    first.Cancel();
  });
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled, 1");
}

// The same, cancelled while it takes the lock.
TEST_F(ConditionTest, NotificationOfAWaiterCancelledAtTheLockGoesOn) {
  Task<void> first = CreateTask(Waiter(0));
  Spawn(Waiter(1));
  loop_.RunRound();

  Spawn([&]() -> Coro<void> {
    Lock::Guard guard = co_await condition_->Acquire();
    condition_->Notify(1);
    co_await Yield();
    co_await Yield();
    first.Cancel();
    co_await Yield();
    first.Cancel();
  });
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled, 1");
}

TEST_F(ConditionTest, SeveralMayShareALock) {
  Lock lock;
  Condition full(lock), empty(lock);
  std::vector<int> items;
  Spawn([&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) {
      Lock::Guard guard = co_await lock.Acquire();
      co_await empty.WaitFor([&] { return items.empty(); });
      items.push_back(i);
      full.Notify();
    }
  });
  Spawn([&]() -> Coro<void> {
    for (int i = 0; i < 5; ++i) {
      Lock::Guard guard = co_await lock.Acquire();
      co_await full.WaitFor([&] { return !items.empty(); });
      trace_(items.back());
      items.pop_back();
      empty.Notify();
    }
  });

  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0, 1, 2, 3, 4");
  EXPECT_FALSE(lock.Locked());
}

TEST_F(ConditionTest, MayBeDestroyedWhileTasksWait) {
  auto waiter = [&](int n) -> Coro<void> {
    Lock::Guard guard = co_await condition_->Acquire();
    Outcome<void> outcome = co_await NoThrow(condition_->Wait());
    trace_(n, outcome.cancelled() ? " cancelled" : "");
  };
  Task<void> waits = CreateTask(waiter, 0), notified = CreateTask(waiter, 1),
             at_the_lock = CreateTask(waiter, 2);
  loop_.RunRound();
  Lock::Guard guard = condition_->TryAcquire();
  condition_->Notify(3);
  loop_.RunRound();
  waits.Cancel();
  loop_.RunRound();

  condition_.reset();
  EXPECT_FALSE(guard);
  notified.Cancel();
  at_the_lock.Cancel();
  waits.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "1 cancelled, 2 cancelled, 0 cancelled");
}

// The lock is somebody else's by then.
TEST_F(ConditionTest, WaitersOfADestroyedOneStillTakeTheLock) {
  Lock lock;
  auto condition = std::make_unique<Condition>(lock);
  Task<void> task = CreateTask([&]() -> Coro<void> {
    Lock::Guard guard = co_await lock.Acquire();
    co_await condition->Wait();
  });
  loop_.RunRound();
  condition.reset();
  Lock::Guard guard = lock.TryAcquire();

  task.Cancel();
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());
  EXPECT_TRUE(lock.Locked());
  guard.Release();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
  EXPECT_FALSE(lock.Locked());
}

// The condition goes at any point of a wait, and then the task or the loop does.
TEST_F(ConditionTest, AWaitForMayOutliveTheConditionAtAnyPoint) {
  for (int variant = 0; variant < 64; ++variant) {
    const bool has_own_lock = (variant & 1) != 0;
    const bool is_notified = (variant & 2) != 0;
    const bool holds = (variant & 4) != 0;
    const bool is_cancelled = (variant & 8) != 0;
    const int rounds = variant >> 4;
    SCOPED_TRACE(variant);
    TestLoop loop;
    Lock lock;
    auto condition =
        has_own_lock ? std::make_unique<Condition>() : std::make_unique<Condition>(lock);
    bool predicate = false;
    const auto wait = [&]() -> Coro<bool> {
      Lock::Guard guard = co_await condition->Acquire();
      Outcome<bool> outcome = co_await NoThrow(condition->WaitFor([&] { return predicate; }));
      EXPECT_EQ(lock.Locked(), !has_own_lock);
      co_return std::move(outcome).value();
    };
    Task<bool> task = CreateTask(wait());
    loop.RunRound();
    if (is_notified) {
      Lock::Guard guard = condition->TryAcquire();
      condition->NotifyAll();
      predicate = holds;
    }
    for (int i = 0; i < rounds; ++i) loop.RunRound();

    condition.reset();
    loop.RunUntilIdle();

    // Who was told that it holds has not waited in vain.
    EXPECT_EQ(task.Done(), is_notified && holds);
    EXPECT_FALSE(lock.Locked());
    if (!is_cancelled) {
      loop.Close();
      continue;
    }
    EXPECT_EQ(task.Cancel(), !(is_notified && holds));
    loop.RunUntilIdle();
    EXPECT_EQ(task.Cancelled(), !(is_notified && holds));
    EXPECT_FALSE(lock.Locked());
  }
}

TEST_F(ConditionTest, FramesMayGoBeforeOrAfterTheCondition) {
  auto waiter = [](Condition& condition) -> Coro<void> {
    Lock::Guard guard = co_await condition.Acquire();
    co_await condition.Wait();
  };
  Spawn([&]() -> Coro<void> {
    Condition inner;
    for (int i = 0; i < 3; ++i) Spawn(waiter, std::ref(inner));
    co_await Sleep(absl::Hours(1));
  });
  for (int i = 0; i < 3; ++i) Spawn(Waiter(i));
  Spawn(Notifier(1, 100));
  for (int i = 0; i < 5; ++i) loop_.RunRound();

  loop_.Close();

  EXPECT_FALSE(condition_->Locked());
}

// DBG 312
TEST_F(ConditionTest, TextShowsTheState) {
  EXPECT_EQ(condition_->ToString(), "<Condition [unlocked]>");
  Spawn(Waiter(0));
  loop_.RunRound();
  Lock::Guard guard = condition_->TryAcquire();
  std::ostringstream out;
  out << *condition_;
  EXPECT_EQ(out.str(), "<Condition [locked, waiters:1]>");
}

// Tokens are made and each is taken once; nobody sleeps while there is one.
TEST_F(ConditionTest, NoNotificationIsLostUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Condition condition;
    int tokens = 0, made = 0, taken = 0, waiting = 0;
    std::vector<Task<void>> tasks;
    auto take = [&](uint32_t yields) -> Coro<void> {
      Lock::Guard guard = co_await condition.Acquire();
      ++waiting;
      Outcome<bool> outcome = co_await NoThrow(condition.WaitFor([&] { return tokens > 0; }));
      --waiting;
      EXPECT_TRUE(condition.Locked());
      if (outcome.cancelled()) co_return;
      --tokens;
      ++taken;
      while (yields-- > 0) (void)co_await NoThrow(Yield());
    };
    auto make = [&](uint32_t yields) -> Coro<void> {
      Lock::Guard guard = co_await condition.Acquire();
      ++tokens;
      ++made;
      condition.Notify();
      while (yields-- > 0) (void)co_await NoThrow(Yield());
    };
    for (int round = 0; round < 100; ++round) {
      for (uint32_t i = random() % 3; i > 0; --i) {
        tasks.push_back(CreateTask(take, random() % 3));
      }
      if (random() % 2 == 0) tasks.push_back(CreateTask(make, random() % 3));
      for (uint32_t i = random() % 3; i > 0 && !tasks.empty(); --i) {
        const size_t newest = std::min<size_t>(tasks.size(), 12);
        tasks[tasks.size() - 1 - random() % newest].Cancel();
      }
      loop_.RunRound();
    }
    loop_.RunUntilIdle();

    EXPECT_TRUE(waiting == 0 || tokens == 0) << "seed " << seed;
    EXPECT_EQ(made, taken + tokens);
    EXPECT_FALSE(condition.Locked());
    for (Task<void>& task : tasks) task.Cancel();
    loop_.RunUntilIdle();
    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
