// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/event.h"

#include <memory>
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

class EventTest : public ::testing::Test {
 public:
  Coro<void> Waiter(int n) {
    Outcome<void> outcome = co_await NoThrow(event_->Wait());
    trace_(n, outcome.cancelled() ? " cancelled" : "");
    std::move(outcome).value();
  }

  Trace trace_;
  std::unique_ptr<Event> event_ = std::make_unique<Event>();
  TestLoop loop_;
};

// EVT 162; hops: Event::Set to who waits +1, in one batch.
TEST_F(EventTest, SetReleasesAllInOrderInTheNextRound) {
  for (int i = 0; i < 3; ++i) Spawn(Waiter(i));
  loop_.RunRound();

  event_->Set();
  Spawn([&]() -> Coro<void> {
    trace_("behind");
    co_return;
  });
  EXPECT_EQ(trace_.Take(), "");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0, 1, 2, behind");
}

// EVT 162, QUE 185
TEST_F(EventTest, WaitOnASetEventDoesNotSuspend) {
  event_->Set();
  Spawn(Waiter(0));

  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0");
}

// EVT 163
TEST_F(EventTest, ClearRightAfterSetReleasesThoseWhoWaited) {
  for (int i = 0; i < 3; ++i) Spawn(Waiter(i));
  loop_.RunRound();

  event_->Set();
  event_->Clear();
  Spawn(Waiter(3));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0, 1, 2");
  EXPECT_FALSE(event_->IsSet());
  event_->Set();
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "3");
}

// EVT 164
TEST_F(EventTest, CancelledWaiterDoesNotDisturbTheOthers) {
  Spawn(Waiter(0));
  Task<void> cancelled = CreateTask(Waiter(1));
  Spawn(Waiter(2));
  loop_.RunRound();

  cancelled.Cancel();
  event_->Set();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "1 cancelled, 0, 2");
  EXPECT_TRUE(cancelled.Cancelled());
}

TEST_F(EventTest, WaiterThatIsCancelledAfterItWasWokenIsCancelled) {
  Task<void> task = CreateTask(Waiter(0));
  loop_.RunRound();

  event_->Set();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled");
}

TEST_F(EventTest, CancellationOfOneselfIsDeliveredAtTheWait) {
  Task<void> task;
  task = CreateTask([&]() -> Coro<void> {
    task.Cancel();
    co_await Waiter(0);
  });

  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "0 cancelled");
}

// EVT 165
TEST_F(EventTest, SecondSetHasNoEffect) {
  event_->Set();
  event_->Set();
  EXPECT_TRUE(event_->IsSet());

  event_->Clear();
  Spawn(Waiter(0));
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "");
  EXPECT_EQ(loop_.pending_tasks(), 1);
}

//
TEST_F(EventTest, TasksOfTwoLoopsCannotWaitForTheSame) {
  Spawn(Waiter(0));
  loop_.RunRound();
  Task<void> refused;
  {
    TestLoop other;
    refused = CreateTask(Waiter(1));
    other.RunUntilIdle();
  }

  EXPECT_THAT([&] { refused.Result(); },
              ::testing::ThrowsMessage<RuntimeError>("tasks of a different event loop wait here"));
  EXPECT_EQ(event_->ToString(), "<Event [unset, waiters:1]>");
}

TEST_F(EventTest, MayBeDestroyedRightAfterSet) {
  Spawn(Waiter(0));
  loop_.RunRound();

  event_->Set();
  event_.reset();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0");
}

TEST_F(EventTest, WaitersOfADestroyedEventCanBeCancelled) {
  Task<void> task = CreateTask(Waiter(0));
  loop_.RunRound();

  event_.reset();
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "");
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "0 cancelled");
}

TEST_F(EventTest, MayOutliveTheFramesThatWait) {
  for (int i = 0; i < 3; ++i) Spawn(Waiter(i));
  loop_.RunRound();

  loop_.Close();
  event_->Set();

  EXPECT_EQ(trace_.Take(), "");
}

TEST_F(EventTest, MayBeReachedThroughWrappers) {
  Task<void> task = CreateTask(event_->Wait());
  loop_.RunRound();

  event_->Set();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Done());
}

// DBG 312
TEST_F(EventTest, TextShowsTheState) {
  EXPECT_EQ(event_->ToString(), "<Event [unset]>");
  Spawn(Waiter(0));
  Spawn(Waiter(1));
  loop_.RunRound();
  EXPECT_EQ(event_->ToString(), "<Event [unset, waiters:2]>");
  event_->Set();
  std::ostringstream out;
  out << *event_;
  EXPECT_EQ(out.str(), "<Event [set]>");
}

TEST_F(EventTest, CancellingManyWaitersAtOnceIsLinear) {
  constexpr int kMany = 100'000;
  std::vector<Task<void>> tasks;
  tasks.reserve(kMany);
  for (int i = 0; i < kMany; ++i) tasks.push_back(CreateTask(event_->Wait()));
  loop_.RunRound();

  for (Task<void>& task : tasks) task.Cancel();
  event_->Set();
  loop_.RunUntilIdle();

  EXPECT_TRUE(tasks.back().Cancelled());
  EXPECT_EQ(loop_.pending_tasks(), 0);
}

}  // namespace
}  // namespace weft
