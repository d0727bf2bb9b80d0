// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/lock.h"

#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

class LockTest : public ::testing::Test {
 public:
  // Acquires, tells, holds for `yields` rounds, and releases.
  Coro<void> Holder(int n, int yields = 0) {
    Outcome<Lock::Guard> outcome = co_await NoThrow(lock_->Acquire());
    trace_(n, outcome.cancelled() ? " cancelled" : "");
    Lock::Guard guard = std::move(outcome).value();
    for (int i = 0; i < yields; ++i) co_await Yield();
  }

  Trace trace_;
  std::unique_ptr<Lock> lock_ = std::make_unique<Lock>();
  TestLoop loop_;
};

// LOCK 156
TEST_F(LockTest, PassesInOrderOneAtATime) {
  for (int i = 0; i < 5; ++i) Spawn(Holder(i, 1));

  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0, 1, 2, 3, 4");
  EXPECT_FALSE(lock_->Locked());
}

// LOCK 157
TEST_F(LockTest, ReleaseOfAFreeLockIsAnError) {
  EXPECT_THAT([&] { lock_->Release(); },
              ::testing::ThrowsMessage<RuntimeError>("Lock is not acquired."));
}

// Whoever asks for the lock does not count those who wait, nor do those who were
// cancelled and have not left yet hold a newcomer up.
TEST_F(LockTest, ManyWhoWereCancelledCostANewcomerNothing) {
  constexpr int kMany = 20'000;
  Lock::Guard guard = lock_->TryAcquire();
  std::vector<Task<void>> tasks;
  for (int i = 0; i < kMany; ++i) tasks.push_back(CreateTask(Holder(i)));
  loop_.RunRound();
  for (int i = 0; i < kMany; ++i) {
    EXPECT_FALSE(lock_->TryAcquire());
    tasks[i].Cancel();
  }
  guard.Release();
  for (int i = 0; i < kMany; ++i) EXPECT_TRUE(lock_->TryAcquire());

  loop_.RunUntilIdle();
  for (const Task<void>& task : tasks) EXPECT_TRUE(task.Cancelled());
  EXPECT_FALSE(lock_->Locked());
}

// Cancelled before and after it was woken, in both orders, and frames that go.
TEST_F(LockTest, ANewcomerWaitsBehindThoseWhoAreNotCancelled) {
  for (int variant = 0; variant < 16; ++variant) {
    SCOPED_TRACE(variant);
    TestLoop loop;
    Lock lock;
    const auto hold = [&]() -> Coro<void> {
      Lock::Guard guard = co_await lock.Acquire();
      co_await Yield();
    };
    Lock::Guard guard = lock.TryAcquire();
    Task<void> first = CreateTask(hold());
    Task<void> second = CreateTask(hold());
    loop.RunRound();
    if ((variant & 1) != 0) first.Cancel();
    if ((variant & 2) != 0) guard.Release();
    if ((variant & 4) != 0) first.Cancel();
    if ((variant & 8) != 0) second.Cancel();
    guard.Release();

    const bool first_is_out = (variant & 1) != 0 || ((variant & 4) != 0 && (variant & 2) == 0);
    const bool all_are_out = first_is_out && (variant & 8) != 0;
    EXPECT_EQ(static_cast<bool>(lock.TryAcquire()), all_are_out);
    loop.RunUntilIdle();
    EXPECT_TRUE(lock.TryAcquire());
    Spawn(hold());
    Spawn(hold());
    loop.RunRound();
    loop.Close();
  }
}

TEST_F(LockTest, AFrameThatGoesLeavesTheLockFree) {
  Lock lock;
  {
    TestLoop loop;
    Lock::Guard guard = lock.TryAcquire();
    const auto hold = [&]() -> Coro<void> { Lock::Guard mine = co_await lock.Acquire(); };
    for (int i = 0; i < 3; ++i) Spawn(hold());
    loop.RunRound();
    loop.Close();
  }
  EXPECT_FALSE(lock.Locked());
  EXPECT_TRUE(lock.TryAcquire());
}

// LOCK 158, QUE 185
TEST_F(LockTest, AcquireOfAFreeLockDoesNotSuspend) {
  Spawn(Holder(0, 1));

  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0");
  EXPECT_TRUE(lock_->Locked());
  loop_.RunUntilIdle();
  EXPECT_FALSE(lock_->Locked());
}

// LOCK 159; hops: the lock is not handed over.
TEST_F(LockTest, NewcomerGoesBehindTheWaiters) {
  Spawn([&]() -> Coro<void> {
    Lock::Guard guard = co_await lock_->Acquire();
    co_await Yield();
    guard.Release();
    EXPECT_FALSE(lock_->Locked());
    EXPECT_FALSE(lock_->TryAcquire());
    guard = co_await lock_->Acquire();
    trace_("me");
  });
  Spawn(Holder(0));

  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0, me");
}

// LOCK 160
TEST_F(LockTest, CancelledWaiterLeavesTheLockAlone) {
  Spawn(Holder(0, 3));
  Task<void> cancelled = CreateTask(Holder(1));
  loop_.RunRound();

  cancelled.Cancel();
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "0, 1 cancelled");

  Spawn(Holder(2));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "2");
}

// hops: release, then the head cancelled: the next waiter +2.
TEST_F(LockTest, WaiterCancelledAfterItWasWokenWakesTheNext) {
  Lock::Guard guard = lock_->TryAcquire();
  Task<void> first = CreateTask(Holder(0));
  Spawn(Holder(1));
  loop_.RunRound();

  guard.Release();
  first.Cancel();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "0 cancelled");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "1");
}

// hops: the head cancelled, then release: it stays in the list until it resumes.
TEST_F(LockTest, ReleaseLeavesACancelledHeadToWakeTheNext) {
  Lock::Guard guard = lock_->TryAcquire();
  Task<void> first = CreateTask(Holder(0));
  Spawn(Holder(1));
  loop_.RunRound();

  first.Cancel();
  guard.Release();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "0 cancelled");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "1");
}

TEST_F(LockTest, NewcomerMayPassIfAllWaitersAreCancelled) {
  Lock::Guard guard = lock_->TryAcquire();
  Task<void> first = CreateTask(Holder(0));
  loop_.RunRound();

  first.Cancel();
  guard.Release();

  EXPECT_TRUE(lock_->TryAcquire());
}

// LOCK 161
TEST_F(LockTest, GuardReleasesOnceByReturnAndByException) {
  Task<void> task = CreateTask([&]() -> Coro<void> {
    Lock::Guard guard = co_await lock_->Acquire();
    throw ValueError("x");
  });
  Spawn(Holder(0, 1));
  Spawn(Holder(1));
  loop_.RunUntilIdle();

  EXPECT_THROW(task.Result(), ValueError);
  EXPECT_EQ(trace_.Take(), "0, 1");
  EXPECT_FALSE(lock_->Locked());
}

TEST_F(LockTest, GuardMovesAndCanBeDetached) {
  Lock::Guard guard = lock_->TryAcquire();
  Lock::Guard other = std::move(guard);
  EXPECT_FALSE(guard);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(other);
  EXPECT_TRUE(lock_->Locked());

  EXPECT_EQ(other.Detach(), lock_.get());
  EXPECT_TRUE(lock_->Locked());
  lock_->Release();
  EXPECT_FALSE(lock_->Locked());
}

TEST_F(LockTest, GuardOfALockReleasedByHandDoesNothing) {
  Lock::Guard guard = lock_->TryAcquire();
  lock_->Release();
  guard.Release();
  EXPECT_FALSE(lock_->Locked());
}

TEST_F(LockTest, GuardMayOutliveTheLock) {
  Lock::Guard guard = lock_->TryAcquire();
  Lock::Guard moved;

  lock_.reset();

  EXPECT_FALSE(guard);
  moved = std::move(guard);
  EXPECT_FALSE(moved);
}

TEST_F(LockTest, WaitersOfADestroyedLockCanBeCancelled) {
  Lock::Guard guard = lock_->TryAcquire();
  Task<void> waits = CreateTask(Holder(0));
  loop_.RunRound();

  lock_.reset();
  waits.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled");
}

TEST_F(LockTest, FramesMayGoBeforeOrAfterTheLock) {
  auto acquire = [](Lock& lock) -> Coro<void> {
    Lock::Guard guard = co_await lock.Acquire();
    co_await Sleep(absl::Hours(1));
  };
  Spawn([&]() -> Coro<void> {
    Lock lock;
    for (int i = 0; i < 3; ++i) Spawn(acquire, std::ref(lock));
    Spawn(Holder(0, 100));
    for (int i = 0; i < 3; ++i) Spawn(Holder(i));
    co_await Sleep(absl::Hours(1));
  });
  for (int i = 0; i < 5; ++i) loop_.RunRound();

  loop_.Close();

  EXPECT_EQ(trace_.Take(), "0");
}

// DBG 312
TEST_F(LockTest, TextShowsTheState) {
  EXPECT_EQ(lock_->ToString(), "<Lock [unlocked]>");
  Lock::Guard guard = lock_->TryAcquire();
  EXPECT_EQ(lock_->ToString(), "<Lock [locked]>");
  Spawn(Holder(0));
  loop_.RunRound();
  std::ostringstream out;
  out << *lock_;
  EXPECT_EQ(out.str(), "<Lock [locked, waiters:1]>");
}

// Thousands of acquisitions, cancelled and timed out at random.
TEST_F(LockTest, NothingIsLostUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Lock lock;
    int inside = 0, entered = 0, asked = 0;
    std::vector<int> order;
    std::vector<Task<void>> tasks;
    auto holder = [&](int n, uint32_t yields) -> Coro<void> {
      if (lock.Locked() || !order.empty()) order.push_back(n);
      Lock::Guard guard = co_await lock.Acquire();
      EXPECT_EQ(++inside, 1);
      ++entered;
      for (uint32_t i = 0; i < yields; ++i) {
        Outcome<void> outcome = co_await NoThrow(Yield());
        if (outcome.cancelled()) break;
      }
      --inside;
    };
    for (int round = 0; round < 100; ++round) {
      for (uint32_t i = random() % 4; i > 0; --i) {
        tasks.push_back(CreateTask(holder(asked++, random() % 3)));
      }
      for (uint32_t i = random() % 4; i > 0 && !tasks.empty(); --i) {
        tasks[random() % tasks.size()].Cancel();
      }
      loop_.RunRound();
    }
    loop_.RunUntilIdle();

    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
    EXPECT_FALSE(lock.Locked()) << "seed " << seed;
    EXPECT_EQ(lock.ToString(), "<Lock [unlocked]>") << "seed " << seed;
    EXPECT_GT(entered, 0);
  }
}

}  // namespace
}  // namespace weft
