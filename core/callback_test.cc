// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/callback.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class CallbackTest : public ::testing::Test {
 protected:
  auto Log(std::string text) {
    return [this, text] { log_.push_back(text); };
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

//
TEST_F(CallbackTest, RunInTheOrderInWhichTheyWereQueued) {
  loop_.CallSoon([&] {
    log_.push_back("a");
    loop_.CallSoon(Log("b"));
  });
  loop_.CallSoon(Log("c"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("a", "c", "b"));
}

TEST_F(CallbackTest, MayBeMoveOnlyAndLarge) {
  auto number = std::make_unique<int>(5);
  std::array<int, 100> many{};
  many[99] = 7;
  loop_.CallSoon([this, number = std::move(number)] { log_.push_back(std::to_string(*number)); });
  loop_.CallSoon([this, many] { log_.push_back(std::to_string(many[99])); });
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("5", "7"));
}

//
TEST_F(CallbackTest, CancelTakesItOutAlsoOfTheRoundThatRuns) {
  Handle second;
  loop_.CallSoon([&] { second.Cancel(); });
  second = loop_.CallSoon(Log("second"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre());
  EXPECT_TRUE(second.Cancelled());
  second.Cancel();
}

TEST_F(CallbackTest, CancelDestroysTheClosureAtOnce) {
  auto held = std::make_shared<int>(0);
  Handle soon = loop_.CallSoon([held] {});
  TimerHandle later = loop_.CallLater(absl::Seconds(1), [held] {});
  EXPECT_EQ(held.use_count(), 3);

  soon.Cancel();
  later.Cancel();

  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(later.When(), TimePoint() + absl::Seconds(1));
}

TEST_F(CallbackTest, AHandleIsSafeWhenItsCallbackIsOver) {
  Handle handle = loop_.CallSoon(Log("ran"));
  Handle copy = handle;
  loop_.RunUntilIdle();
  EXPECT_FALSE(handle.IsPending());
  EXPECT_FALSE(handle.Cancelled());

  loop_.CallSoon(Log("next"));  // May use the same slot.
  handle.Cancel();
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("ran", "next"));
  EXPECT_FALSE(copy.Cancelled());
}

TEST_F(CallbackTest, CopiesKnowOfACancellation) {
  Handle handle = loop_.CallSoon(Log("never"));
  Handle copy = handle;
  copy.Cancel();

  EXPECT_TRUE(handle.Cancelled());
}

//
TEST_F(CallbackTest, AnErrorGoesToTheHandlerAndTheRoundGoesOn) {
  loop_.CallSoon([] { throw std::runtime_error("failed"); });
  loop_.CallSoon(Log("next"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("next"));
  ASSERT_EQ(loop_.errors().size(), 1u);
  EXPECT_THAT(loop_.errors()[0].message, StartsWith("Exception in callback"));
  EXPECT_TRUE(loop_.errors()[0].handle.has_value());
  EXPECT_EQ(DescribeException(loop_.errors()[0].exception), "std::runtime_error: failed");
}

TEST_F(CallbackTest, EqualDeadlinesRunInTheOrderOfScheduling) {
  for (const char* name : {"0", "1", "2", "3"}) loop_.CallLater(absl::Seconds(1), Log(name));
  loop_.CallAt(TimePoint() + absl::Seconds(1), Log("4"));
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("0", "1", "2", "3", "4"));
}

TEST_F(CallbackTest, AClosureMayCallIntoTheLoopWhenItIsDestroyed) {
  struct Caller {
    Caller(VirtualScheduler* scheduler, std::vector<std::string>* target)
        : loop(scheduler), log(target) {}
    Caller(Caller&& other) : loop(std::exchange(other.loop, nullptr)), log(other.log) {}
    ~Caller() {
      if (loop != nullptr) loop->CallSoon([log = log] { log->push_back("from a destructor"); });
    }
    VirtualScheduler* loop;
    std::vector<std::string>* log;
  };
  Handle handle = loop_.CallSoon([caller = Caller(&loop_, &log_)] {});
  handle.Cancel();
  loop_.CallSoon([caller = Caller(&loop_, &log_)] {});
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("from a destructor", "from a destructor"));
}

// Copying it throws, whatever its size.
template <size_t kSize>
struct ThrowsOnCopy {
  ThrowsOnCopy() {}
  ThrowsOnCopy(const ThrowsOnCopy&) { throw std::runtime_error("copied"); }
  void operator()() const {}
  template <class T>
  void operator()(const T&) const {}
  char bytes[kSize];
};

TEST_F(CallbackTest, ACallableWhoseCopyThrowsLeavesNothingBehind) {
  const auto next_slot = [] {
    internal::CallbackSlot* slot = internal::CallbackSlot::Make([] {}, SourceLocation());
    slot->Drop();
    return slot;
  };
  const ThrowsOnCopy<1> small;
  const ThrowsOnCopy<100> large;
  Future<int> pending = MakeFuture<int>(loop_);
  Future<int> done = MakeFuture<int>(loop_);
  done.SetResult(1);
  internal::CallbackSlot* const slot = next_slot();

  const auto try_all = [&](const auto& callable) {
    EXPECT_THROW(loop_.CallSoon(callable), std::runtime_error);
    EXPECT_THROW(loop_.CallLater(absl::Seconds(1), callable), std::runtime_error);
    EXPECT_THROW(loop_.CallAt(loop_.Now(), callable), std::runtime_error);
    EXPECT_THROW(pending.AddDoneCallback(callable), std::runtime_error);
    EXPECT_THROW(done.AddDoneCallback(callable), std::runtime_error);
  };
  try_all(small);
  try_all(large);

  EXPECT_EQ(next_slot(), slot);
  EXPECT_FALSE(loop_.RunRound());
}

TEST_F(CallbackTest, AClosedLoopRefuses) {
  auto held = std::make_shared<int>(0);
  Handle left = loop_.CallSoon([held] {});
  loop_.CallLater(absl::Seconds(1), [held] {});
  loop_.Close();

  EXPECT_EQ(held.use_count(), 1);
  EXPECT_THROW(loop_.CallSoon([] {}), RuntimeError);
  EXPECT_THROW(loop_.CallLater(absl::Seconds(1), [] {}), RuntimeError);
  left.Cancel();
}

// Each takes more than it uses, as threads do that only post.
TEST(CallbackSlotTest, WhatThreadsKeepServesOthersWhenTheyEnd) {
  std::set<uintptr_t> slabs;  // 64 slots each.
  for (int i = 0; i < 100; ++i) {
    internal::CallbackSlot* slot = nullptr;
    std::thread([&] { slot = internal::CallbackSlot::Allocate(); }).join();
    slabs.insert(reinterpret_cast<uintptr_t>(slot) / (64 * sizeof(*slot)));
    std::thread([&] { internal::CallbackSlot::Make([] {}, SourceLocation())->Drop(); }).join();
    slot->Bind([] {}, SourceLocation());
    slot->Drop();
  }

  EXPECT_LE(slabs.size(), 4u);
}

// More than one batch, which the depot keeps apart.
TEST(CallbackSlotTest, AllThatAThreadKeepsServesOthersWhenItEnds) {
  constexpr size_t kCount = 1'000;
  const auto use = [] {
    std::set<internal::CallbackSlot*> used;
    while (used.size() < kCount) {
      used.insert(internal::CallbackSlot::Make([] {}, SourceLocation()));
    }
    for (internal::CallbackSlot* slot : used) slot->Drop();
    return used;
  };
  std::set<internal::CallbackSlot*> first, second;
  std::thread([&] { first = use(); }).join();
  std::thread([&] { second = use(); }).join();

  EXPECT_EQ(first.size(), kCount);
  EXPECT_EQ(second.size(), kCount);
  const auto is_new = [&first](internal::CallbackSlot* slot) { return !first.contains(slot); };
  EXPECT_LE(std::count_if(second.begin(), second.end(), is_new), 64);
}

// As when one thread calls a loop that another then runs: posts, calls from outside of a
// run, callbacks that are cancelled or dropped over there.
TEST(CallbackSlotTest, WhatOneThreadMakesAndAnotherEndsIsUsedAgain) {
  const auto make = [] { return internal::CallbackSlot::Make([] {}, SourceLocation()); };
  const auto run = [](internal::CallbackSlot* slot) { slot->Run(); };
  const auto drop = [](internal::CallbackSlot* slot) { slot->Drop(); };
  const struct {
    const char* name;
    void (*mark)(internal::CallbackSlot*);
    void (*end)(internal::CallbackSlot*);
  } ways[] = {
      {"posted", [](internal::CallbackSlot* slot) { slot->set_posted(); }, run},
      {"from outside", [](internal::CallbackSlot* slot) { slot->set_foreign(); }, run},
      {"dropped", [](internal::CallbackSlot*) {}, drop},
  };
  for (const auto& way : ways) {
    SCOPED_TRACE(way.name);
    std::set<internal::CallbackSlot*> seen;
    // Both live all the time: what a thread keeps goes back when it ends.
    std::vector<internal::CallbackSlot*> handed;
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::thread other([&] {
      std::unique_lock<std::mutex> lock(mutex);
      while (true) {
        changed.wait(lock, [&] { return over || !handed.empty(); });
        if (over) return;
        for (internal::CallbackSlot* slot : handed) way.end(slot);
        handed.clear();
        changed.notify_all();
      }
    });
    for (int round = 0; round < 200; ++round) {
      std::unique_lock<std::mutex> lock(mutex);
      for (int i = 0; i < 50; ++i) {
        handed.push_back(make());
        way.mark(handed.back());
        seen.insert(handed.back());
      }
      changed.notify_all();
      changed.wait(lock, [&] { return handed.empty(); });
    }
    std::unique_lock<std::mutex> lock(mutex);
    over = true;
    changed.notify_all();
    lock.unlock();
    other.join();

    EXPECT_LE(seen.size(), 6u * 64) << "of 10,000 uses";
  }
}

}  // namespace
}  // namespace weft
