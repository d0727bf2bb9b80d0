// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/loop_group.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/latch.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/loop/processors.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"
#include "weft/testing/captured_log.h"
#include "weft/testing/thrown_by.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LoopGroupOptions Loops(int loops) {
  LoopGroupOptions options;
  options.loops = loops;
  return options;
}

Coro<void> SleepForEver() { co_await Sleep(absl::InfiniteDuration()); }
Coro<void> SleepOn(int) { return SleepForEver(); }

// What threads write, in no order that means anything.
class Record {
 public:
  void Add(int value) {
    std::lock_guard<std::mutex> lock(mutex_);
    values_.insert(value);
  }
  std::multiset<int> values() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return values_;
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<int> values_;
};

// -- What it is made of.

TEST(LoopGroupTest, EachLoopHasAThreadOfItsOwn) {
  LoopGroup group(Loops(3));
  const auto identify = [](int) -> Coro<std::thread::id> { co_return std::this_thread::get_id(); };

  std::set<std::thread::id> threads = {std::this_thread::get_id()};
  for (const auto& future : group.RunOnEach(identify)) threads.insert(future.Result());

  EXPECT_EQ(group.size(), 3);
  EXPECT_EQ(threads.size(), 4u);
}

TEST(LoopGroupTest, ByDefaultThereIsALoopForEachProcessor) {
  LoopGroup group;

  EXPECT_EQ(group.size(), static_cast<int>(AvailableProcessors().size()));
  EXPECT_GE(group.size(), 1);
}

TEST(LoopGroupTest, NoLoopsAreAValueErrorThatNamesThem) {
  EXPECT_EQ(ThrownBy([] { LoopGroup group(Loops(0)); }),
            "weft::ValueError: loops must be greater than 0, not 0");
  EXPECT_EQ(ThrownBy([] { LoopGroup group(Loops(-1)); }),
            "weft::ValueError: loops must be greater than 0, not -1");
}

TEST(LoopGroupTest, APollerThatDoesNotExistIsAValueErrorThatNamesIt) {
  LoopGroupOptions options = Loops(2);
  options.poller = "magic";

  EXPECT_THAT(ThrownBy([&] { LoopGroup group(options); }), HasSubstr("magic"));
}

TEST(LoopGroupTest, WhatCannotServeSeveralLoopsIsRefused) {
  VirtualClock clock;
  LoopGroupOptions options = Loops(2);
  options.environment.clock = &clock;

  EXPECT_THAT(ThrownBy([&] { LoopGroup group(options); }),
              HasSubstr("ValueError: environment.clock"));
}

TEST(LoopGroupTest, NextGoesRound) {
  LoopGroup group(Loops(3));
  std::vector<LoopRef> given;
  for (int i = 0; i < 6; ++i) given.push_back(group.Next());

  EXPECT_TRUE(std::equal(given.begin(), given.begin() + 3, given.begin() + 3));
  EXPECT_FALSE(given[0] == given[1]);
  EXPECT_FALSE(given[1] == given[2]);
}

TEST(LoopGroupTest, ThreadsMayBePinned) {
  const std::vector<int> processors = AvailableProcessors();
  LoopGroupOptions options = Loops(static_cast<int>(processors.size()) + 1);
  options.pin_threads = true;
  LoopGroup group(options);
  const auto look = [](int) -> Coro<std::vector<int>> { co_return AvailableProcessors(); };

  std::vector<std::vector<int>> seen;
  for (const auto& future : group.RunOnEach(look)) seen.push_back(future.Result());

  if (seen[0] == processors && processors.size() > 1) GTEST_SKIP() << "threads cannot be pinned";
  for (size_t i = 0; i < seen.size(); ++i) {
    EXPECT_THAT(seen[i], ElementsAre(processors[i % processors.size()]));
  }
  EXPECT_EQ(AvailableProcessors(), processors);
}

// -- Posts.

TEST(LoopGroupTest, PostsBetweenLoopsKeepEachSendersOrder) {
  static constexpr int kPosts = 2000;
  static constexpr int kLoops = 3;
  LoopGroup group(Loops(kLoops));
  struct Receiver {
    std::vector<int> next = std::vector<int>(kLoops, 0);
    int count = 0;
    bool is_ordered = true;
  };
  std::vector<Receiver> receivers(kLoops);  // Each is touched by its own loop only.
  Latch all(kLoops);
  const auto send = [&](int from) -> Coro<void> {
    for (int i = 0; i < kPosts; ++i) {
      for (int to = 0; to < kLoops; ++to) {
        group.loop(to).Post([&receiver = receivers[to], &all, from, i] {
          if (receiver.next[from]++ != i) receiver.is_ordered = false;
          if (++receiver.count == kLoops * kPosts) all.count_down();
        });
      }
      if (i % 100 == 0) co_await Yield();
    }
  };

  group.RunOnEach(send);
  all.wait();
  group.Join();

  for (const Receiver& receiver : receivers) EXPECT_TRUE(receiver.is_ordered);
}

TEST(LoopGroupTest, PostGoesToOneLoopAfterTheOther) {
  LoopGroup group(Loops(2));
  std::vector<int> counts(2, 0);  // Each is touched by its own loop only.
  Latch all(10);
  for (int i = 0; i < 10; ++i) {
    group.Post([&] {
      ++counts[group.loop(1).IsRunningHere() ? 1 : 0];
      all.count_down();
    });
  }

  all.wait();
  group.Join();

  EXPECT_THAT(counts, ElementsAre(5, 5));
}

TEST(LoopGroupTest, ACoroutineRunsOnOneOfThem) {
  LoopGroup group(Loops(2));
  const auto is_here = [&group]() -> Coro<bool> { co_return group.loop(1).IsRunningHere(); };

  EXPECT_TRUE(RunCoroutineThreadsafe(is_here(), group.loop(1)).Result());
  EXPECT_FALSE(RunCoroutineThreadsafe(is_here(), group.loop(0)).Result());
}

// -- Mains.

TEST(LoopGroupTest, JoinReturnsWhenTheMainsAreOver) {
  LoopGroup group(Loops(3));
  Record record;
  group.RunOnEach([&record](int index) -> Coro<void> {
    co_await Sleep(absl::Milliseconds(index));
    record.Add(index);
  });

  group.Join();

  EXPECT_THAT(record.values(), ElementsAre(0, 1, 2));
}

TEST(LoopGroupTest, TheFunctionIsKeptUntilTheLastMainIsOver) {
  auto kept = std::make_shared<int>(7);
  const std::weak_ptr<int> watch = kept;
  LoopGroup group(Loops(2));
  auto futures = group.RunOnEach([kept = std::move(kept)](int index) -> Coro<int> {
    co_await Sleep(absl::Milliseconds(1));
    co_return *kept + index;
  });

  EXPECT_EQ(futures[0].Result() + futures[1].Result(), 15);
  group.Join();
  EXPECT_TRUE(watch.expired());
}

TEST(LoopGroupTest, AMainThatFailsStopsTheGroupAndJoinThrows) {
  LoopGroup group(Loops(3));
  Record cancelled;
  auto futures = group.RunOnEach([&cancelled](int index) -> Coro<void> {
    if (index == 1) throw std::runtime_error("loop 1 has failed");
    Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
    if (slept.cancelled()) cancelled.Add(index);
    slept.value();
  });

  EXPECT_EQ(ThrownBy([&] { group.Join(); }), "std::runtime_error: loop 1 has failed");
  EXPECT_THAT(cancelled.values(), ElementsAre(0, 2));
  EXPECT_THROW(futures[1].Result(), std::runtime_error);
  EXPECT_THROW(futures[0].Result(), CancelledError);
}

TEST(LoopGroupTest, TheFirstMainMayFailBeforeTheLastIsStarted) {
  for (int round = 0; round < 50; ++round) {
    LoopGroup group(Loops(4));
    std::vector<ThreadFuture<void>> futures;
    EXPECT_NO_THROW(futures = group.RunOnEach([](int index) -> Coro<void> {
      if (index == 0) throw std::runtime_error("failed at once");
      co_await Sleep(absl::InfiniteDuration());
    }));
    EXPECT_EQ(ThrownBy([&] { group.Join(); }), "std::runtime_error: failed at once");
    EXPECT_EQ(futures.size(), 4u);
  }
}

TEST(LoopGroupTest, AMainThatWasCancelledByItselfIsNoFailure) {
  LoopGroup group(Loops(2));
  auto futures = group.RunOnEach(SleepOn);

  for (auto& future : futures) EXPECT_TRUE(future.Cancel());

  group.Join();
  EXPECT_TRUE(futures[0].Cancelled());
}

// Run() does the same with its main's.
TEST(LoopGroupTest, TasksThatAreLeftAreCancelledAtTheEndAndMayCleanUp) {
  LoopGroup group(Loops(2));
  Record cleaned;
  group.RunOnEach([&cleaned](int index) -> Coro<void> {
    const auto linger = [](Record* record, int number) -> Coro<void> {
      Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
      co_await Sleep(absl::Milliseconds(1));
      record->Add(number);
      slept.value();
    };
    CreateTask(linger, &cleaned, index);
    co_await Yield();
  });

  group.Join();

  EXPECT_THAT(cleaned.values(), ElementsAre(0, 1));
}

TEST(LoopGroupTest, GeneratorsAndExecutorsEndWithTheirLoop) {
  LoopGroup group(Loops(2));
  std::atomic<int> jobs{0};
  group.RunOnEach([&jobs](int) -> Coro<void> {
    static_cast<void>(GetRunningLoop().RunInExecutor(nullptr, [&jobs] { ++jobs; }));
    co_return;
  });

  group.Join();

  EXPECT_EQ(jobs, 2);
}

// -- Stopping.

TEST(LoopGroupTest, StopCancelsTheMainsAndWaitsForTheirCleanup) {
  LoopGroup group(Loops(2));
  Record cleaned;
  Latch begun(2);
  group.RunOnEach([&](int index) -> Coro<void> {
    begun.count_down();
    Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
    co_await Sleep(absl::Milliseconds(1));
    cleaned.Add(index);
    slept.value();
  });
  begun.wait();

  group.Stop();
  group.Stop();
  group.Join();
  group.Join();

  EXPECT_THAT(cleaned.values(), ElementsAre(0, 1));
}

TEST(LoopGroupTest, OtherTasksGoOnWhileAMainCleansUp) {
  LoopGroup group(Loops(1));
  Latch begun(1);
  bool is_answered = false;
  group.RunOnEach([&](int) -> Coro<void> {
    Future<int> answer = GetRunningLoop().CreateFuture<int>();
    const auto work = [](Future<int> future) -> Coro<void> {
      co_await Sleep(absl::Milliseconds(5));
      future.SetResult(1);
    };
    Task<void> worker = CreateTask(work, answer);
    begun.count_down();
    Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
    is_answered = co_await std::move(answer) == 1;
    slept.value();
  });
  begun.wait();

  group.Stop();
  group.Join();

  EXPECT_TRUE(is_answered);
}

TEST(LoopGroupTest, AbortDoesNotWaitForTheMainsCleanup) {
  LoopGroup group(Loops(2));
  Latch cleaning(2);
  group.RunOnEach([&](int) -> Coro<void> {
    Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
    cleaning.count_down();
    co_await Sleep(absl::InfiniteDuration());
    slept.value();
  });
  group.Stop();
  cleaning.wait();

  group.Abort();
  group.Abort();

  group.Join();
}

TEST(LoopGroupTest, ItMayBeDestroyedWithoutStopping) {
  Record ended;
  {
    LoopGroup group(Loops(2));
    Latch begun(2);
    group.RunOnEach([&](int index) -> Coro<void> {
      begun.count_down();
      Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
      ended.Add(index);
      slept.value();
    });
    begun.wait();
  }
  EXPECT_THAT(ended.values(), ElementsAre(0, 1));

  LoopGroup never_used(Loops(2));
}

TEST(LoopGroupTest, AMainThatHasNotBegunIsCancelledWhereItFirstWaits) {
  LoopGroup group(Loops(1));
  Latch may_go_on(1);
  bool has_begun = false;
  group.loop(0).Post([&] { may_go_on.wait(); });
  auto futures = group.RunOnEach([&has_begun](int) -> Coro<void> {
    has_begun = true;
    co_await Sleep(absl::InfiniteDuration());
  });

  group.Stop();
  may_go_on.count_down();
  group.Join();

  EXPECT_TRUE(has_begun);
  EXPECT_TRUE(futures[0].Cancelled());
}

TEST(LoopGroupTest, OneOfItsOwnLoopsMayStopIt) {
  LoopGroup group(Loops(3));
  group.RunOnEach([&group](int index) -> Coro<void> {
    if (index == 2) group.Stop();
    co_await Sleep(absl::InfiniteDuration());
  });

  group.Join();
}

TEST(LoopGroupTest, AGroupThatHasStoppedTakesNoMoreMains) {
  LoopGroup group(Loops(2));
  group.Stop();

  EXPECT_EQ(ThrownBy([&] { group.RunOnEach(SleepOn); }),
            "weft::RuntimeError: LoopGroup is stopped");
  group.Join();
  EXPECT_EQ(ThrownBy([&] { group.Post([] {}); }), "weft::RuntimeError: Event loop is closed");
}

TEST(LoopGroupTest, ItDoesNotWaitForItself) {
  LoopGroup group(Loops(1));
  auto futures = group.RunOnEach([&group](int) -> Coro<std::string> {
    std::string text = ThrownBy([&group] { group.Join(); });
    co_return text;
  });

  EXPECT_EQ(futures[0].Result(), "weft::RuntimeError: LoopGroup::Join() would wait for itself");
}

TEST(LoopGroupTest, AnErrorThatNobodyRetrievedIsLogged) {
  CapturedLog log;
  {
    LoopGroup group(Loops(1));
    auto futures = group.RunOnEach([](int) -> Coro<void> {
      co_await Yield();
      throw std::runtime_error("unseen");
    });
    EXPECT_THROW(futures[0].Result(), std::runtime_error);
  }
  EXPECT_THAT(log.Take(), ElementsAre(HasSubstr("unseen")));
}

TEST(LoopGroupTest, ManyThreadsMayUseItWhileItStops) {
  for (int round = 0; round < 20; ++round) {
    LoopGroup group(Loops(2));
    std::vector<std::thread> users;
    Latch begun(4);
    for (int i = 0; i < 4; ++i) {
      users.emplace_back([&group, &begun, i] {
        begun.count_down();
        try {
          for (int j = 0;; ++j) {
            group.Post([] {});
            group.RunOnEach(SleepOn);
            if (i == 0 && j == 25) group.Stop();
          }
        } catch (const RuntimeError&) {  // Stopped, or closed by now.
        }
      });
    }
    begun.wait();
    for (std::thread& user : users) user.join();
    group.Join();
  }
}

// -- From a loop.

WEFT_TEST_IN_REAL_TIME(LoopGroupTest, ACoroutineMayWaitForTheEnd) {
  LoopGroup group(Loops(2));
  Record record;
  group.RunOnEach([&record](int index) -> Coro<void> {
    co_await Sleep(absl::Milliseconds(1));
    record.Add(index);
  });

  co_await group.WaitDone();

  EXPECT_THAT(record.values(), ElementsAre(0, 1));
}

WEFT_TEST_IN_REAL_TIME(LoopGroupTest, WaitDoneThrowsWhatAMainThrew) {
  LoopGroup group(Loops(2));
  group.RunOnEach([](int index) -> Coro<void> {
    co_await Yield();
    if (index == 0) throw std::runtime_error("failed");
    co_await Sleep(absl::InfiniteDuration());
  });

  WEFT_EXPECT_THROW(co_await group.WaitDone(), std::runtime_error);
}

// Mains that clean up until they are cancelled for the second time.
struct Stubborn {
  Coro<void> operator()(int) const {
    Outcome<void> slept = co_await NoThrow(Sleep(absl::InfiniteDuration()));
    cleaning->count_down();
    co_await Sleep(absl::InfiniteDuration());
    slept.value();
  }
  Latch* cleaning;
};

WEFT_TEST_IN_REAL_TIME(LoopGroupTest, CancellingTheWaitStopsTheGroupAndTwiceAbortsIt) {
  LoopGroup group(Loops(2));
  Latch cleaning(2);
  group.RunOnEach(Stubborn{&cleaning});
  Task<void> waiting = CreateTask(group.WaitDone());
  co_await Yield();

  waiting.Cancel();
  co_await ToThread([&cleaning] { cleaning.wait(); });
  EXPECT_FALSE(waiting.Done());
  waiting.Cancel();
  Outcome<void> waited = co_await NoThrow(Task<void>(waiting));

  EXPECT_TRUE(waited.cancelled());
}

WEFT_TEST_IN_REAL_TIME(LoopGroupTest, ASignalStopsItAndAnotherAbortsIt) {
  LoopGroup group(Loops(2));
  Latch cleaning(2);
  group.RunOnEach(Stubborn{&cleaning});
  Task<int> running = CreateTask(group.RunUntilSignal(SignalSet(SIGTERM, SIGINT)));
  co_await Yield();

  ::raise(SIGTERM);
  co_await ToThread([&cleaning] { cleaning.wait(); });
  EXPECT_FALSE(running.Done());
  ::raise(SIGINT);

  WEFT_EXPECT_EQ(co_await std::move(running), SIGTERM);
}

WEFT_TEST_IN_REAL_TIME(LoopGroupTest, WithoutASignalItEndsWithItsMains) {
  LoopGroup group(Loops(2));
  group.RunOnEach([](int) -> Coro<void> { co_await Yield(); });

  WEFT_EXPECT_EQ(co_await group.RunUntilSignal(SignalSet(SIGTERM)), 0);
}

// -- Processors.

TEST(ProcessorsTest, AThreadMayBePinnedToEachThatThereIs) {
  for (const int processor : AvailableProcessors()) {
    std::thread([processor] {
      if (!PinThisThread(processor)) return;
      EXPECT_THAT(AvailableProcessors(), ElementsAre(processor));
    }).join();
  }
  EXPECT_FALSE(PinThisThread(-1));
}

}  // namespace
}  // namespace weft
