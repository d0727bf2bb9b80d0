// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/barrier.h"

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

class BarrierTest : public ::testing::Test {
 public:
  Coro<void> Party(std::string name) {
    Outcome<int> outcome = co_await NoThrow(barrier_->Wait());
    if (outcome.has_value()) {
      trace_(name, *outcome);
    } else {
      trace_(name, outcome.cancelled() ? " cancelled" : " broken");
    }
  }

  Trace trace_;
  std::unique_ptr<Barrier> barrier_ = std::make_unique<Barrier>(3);
  TestLoop loop_;
};

// BAR 178; hops: the last +0, the others +1.
TEST_F(BarrierTest, ReleasesAllTogetherWithAnIndexByArrival) {
  for (int again = 0; again < 2; ++again) {
    for (const char* name : {"a", "b", "c"}) Spawn(Party(name));
    loop_.RunRound();
    EXPECT_EQ(trace_.Take(), "c2");
    loop_.RunRound();
    EXPECT_EQ(trace_.Take(), "a0, b1");
  }
}

// BAR 179
TEST_F(BarrierTest, TellsHowManyWait) {
  EXPECT_EQ(barrier_->Parties(), 3);
  Spawn(Party("a"));
  Spawn(Party("b"));
  loop_.RunRound();
  EXPECT_EQ(barrier_->NWaiting(), 2);
  Spawn(Party("c"));
  loop_.RunRound();
  EXPECT_EQ(barrier_->NWaiting(), 0);

  EXPECT_THAT([] { Barrier barrier(0); },
              ::testing::ThrowsMessage<ValueError>("parties must be > 0"));
}

// BAR 180
TEST_F(BarrierTest, ResetFailsThoseWhoWait) {
  Spawn(Party("a"));
  Spawn(Party("b"));
  loop_.RunRound();

  barrier_->Reset();
  Spawn(Party("c"));  // Comes while it resets, and waits until that is over.
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "a broken, b broken");
  EXPECT_FALSE(barrier_->Broken());
  EXPECT_EQ(barrier_->NWaiting(), 1);
  Spawn(Party("d"));
  Spawn(Party("e"));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "e2, c0, d1");
}

// BAR 181
TEST_F(BarrierTest, AbortFailsAllUntilReset) {
  Spawn(Party("a"));
  loop_.RunRound();

  barrier_->Abort();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "a broken");
  EXPECT_TRUE(barrier_->Broken());
  Spawn(Party("b"));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "b broken");
  barrier_->Reset();
  EXPECT_FALSE(barrier_->Broken());
  for (const char* name : {"a", "b", "c"}) Spawn(Party(name));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "c2, a0, b1");
}

TEST_F(BarrierTest, ErrorsSayWhy) {
  Task<int> waits = CreateTask(barrier_->Wait());
  loop_.RunRound();
  barrier_->Abort();
  Task<int> comes = CreateTask(barrier_->Wait());
  loop_.RunRound();

  EXPECT_THAT([&] { waits.Result(); },
              ::testing::ThrowsMessage<BrokenBarrierError>("Abort or reset of barrier"));
  EXPECT_THAT([&] { comes.Result(); },
              ::testing::ThrowsMessage<BrokenBarrierError>("Barrier aborted"));
}

// BAR 183: the end of asyncio's `async with barrier` does nothing.
TEST_F(BarrierTest, EachScopeKnowsItsIndex) {
  auto party = [&](const char* name) -> Coro<void> {
    if (int index = co_await barrier_->Wait(); index < barrier_->Parties()) {
      trace_(name, " in ", index);
      co_await Yield();
    }
    trace_(name, " out");
  };
  barrier_ = std::make_unique<Barrier>(2);
  for (const char* name : {"a", "b"}) Spawn(party, name);
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "b in 1, a in 0, b out, a out");
}

// BAR 182
TEST_F(BarrierTest, OfOneNeverBlocks) {
  barrier_ = std::make_unique<Barrier>(1);
  Spawn([&]() -> Coro<void> {
    for (int i = 0; i < 3; ++i) co_await Party("a");
  });

  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "a0, a0, a0");
}

// Who comes while it drains waits, and is in the next lot.
TEST_F(BarrierTest, LateComersWaitUntilItIsEmpty) {
  for (const char* name : {"a", "b", "c", "d", "e"}) Spawn(Party(name));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "c2");
  EXPECT_EQ(barrier_->ToString(), "<Barrier [draining, waiters:0/3]>");

  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "a0, b1");
  EXPECT_EQ(barrier_->NWaiting(), 2);
  Spawn(Party("f"));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "f2, d0, e1");
}

// As in CPython: the place counts down, and the next is sent to the back.
TEST_F(BarrierTest, CancelledPartyDoesNotCount) {
  Task<void> a = CreateTask(Party("a"));
  Spawn(Party("b"));
  loop_.RunRound();

  a.Cancel();
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "a cancelled");
  EXPECT_EQ(barrier_->NWaiting(), 1);
  Spawn(Party("c"));
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "");
  Spawn(Party("d"));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "d2, b1, c1");
}

TEST_F(BarrierTest, MayBeDestroyedWhileTasksWait) {
  Task<void> a = CreateTask(Party("a"));
  Task<void> b = CreateTask(Party("b"));
  loop_.RunRound();

  a.Cancel();
  barrier_.reset();
  b.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "a cancelled, b cancelled");
}

TEST_F(BarrierTest, FramesMayGoBeforeOrAfterTheBarrier) {
  Spawn([&]() -> Coro<void> {
    Barrier inner(9);
    for (int i = 0; i < 3; ++i) Spawn(inner.Wait());
    co_await Sleep(absl::Hours(1));
  });
  Spawn(Party("a"));
  Spawn(Party("b"));
  for (int i = 0; i < 3; ++i) loop_.RunRound();

  loop_.Close();

  EXPECT_EQ(barrier_->NWaiting(), 0);
}

// DBG 312
TEST_F(BarrierTest, TextShowsTheState) {
  EXPECT_EQ(barrier_->ToString(), "<Barrier [filling, waiters:0/3]>");
  Spawn(Party("a"));
  loop_.RunRound();
  std::ostringstream out;
  out << *barrier_;
  EXPECT_EQ(out.str(), "<Barrier [filling, waiters:1/3]>");
  barrier_->Abort();
  EXPECT_EQ(barrier_->ToString(), "<Barrier [broken]>");
}

// Whatever is cancelled, reset and aborted: when enough come, all go.
TEST_F(BarrierTest, StaysUsableUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    barrier_ = std::make_unique<Barrier>(1 + seed % 4);
    std::vector<Task<void>> tasks;
    for (int round = 0; round < 60; ++round) {
      for (uint32_t i = random() % 3; i > 0; --i) tasks.push_back(CreateTask(Party("p")));
      if (random() % 3 == 0 && !tasks.empty()) {
        const size_t newest = std::min<size_t>(tasks.size(), 8);
        tasks[tasks.size() - 1 - random() % newest].Cancel();
      }
      if (random() % 16 == 0) barrier_->Abort();
      if (random() % 8 == 0) barrier_->Reset();
      loop_.RunRound();
    }
    barrier_->Reset();
    loop_.RunUntilIdle();
    while (barrier_->NWaiting() > 0) {
      Spawn(Party("p"));
      loop_.RunUntilIdle();
    }

    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
    trace_.Take();
  }
}

}  // namespace
}  // namespace weft
