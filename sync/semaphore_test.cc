// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/semaphore.h"

#include <algorithm>
#include <deque>
#include <memory>
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

class SemaphoreTest : public ::testing::Test {
 public:
  void Make(int64_t value) { semaphore_ = std::make_unique<Semaphore>(value); }

  // Acquires, tells, and keeps the unit.
  Coro<void> Taker(int n) {
    Outcome<Semaphore::Guard> outcome = co_await NoThrow(semaphore_->Acquire());
    trace_(n, outcome.cancelled() ? " cancelled" : "");
    std::move(outcome).value().Detach();
  }

  Trace trace_;
  std::unique_ptr<Semaphore> semaphore_ = std::make_unique<Semaphore>(0);
  TestLoop loop_;
};

// SEM 172, A-97
TEST_F(SemaphoreTest, IsLockedWhenAllUnitsAreTaken) {
  Make(2);
  Spawn(Taker(0));
  loop_.RunRound();
  EXPECT_FALSE(semaphore_->Locked());
  Spawn(Taker(1));
  loop_.RunRound();
  EXPECT_TRUE(semaphore_->Locked());

  semaphore_->Release();

  EXPECT_FALSE(semaphore_->Locked());
  EXPECT_EQ(semaphore_->Value(), 1);
  EXPECT_THAT([] { Semaphore semaphore(-1); },
              ::testing::ThrowsMessage<ValueError>("Semaphore initial value must be >= 0"));
  EXPECT_THROW(BoundedSemaphore(-1), ValueError);
}

// SEM 173, A-97
TEST_F(SemaphoreTest, OnlyABoundedOneRefusesExtraUnits) {
  BoundedSemaphore bounded(1);
  Make(1);

  EXPECT_THAT([&] { bounded.Release(); },
              ::testing::ThrowsMessage<ValueError>("BoundedSemaphore released too many times"));
  semaphore_->Release();
  semaphore_->Release();

  EXPECT_EQ(semaphore_->Value(), 3);
  EXPECT_EQ(bounded.Value(), 1);
  Semaphore::Guard guard = bounded.TryAcquire();
  bounded.Release();
  guard.Release();  // One too many, but not by hand.
  EXPECT_EQ(bounded.Value(), 1);
}

// SEM 174; hops: Semaphore::Release to the first who waits +1, handed over.
TEST_F(SemaphoreTest, UnitsGoToTheWaitersInOrder) {
  for (int i = 0; i < 3; ++i) Spawn(Taker(i));
  loop_.RunRound();

  for (int i = 0; i < 3; ++i) {
    semaphore_->Release();
    EXPECT_EQ(semaphore_->Value(), 0);  // Handed over.
    loop_.RunRound();
    EXPECT_EQ(trace_.Take(), std::to_string(i));
  }
}

// SEM 175
TEST_F(SemaphoreTest, NewcomerGoesBehindTheWaiters) {
  for (int i = 0; i < 3; ++i) Spawn(Taker(i));
  loop_.RunRound();
  Spawn([&]() -> Coro<void> {
    for (int i = 0; i < 4; ++i) semaphore_->Release();
    trace_("rel");
    EXPECT_EQ(semaphore_->Value(), 1);
    EXPECT_TRUE(semaphore_->Locked());
    EXPECT_FALSE(semaphore_->TryAcquire());
    (co_await semaphore_->Acquire()).Detach();
    trace_("me");
  });

  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "rel, 0, 1, 2, me");
  EXPECT_EQ(semaphore_->Value(), 0);
}

// SEM 177, QUE 185, A-97: tasks wait, not the thread.
TEST_F(SemaphoreTest, LimitsHowManyAreInside) {
  Make(5);
  int inside = 0, most = 0, done = 0;
  auto worker = [&](int i) -> Coro<void> {
    Semaphore::Guard guard = co_await semaphore_->Acquire();
    most = std::max(most, ++inside);
    co_await Sleep(absl::Milliseconds(i % 7));
    --inside;
    ++done;
  };
  for (int i = 0; i < 50; ++i) Spawn(worker, i);

  loop_.RunRound();
  EXPECT_EQ(inside, 5);
  loop_.RunUntilIdle();

  EXPECT_EQ(most, 5);
  EXPECT_EQ(done, 50);
  EXPECT_EQ(semaphore_->Value(), 5);
}

// hops: a cancelled waiter is skipped, the next one +1.
TEST_F(SemaphoreTest, ReleasePassesOverACancelledWaiter) {
  Task<void> first = CreateTask(Taker(0));
  Spawn(Taker(1));
  loop_.RunRound();

  first.Cancel();
  semaphore_->Release();
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0 cancelled, 1");
}

// hops: woken and then cancelled: the next one +2.
TEST_F(SemaphoreTest, UnitOfAWaiterCancelledAfterItWasWokenGoesOn) {
  Task<void> first = CreateTask(Taker(0));
  Spawn(Taker(1));
  loop_.RunRound();

  semaphore_->Release();
  first.Cancel();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "0 cancelled");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "1");
}

TEST_F(SemaphoreTest, TwoUnitsWhileTheWokenWaiterIsCancelledServeTwo) {
  Task<void> first = CreateTask(Taker(0));
  for (int i = 1; i < 4; ++i) Spawn(Taker(i));
  loop_.RunRound();

  semaphore_->Release();
  first.Cancel();
  semaphore_->Release();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled, 1, 2");
}

TEST_F(SemaphoreTest, CancelledWaitersDoNotKeepANewcomerOut) {
  Task<void> first = CreateTask(Taker(0));
  loop_.RunRound();

  first.Cancel();
  semaphore_->Release();

  EXPECT_FALSE(semaphore_->Locked());
  EXPECT_TRUE(semaphore_->TryAcquire());
}

TEST_F(SemaphoreTest, ManyReleasesInOneRoundAreLinear) {
  constexpr int kMany = 100'000;
  std::vector<Task<Semaphore::Guard>> tasks;
  for (int i = 0; i < kMany; ++i) tasks.push_back(CreateTask(semaphore_->Acquire()));
  loop_.RunRound();

  for (int i = 0; i < kMany; i += 2) tasks[i].Cancel();
  for (int i = 0; i < kMany / 2; ++i) semaphore_->Release();
  loop_.RunUntilIdle();

  EXPECT_EQ(loop_.pending_tasks(), 0);
  EXPECT_TRUE(tasks[kMany - 2].Cancelled());
  EXPECT_TRUE(tasks[kMany - 1].Result());
  tasks.clear();
  EXPECT_EQ(semaphore_->Value(), kMany / 2);
}

TEST_F(SemaphoreTest, GuardsAndWaitersMayOutliveTheSemaphore) {
  Make(1);
  Semaphore::Guard guard = semaphore_->TryAcquire();
  Task<void> waits = CreateTask(Taker(0)), woken = CreateTask(Taker(1));
  loop_.RunRound();

  waits.Cancel();
  semaphore_->Release();
  semaphore_.reset();
  guard.Release();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled, 1");
}

TEST_F(SemaphoreTest, FramesThatEndInTheirWaitLoseNoUnit) {
  for (int i = 0; i < 3; ++i) Spawn(Taker(i));
  loop_.RunRound();
  semaphore_->Release();

  loop_.Close();

  EXPECT_EQ(semaphore_->Value(), 1);
  EXPECT_TRUE(semaphore_->TryAcquire());
}

// DBG 312
TEST_F(SemaphoreTest, TextShowsTheState) {
  EXPECT_EQ(Semaphore(3).ToString(), "<Semaphore [unlocked, value:3]>");
  Spawn(Taker(0));
  loop_.RunRound();
  EXPECT_EQ(semaphore_->ToString(), "<Semaphore [locked, waiters:1]>");
  std::ostringstream out;
  out << BoundedSemaphore(2);
  EXPECT_EQ(out.str(), "<BoundedSemaphore [unlocked, value:2]>");
}

// SEM 176: units are conserved, nobody sleeps while one is free, and those who are
// not cancelled get theirs in the order in which they asked.
TEST_F(SemaphoreTest, UnitsAreConservedUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const int64_t units = 1 + seed % 4;
    Make(units);
    int64_t inside = 0;
    int asked = 0;
    std::deque<int> queue;  // Who asked and was not served.
    std::vector<Task<void>> tasks;
    auto worker = [&](int n, uint32_t yields) -> Coro<void> {
      queue.push_back(n);
      Outcome<Semaphore::Guard> outcome = co_await NoThrow(semaphore_->Acquire());
      if (outcome.cancelled()) {
        queue.erase(std::find(queue.begin(), queue.end(), n));
        std::rethrow_exception(outcome.exception());
      }
      EXPECT_EQ(*std::find_if(queue.begin(), queue.end(),
                              [&](int m) { return tasks[m].Cancelling() == 0; }),
                n);
      queue.erase(std::find(queue.begin(), queue.end(), n));
      EXPECT_LE(++inside, units);
      for (uint32_t i = 0; i < yields; ++i) {
        if (Outcome<void> yielded = co_await NoThrow(Yield()); yielded.cancelled()) break;
      }
      --inside;
    };
    for (int round = 0; round < 100; ++round) {
      for (uint32_t i = random() % 4; i > 0; --i) {
        tasks.push_back(CreateTask(worker, asked++, random() % 4));
      }
      for (uint32_t i = random() % 3; i > 0 && !tasks.empty(); --i) {
        // Often one that has just been woken, or is about to be.
        const size_t newest = std::min<size_t>(tasks.size(), 12);
        tasks[tasks.size() - 1 - random() % newest].Cancel();
      }
      loop_.RunRound();
    }
    loop_.RunUntilIdle();

    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
    EXPECT_EQ(semaphore_->Value(), units) << "seed " << seed;
    EXPECT_FALSE(semaphore_->Locked()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
