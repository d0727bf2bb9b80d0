// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/queue.h"

#include <functional>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/wait_for.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class QueueTest : public ::testing::Test {
 public:
  void Make(int64_t max_size) { queue_ = std::make_unique<Queue<int>>(max_size); }

  Coro<void> Getter(std::string name) {
    Outcome<int> outcome = co_await NoThrow(queue_->Get());
    if (outcome.has_value()) {
      trace_(name, " got ", *outcome);
    } else {
      trace_(name, outcome.cancelled() ? " cancelled" : " shut down");
    }
    (void)std::move(outcome).value();
  }

  Coro<void> Putter(std::string name, int item) {
    Outcome<void> outcome = co_await NoThrow(queue_->Put(item));
    trace_(name, outcome.has_value() ? " put" : outcome.cancelled() ? " cancelled" : " shut down");
    std::move(outcome).value();
  }

  Trace trace_;
  std::unique_ptr<Queue<int>> queue_ = std::make_unique<Queue<int>>();
  TestLoop loop_;
};

// All that can be had at once.
template <class Q>
std::vector<int> Drain(Q& queue) {
  std::vector<int> items;
  while (!queue.Empty()) items.push_back(queue.GetNowait());
  return items;
}

// QUE 184
TEST_F(QueueTest, NowaitCallsFailWhenFullOrEmpty) {
  Make(2);
  EXPECT_THROW(queue_->GetNowait(), QueueEmpty);
  EXPECT_TRUE(queue_->Empty());

  queue_->PutNowait(1);
  EXPECT_FALSE(queue_->Full());
  queue_->PutNowait(2);

  EXPECT_THROW(queue_->PutNowait(3), QueueFull);
  EXPECT_TRUE(queue_->Full());
  EXPECT_FALSE(queue_->Empty());
  EXPECT_EQ(queue_->Size(), 2);
  EXPECT_EQ(queue_->MaxSize(), 2);
}

// QUE 184
TEST_F(QueueTest, NoLimitUnlessItIsPositive) {
  for (int64_t max_size : {0, -5}) {
    Make(max_size);
    for (int i = 0; i < 100; ++i) queue_->PutNowait(i);
    EXPECT_FALSE(queue_->Full());
    EXPECT_EQ(queue_->MaxSize(), max_size);
  }
}

// QUE 185
TEST_F(QueueTest, PutWithRoomAndGetOfAnItemDoNotSuspend) {
  Make(1);
  Spawn(Putter("p", 1));
  Spawn(Getter("g"));

  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "p put, g got 1");
}

// QUE 186; hops: a get to a putter +1.
TEST_F(QueueTest, BlockedPuttersGoOnInOrder) {
  Make(1);
  queue_->PutNowait(0);
  for (int i = 1; i < 4; ++i) Spawn(Putter(absl::StrCat("p", i), i));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "");

  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(queue_->GetNowait(), i);
    loop_.RunRound();
  }

  EXPECT_EQ(trace_.Take(), "p1 put, p2 put, p3 put");
}

// QUE 187; hops: PutNowait to a getter +1.
TEST_F(QueueTest, GettersGetInOrder) {
  for (const char* name : {"a", "b", "c"}) Spawn(Getter(name));
  loop_.RunRound();

  for (int i = 0; i < 3; ++i) queue_->PutNowait(i);
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "a got 0, b got 1, c got 2");
}

// hops: no hand-over. The loser waits again at the back.
TEST_F(QueueTest, NewcomerMayTakeTheItemOfAWokenGetter) {
  Spawn(Getter("a"));
  Spawn(Getter("b"));
  loop_.RunRound();

  queue_->PutNowait(1);
  EXPECT_EQ(queue_->GetNowait(), 1);
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "");
  queue_->PutNowait(2);
  queue_->PutNowait(3);
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "b got 2, a got 3");
}

// QUE 188
TEST_F(QueueTest, CancelledGetterLosesNoItem) {
  Task<void> a = CreateTask(Getter("a"));
  loop_.RunRound();
  a.Cancel();
  queue_->PutNowait(1);
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "a cancelled");
  EXPECT_EQ(queue_->Size(), 1);

  Spawn(Getter("b"));
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "b got 1");
}

// QUE 193
TEST_F(QueueTest, AGetThatTimesOutLeavesTheItemForTheNext) {
  const auto main = [&]() -> Coro<int> {
    Outcome<int> outcome = co_await NoThrow(WaitFor(queue_->Get(), absl::Seconds(1)));
    EXPECT_THROW(outcome.value(), TimeoutError);
    queue_->PutNowait(7);
    EXPECT_EQ(queue_->Size(), 1);
    co_return co_await WaitFor(queue_->Get(), absl::Seconds(1));
  };

  EXPECT_EQ(loop_.Run(main()), 7);
  EXPECT_TRUE(queue_->Empty());
}

// hops: a getter that was woken and then cancelled: itself +1, the next +2.
TEST_F(QueueTest, GetterCancelledAfterItWasWokenWakesTheNext) {
  Task<void> a = CreateTask(Getter("a"));
  Spawn(Getter("b"));
  loop_.RunRound();

  queue_->PutNowait(1);
  a.Cancel();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "a cancelled");
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "b got 1");
}

TEST_F(QueueTest, PutterCancelledAfterItWasWokenWakesTheNext) {
  Make(1);
  queue_->PutNowait(0);
  Task<void> a = CreateTask(Putter("a", 1));
  Spawn(Putter("b", 2));
  loop_.RunRound();

  EXPECT_EQ(queue_->GetNowait(), 0);
  a.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "a cancelled, b put");
  EXPECT_THAT(Drain(*queue_), ElementsAre(2));
}

// QUE 189
TEST_F(QueueTest, JoinWaitsForTaskDoneOfAll) {
  auto join = [&]() -> Coro<void> {
    co_await queue_->Join();
    trace_("joined");
  };
  Spawn(join);
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "joined");

  queue_->PutNowait(1);
  queue_->PutNowait(2);
  Spawn(join);
  Drain(*queue_);
  queue_->TaskDone();
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "");
  queue_->TaskDone();
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "joined");
  EXPECT_THAT([&] { queue_->TaskDone(); },
              ::testing::ThrowsMessage<ValueError>("task_done() called too many times"));
}

// QUE 190
TEST_F(QueueTest, PriorityQueueGivesTheSmallestFirstAndLifoTheLast) {
  PriorityQueue<int> smallest;
  PriorityQueue<int, std::greater<int>> largest;
  LifoQueue<int> lifo;
  for (int i : {3, 1, 2}) {
    smallest.PutNowait(i);
    largest.PutNowait(i);
  }
  for (int i : {1, 2, 3}) lifo.PutNowait(i);

  EXPECT_THAT(Drain(smallest), ElementsAre(1, 2, 3));
  EXPECT_THAT(Drain(largest), ElementsAre(3, 2, 1));
  EXPECT_THAT(Drain(lifo), ElementsAre(3, 2, 1));
}

TEST_F(QueueTest, EqualPrioritiesComeInOrder) {
  auto by_ten = [](int a, int b) { return a / 10 < b / 10; };
  PriorityQueue<int, decltype(by_ten)> queue(0, by_ten);
  for (int i : {21, 13, 25, 11, 29, 12, 0}) queue.PutNowait(i);

  EXPECT_THAT(Drain(queue), ElementsAre(0, 13, 11, 12, 21, 25, 29));
}

// QUE 191
TEST_F(QueueTest, CancelledWaitersAreNotKept) {
  Make(1);
  std::vector<Task<void>> tasks;
  for (int i = 0; i < 1000; ++i) tasks.push_back(CreateTask(Getter("g")));
  loop_.RunRound();
  EXPECT_EQ(queue_->ToString(), "<Queue maxsize=1 size=0 getters=1000>");
  for (Task<void>& task : tasks) task.Cancel();
  loop_.RunRound();
  EXPECT_EQ(queue_->ToString(), "<Queue maxsize=1 size=0>");

  queue_->PutNowait(1);
  tasks.clear();
  for (int i = 0; i < 1000; ++i) tasks.push_back(CreateTask(Putter("p", i)));
  loop_.RunRound();
  for (Task<void>& task : tasks) task.Cancel();
  loop_.RunRound();
  EXPECT_EQ(queue_->ToString(), "<Queue maxsize=1 size=1 tasks=1>");
}

// QUE 192
TEST_F(QueueTest, MoveOnlyItemsPass) {
  using Item = std::unique_ptr<int>;
  Queue<Item> queue(1);
  auto by_value = [](const Item& a, const Item& b) { return *a < *b; };
  PriorityQueue<Item, decltype(by_value)> priority(1, by_value);
  LifoQueue<Item> lifo(1);
  std::vector<int> got;
  auto put = [](auto* queue) -> Coro<void> {
    for (int i = 0; i < 3; ++i) co_await queue->Put(std::make_unique<int>(i));
  };
  auto get = [&](auto* queue) -> Coro<void> {
    for (int i = 0; i < 3; ++i) {
      Item item = co_await queue->Get();
      got.push_back(*item);
    }
  };

  Spawn(put, &queue);
  loop_.RunRound();  // The second Put is blocked.
  Spawn(get, &queue);
  loop_.RunUntilIdle();
  Spawn(put, &priority);
  Spawn(get, &priority);
  Spawn(put, &lifo);
  Spawn(get, &lifo);
  loop_.RunUntilIdle();

  EXPECT_EQ(got.size(), 9);
  EXPECT_EQ(loop_.pending_tasks(), 0);
}

// QUE 194
TEST_F(QueueTest, ShutdownFailsPutsAndServesWhatIsLeft) {
  Make(1);
  queue_->PutNowait(1);
  Spawn(Putter("p", 2));
  loop_.RunRound();

  queue_->Shutdown();
  loop_.RunRound();
  EXPECT_EQ(trace_.Take(), "p shut down");
  EXPECT_THROW(queue_->PutNowait(3), QueueShutDown);
  Spawn(Getter("a"));
  Spawn(Getter("b"));
  Spawn(Putter("p", 4));
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "a got 1, b shut down, p shut down");
  EXPECT_THROW(queue_->GetNowait(), QueueShutDown);
}

// QUE 194
TEST_F(QueueTest, ShutdownWakesGettersOfAnEmptyQueue) {
  Spawn(Getter("a"));
  Spawn(Getter("b"));
  loop_.RunRound();

  queue_->Shutdown();
  loop_.RunRound();

  EXPECT_EQ(trace_.Take(), "a shut down, b shut down");
}

TEST_F(QueueTest, ImmediateShutdownDropsItemsAndEndsJoin) {
  for (int i = 0; i < 3; ++i) queue_->PutNowait(i);
  Spawn([&]() -> Coro<void> {
    co_await queue_->Join();
    trace_("joined");
  });
  loop_.RunRound();
  EXPECT_EQ(queue_->GetNowait(), 0);

  queue_->Shutdown(/*immediate=*/true);
  loop_.RunUntilIdle();
  EXPECT_EQ(trace_.Take(), "");
  EXPECT_TRUE(queue_->Empty());
  queue_->TaskDone();  // Of the item that was taken.
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "joined");
  EXPECT_THROW(queue_->GetNowait(), QueueShutDown);
}

// QUE 195
TEST_F(QueueTest, ItemOfACancelledPutDoesNotAppear) {
  Make(1);
  queue_->PutNowait(0);
  Task<void> cancelled = CreateTask(Putter("a", 1));
  Spawn(Putter("b", 2));
  loop_.RunRound();

  cancelled.Cancel();
  loop_.RunUntilIdle();
  std::vector<int> got = Drain(*queue_);
  loop_.RunUntilIdle();
  got.push_back(queue_->GetNowait());

  EXPECT_THAT(got, ElementsAre(0, 2));
  EXPECT_EQ(trace_.Take(), "a cancelled, b put");
}

TEST_F(QueueTest, MayBeDestroyedWhileTasksWait) {
  Make(1);
  Task<void> sleeps = CreateTask(Getter("a"));
  Spawn(Getter("b"));
  Spawn(Getter("c"));
  loop_.RunRound();

  sleeps.Cancel();
  queue_->PutNowait(1);  // Wakes b.
  queue_.reset();
  loop_.RunUntilIdle();

  EXPECT_EQ(trace_.Take(), "a cancelled, b shut down");
  EXPECT_EQ(loop_.pending_tasks(), 1);
}

TEST_F(QueueTest, FramesMayGoBeforeOrAfterTheQueue) {
  auto get = [](Queue<std::string>& queue) -> Coro<void> { (void)co_await queue.Get(); };
  auto put = [](Queue<std::string>& queue) -> Coro<void> {
    while (true) co_await queue.Put(std::string(100, 'x'));
  };
  Queue<std::string> outer(1);
  Spawn([&]() -> Coro<void> {
    Queue<std::string> full(1), empty(1);
    for (int i = 0; i < 3; ++i) {
      Spawn(get, std::ref(empty));
      Spawn(put, std::ref(full));
    }
    co_await Sleep(absl::Hours(1));
  });
  for (int i = 0; i < 3; ++i) Spawn(put, std::ref(outer));
  for (int i = 0; i < 5; ++i) loop_.RunRound();

  loop_.Close();

  EXPECT_EQ(outer.Size(), 1);
}

// DBG 312
TEST_F(QueueTest, TextShowsTheState) {
  Make(1);
  queue_->PutNowait(1);
  Spawn(Putter("p", 2));
  loop_.RunRound();
  std::ostringstream out;
  out << *queue_;
  EXPECT_EQ(out.str(), "<Queue maxsize=1 size=1 putters=1 tasks=1>");
  PriorityQueue<int> priority;
  priority.Shutdown();
  EXPECT_EQ(priority.ToString(), "<PriorityQueue maxsize=0 size=0 shutdown>");
  EXPECT_EQ(LifoQueue<int>(3).ToString(), "<LifoQueue maxsize=3 size=0>");
}

// Every item that was put is got once, in the order of one producer as far as
// one consumer sees, and nobody sleeps while there is something for him.
TEST_F(QueueTest, NothingIsLostUnderRandomCancellations) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    Make(seed % 4);
    int next = 0;
    std::vector<bool> in, out;
    std::vector<Task<void>> tasks;
    int getting = 0, putting = 0;
    auto get = [&]() -> Coro<void> {
      ++getting;
      Outcome<int> outcome = co_await NoThrow(queue_->Get());
      --getting;
      if (!outcome.has_value()) co_return;
      EXPECT_FALSE(out[*outcome]) << "twice";
      out[*outcome] = true;
    };
    auto put = [&](int item) -> Coro<void> {
      ++putting;
      Outcome<void> outcome = co_await NoThrow(queue_->Put(item));
      --putting;
      in[item] = outcome.has_value();
    };
    for (int round = 0; round < 100; ++round) {
      for (uint32_t i = random() % 4; i > 0; --i) tasks.push_back(CreateTask(get));
      for (uint32_t i = random() % 4; i > 0; --i) {
        in.push_back(false);
        out.push_back(false);
        tasks.push_back(CreateTask(put, next++));
      }
      for (uint32_t i = random() % 4; i > 0 && !tasks.empty(); --i) {
        const size_t newest = std::min<size_t>(tasks.size(), 16);
        tasks[tasks.size() - 1 - random() % newest].Cancel();
      }
      loop_.RunRound();
    }
    loop_.RunUntilIdle();

    EXPECT_TRUE(getting == 0 || queue_->Empty()) << "seed " << seed;
    EXPECT_TRUE(putting == 0 || queue_->Full()) << "seed " << seed;
    while (!queue_->Empty()) {
      out[queue_->GetNowait()] = true;
      loop_.RunUntilIdle();
    }
    EXPECT_EQ(in, out) << "seed " << seed;
    for (Task<void>& task : tasks) task.Cancel();
    loop_.RunUntilIdle();
    EXPECT_EQ(loop_.pending_tasks(), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weft
