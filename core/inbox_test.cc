// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/inbox.h"

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/latch.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using PushResult = Inbox::PushResult;

// A post that knows who pushed it and as which, and counts its runs.
struct Post final : Runnable {
  Post() : Runnable([](Runnable* self) { ++static_cast<Post*>(self)->runs; }) {}

  int producer = 0;
  int number = 0;
  int runs = 0;
  bool accepted = false;
};

std::vector<Runnable*> TakeAll(ReadyQueue* queue) {
  std::vector<Runnable*> taken;
  while (Runnable* next = queue->PopFront()) taken.push_back(next);
  return taken;
}

std::vector<Runnable*> Drain(Inbox* inbox) {
  ReadyQueue ready;
  inbox->DrainTo(&ready);
  return TakeAll(&ready);
}

std::vector<Runnable*> Close(Inbox* inbox) {
  ReadyQueue rest;
  inbox->Close(&rest);
  return TakeAll(&rest);
}

TEST(InboxTest, DrainsInTheOrderOfPushing) {
  Inbox inbox;
  Post a, b, c;

  inbox.Push(&a);
  inbox.Push(&b);
  inbox.Push(&c);

  EXPECT_THAT(Drain(&inbox), ElementsAre(&a, &b, &c));
}

TEST(InboxTest, DrainsBehindWhatIsReady) {
  Inbox inbox;
  ReadyQueue ready;
  Post first, second;
  ready.PushBack(&first);
  inbox.Push(&second);

  EXPECT_TRUE(inbox.DrainTo(&ready));

  EXPECT_THAT(TakeAll(&ready), ElementsAre(&first, &second));
}

TEST(InboxTest, DrainingAnEmptyInboxDoesNothing) {
  Inbox inbox;
  ReadyQueue ready;

  EXPECT_FALSE(inbox.DrainTo(&ready));

  EXPECT_TRUE(ready.empty());
}

TEST(InboxTest, SaysWhoFoundItEmpty) {
  Inbox inbox;
  Post a, b, c;

  EXPECT_EQ(inbox.Push(&a), PushResult::kWasEmpty);
  EXPECT_EQ(inbox.Push(&b), PushResult::kQueued);
  Drain(&inbox);
  EXPECT_EQ(inbox.Push(&c), PushResult::kWasEmpty);

  Drain(&inbox);
}

TEST(InboxTest, IsEmptyBetweenDrainAndPush) {
  Inbox inbox;
  Post post;

  EXPECT_TRUE(inbox.empty());
  inbox.Push(&post);
  EXPECT_FALSE(inbox.empty());
  Drain(&inbox);
  EXPECT_TRUE(inbox.empty());
}

TEST(InboxTest, WhatWasDrainedCanBePushedAgain) {
  Inbox inbox;
  Post a, b;
  inbox.Push(&a);
  inbox.Push(&b);
  ASSERT_THAT(Drain(&inbox), ElementsAre(&a, &b));

  inbox.Push(&b);
  inbox.Push(&a);

  EXPECT_THAT(Drain(&inbox), ElementsAre(&b, &a));
}

TEST(InboxTest, WhatWasDrainedIsAnOrdinaryElementOfItsQueue) {
  Inbox inbox;
  ReadyQueue ready;
  Post a, b, c;
  inbox.Push(&a);
  inbox.Push(&b);
  inbox.Push(&c);
  inbox.DrainTo(&ready);

  b.Cancel();

  EXPECT_THAT(TakeAll(&ready), ElementsAre(&a, &c));
}

TEST(InboxTest, CloseHandsOverWhatWasNotDrained) {
  Inbox inbox;
  Post a, b;
  inbox.Push(&a);
  inbox.Push(&b);

  EXPECT_THAT(Close(&inbox), ElementsAre(&a, &b));

  EXPECT_TRUE(inbox.empty());
}

TEST(InboxTest, ClosedInboxRefusesAndLeavesTheRunnableAlone) {
  Inbox inbox;
  Post post;
  Close(&inbox);

  EXPECT_EQ(inbox.Push(&post), PushResult::kClosed);

  EXPECT_FALSE(post.is_linked());
  EXPECT_THAT(Drain(&inbox), IsEmpty());
}

TEST(InboxTest, DrainingAClosedInboxDoesNotOpenIt) {
  Inbox inbox;
  Post post;
  Close(&inbox);

  EXPECT_THAT(Drain(&inbox), IsEmpty());

  EXPECT_EQ(inbox.Push(&post), PushResult::kClosed);
}

TEST(InboxTest, ClosingTwiceIsClosingOnce) {
  Inbox inbox;
  Post post;
  Close(&inbox);

  EXPECT_THAT(Close(&inbox), IsEmpty());

  EXPECT_EQ(inbox.Push(&post), PushResult::kClosed);
}

// Many threads, each with posts of its own.
class InboxStressTest : public ::testing::Test {
 protected:
  static constexpr int kProducers = 8;
  static constexpr int kPosts = 10'000;

  InboxStressTest() {
    for (int producer = 0; producer < kProducers; ++producer) {
      posts_.push_back(std::make_unique<Post[]>(kPosts));
      for (int number = 0; number < kPosts; ++number) {
        posts_[producer][number].producer = producer;
        posts_[producer][number].number = number;
      }
    }
  }

  // Starts all producers at once; each pushes its posts in order.
  void StartProducers() {
    for (int producer = 0; producer < kProducers; ++producer) {
      threads_.emplace_back([this, producer] {
        start_.arrive_and_wait();
        for (int number = 0; number < kPosts; ++number) {
          Post& post = posts_[producer][number];
          post.accepted = inbox_.Push(&post) != PushResult::kClosed;
        }
      });
    }
  }

  void JoinProducers() {
    for (std::thread& thread : threads_) thread.join();
  }

  // Runs what is in `queue` and checks that each producer's order is kept.
  void RunAll(ReadyQueue* queue) {
    while (Runnable* next = queue->PopFront()) {
      next->Run();
      const Post& post = *static_cast<Post*>(next);
      ASSERT_EQ(post.number, next_number_[post.producer]++);
      ++ran_;
    }
  }

  Inbox inbox_;
  std::vector<std::unique_ptr<Post[]>> posts_;
  std::vector<std::thread> threads_;
  Latch start_{kProducers};
  int next_number_[kProducers] = {};
  int ran_ = 0;
};

TEST_F(InboxStressTest, EachPostRunsOnceAndInItsThreadsOrder) {
  StartProducers();
  while (ran_ < kProducers * kPosts) {
    ReadyQueue ready;
    if (inbox_.DrainTo(&ready)) {
      RunAll(&ready);
    } else {
      std::this_thread::yield();
    }
  }
  JoinProducers();

  EXPECT_TRUE(inbox_.empty());
  for (const auto& posts : posts_) {
    for (int number = 0; number < kPosts; ++number) ASSERT_EQ(posts[number].runs, 1);
  }
}

TEST_F(InboxStressTest, EachPostRunsOnceOrIsRefusedWhenClosedMeanwhile) {
  StartProducers();
  while (ran_ < kProducers * kPosts / 4) {
    ReadyQueue ready;
    if (!inbox_.DrainTo(&ready)) std::this_thread::yield();
    RunAll(&ready);
  }
  ReadyQueue rest;
  inbox_.Close(&rest);
  RunAll(&rest);
  JoinProducers();

  EXPECT_TRUE(inbox_.empty());
  for (const auto& posts : posts_) {
    for (int number = 0; number < kPosts; ++number) {
      ASSERT_EQ(posts[number].runs, posts[number].accepted ? 1 : 0);
      ASSERT_FALSE(posts[number].is_linked());
      if (number == 0) continue;
      // Once refused, always refused.
      ASSERT_LE(posts[number].accepted, posts[number - 1].accepted);
    }
  }
}

// One post at a time goes round between a loop that sleeps whenever it has
// nothing to do and a poster that wakes it only then. A lost wake hangs.
TEST(InboxTest, PushAndLookBeforeSleepingNeverMissEachOther) {
  constexpr int kTimes = 20'000;
  Inbox inbox;
  std::atomic<bool> sleeping = false;
  std::atomic<int> ran = 0;
  std::mutex mutex;  // These three stand for the kernel's eventfd.
  std::condition_variable wake;
  bool woken = false;

  std::thread poster([&] {
    Post post;
    for (int i = 1; i <= kTimes; ++i) {
      ASSERT_EQ(inbox.Push(&post), PushResult::kWasEmpty);
      if (sleeping.load(std::memory_order_seq_cst)) {
        std::lock_guard<std::mutex> lock(mutex);
        woken = true;
        wake.notify_one();
      }
      while (ran.load(std::memory_order_acquire) != i) std::this_thread::yield();
    }
  });
  for (int i = 0; i < kTimes;) {
    sleeping.store(true, std::memory_order_seq_cst);
    if (inbox.empty()) {
      std::unique_lock<std::mutex> lock(mutex);
      wake.wait(lock, [&] { return woken; });
      woken = false;
    }
    sleeping.store(false, std::memory_order_seq_cst);
    i += static_cast<int>(Drain(&inbox).size());
    ran.store(i, std::memory_order_release);
  }
  poster.join();

  EXPECT_EQ(ran.load(), kTimes);
}

}  // namespace
}  // namespace weft
