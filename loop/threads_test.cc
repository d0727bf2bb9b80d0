// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What other threads may do to a loop: posts, jobs, coroutines from outside.

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/context_var.h"
#include "weft/core/latch.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/executor/thread_pool.h"
#include "weft/loop/run.h"
#include "weft/loop/thread_future.h"
#include "weft/loop/to_thread.h"
#include "weft/testing/thrown_by.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::ElementsAre;

// -- THR: posts.

TEST(ThreadsTest, PostsOfOneThreadRunInOrderOnTheLoopsThread) {  // THR 31, A-67
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  const std::thread::id here = std::this_thread::get_id();
  std::vector<int> ran;
  std::thread poster([&] {
    for (int i = 0; i < 1000; ++i) {
      loop->CallSoonThreadsafe([&, i] {
        EXPECT_EQ(std::this_thread::get_id(), here);
        ran.push_back(i);
        if (i == 999) loop->Stop();
      });
    }
  });

  loop->RunForever();
  poster.join();

  ASSERT_EQ(ran.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
  loop->Close();
}

TEST(ThreadsTest, APostWakesALoopThatSleeps) {  // THR 32
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  Latch running(1);
  loop->CallSoon([&] { running.count_down(); });
  loop->CallLater(absl::Seconds(100), [] { ADD_FAILURE() << "slept through the post"; });
  std::thread poster([&] {
    running.wait();
    loop->CallSoonThreadsafe([&] { loop->Stop(); });
  });

  loop->RunForever();

  poster.join();
  loop->Close();
}

TEST(ThreadsTest, OnTheLoopsOwnThreadItIsCallSoon) {  // THR 33, hops: CallSoonThreadsafe
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<std::string> log;
  loop->CallSoon([&] {
    loop->CallSoon([&] { log.push_back("1"); });
    loop->CallSoonThreadsafe([&] { log.push_back("2"); });
    loop->CallSoon([&] {
      log.push_back("3");
      loop->Stop();
    });
    log.push_back("0");
  });

  loop->RunForever();

  EXPECT_THAT(log, ElementsAre("0", "1", "2", "3"));
  loop->Close();
}

TEST(ThreadsTest, ManyThreadsLoseNothingAndKeepTheirOrder) {  // THR 34
  constexpr int kThreads = 8;
  constexpr int kPosts = 10'000;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<int> next(kThreads, 0);
  int total = 0;
  std::vector<std::thread> posters;
  for (int t = 0; t < kThreads; ++t) {
    posters.emplace_back([&, t, ref = loop->Ref()] {
      for (int i = 0; i < kPosts; ++i) {
        ref.Post([&, t, i] {
          EXPECT_EQ(next[t]++, i);
          if (++total == kThreads * kPosts) loop->Stop();
        });
      }
    });
  }

  loop->RunForever();
  for (std::thread& poster : posters) poster.join();

  EXPECT_EQ(total, kThreads * kPosts);
  loop->Close();
}

TEST(ThreadsTest, APosterIsNeverBlockedByALoopThatIsBusy) {  // THR 35
  constexpr int kPosts = 1'000'000;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  int ran = 0;
  loop->CallSoon([&] {
    std::thread poster([&] {
      for (int i = 0; i < kPosts; ++i) {
        loop->CallSoonThreadsafe([&] {
          if (++ran == kPosts) loop->Stop();
        });
      }
    });
    poster.join();  // While the loop is blocked in this very callback.
  });

  loop->RunForever();

  EXPECT_EQ(ran, kPosts);
  loop->Close();
}

TEST(ThreadsTest, APostMayBeCancelledBeforeItRuns) {  // THR 36
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  auto captured = std::make_shared<int>();
  std::weak_ptr<int> watch = captured;
  Handle handle;
  std::thread poster(
      [&] { handle = loop->CallSoonThreadsafe([captured = std::move(captured)] { FAIL(); }); });
  poster.join();

  handle.Cancel();

  EXPECT_TRUE(watch.expired());
  EXPECT_TRUE(handle.Cancelled());
  loop->Stop();
  loop->RunForever();
  loop->Close();
}

TEST(ThreadsTest, ALatePostIsRefusedAndNothingLeaks) {  // THR 37
  std::atomic<int> alive{0};
  struct Counted {
    explicit Counted(std::atomic<int>* alive) : alive(alive) { ++*alive; }
    Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
    ~Counted() { --*alive; }
    std::atomic<int>* alive;
  };
  for (int round = 0; round < 20; ++round) {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    std::atomic<bool> refused{false};
    Latch begun(1);
    std::thread poster([&, ref = loop->Ref()] {
      bool told = false;
      while (!refused) {
        try {
          ref.Post([counted = Counted(&alive)] {});
        } catch (const RuntimeError& error) {
          EXPECT_STREQ(error.what(), "Event loop is closed");
          refused = true;
        }
        if (!std::exchange(told, true)) begun.count_down();
      }
    });
    begun.wait();
    loop->Stop();
    loop->RunForever();
    loop->Close();
    loop.reset();
    poster.join();
  }
  EXPECT_EQ(alive.load(), 0);
}

// -- Coroutines from outside.

Coro<int> AddLater(int a, int b) {
  co_await Sleep(absl::Milliseconds(1));
  co_return a + b;
}
Coro<int> FailLater() {
  co_await Sleep(absl::Milliseconds(1));
  throw TimeoutError("on the loop");
}

// Runs a loop on a thread of its own while it lives.
class LoopThread {
 public:
  LoopThread() : loop_(*EventLoop::Create()), thread_([this] { loop_->RunForever(); }) {}
  ~LoopThread() {
    loop_->Ref().Post([this] { loop_->Stop(); });
    thread_.join();
    loop_->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    loop_->Close();
  }
  LoopRef ref() { return loop_->Ref(); }

 private:
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};

TEST(ThreadsTest, ACoroutineFromAnotherThreadGivesItsResultThere) {  // THR 38, A-68
  LoopThread loop;

  EXPECT_EQ(RunCoroutineThreadsafe(AddLater(2, 3), loop.ref()).Result(), 5);
  ThreadFuture<int> failing = RunCoroutineThreadsafe(FailLater(), loop.ref());
  EXPECT_THROW(failing.Result(), TimeoutError);
}

Coro<void> SleepForEver() { co_await Sleep(absl::InfiniteDuration()); }

TEST(ThreadsTest, AThreadFutureTimesOutAndCancels) {
  LoopThread loop;
  ThreadFuture<void> sleeping = RunCoroutineThreadsafe(SleepForEver(), loop.ref());

  EXPECT_THROW(sleeping.Result(absl::Milliseconds(1)), TimeoutError);
  EXPECT_TRUE(sleeping.Cancel());
  EXPECT_THROW(sleeping.Result(), CancelledError);
  EXPECT_TRUE(sleeping.Cancelled());
  EXPECT_FALSE(sleeping.Cancel());
}

// The loop's thread, and the coroutine may lie in the inbox, or be a task that has
// not begun, or has, or has ended.
WEFT_TEST_IN_REAL_TIME(ThreadsTest, ACancelIsNotLostAtWhateverPointItComes) {
  const LoopRef ref = GetRunningLoop().Ref();
  for (int rounds = 0; rounds < 6; ++rounds) {
    for (const bool by_thread : {false, true}) {
      std::vector<std::string> log;
      const auto wait = [&]() -> Coro<void> {
        log.push_back("begins");
        Outcome<void> outcome = co_await NoThrow(Sleep(absl::InfiniteDuration()));
        log.push_back(outcome.cancelled() ? "cancelled" : "ends");
        outcome.value();
      };
      ThreadFuture<void> future;
      bool accepted = false;
      std::thread([&] { future = RunCoroutineThreadsafe(wait(), ref); }).join();
      for (int i = 0; i < rounds; ++i) co_await Yield();

      if (by_thread) {
        std::thread([&] { accepted = future.Cancel(); }).join();
      } else {
        accepted = future.Cancel();
      }
      for (int i = 0; i < 10 && !future.Done(); ++i) co_await Yield();

      EXPECT_TRUE(accepted);
      EXPECT_TRUE(future.Cancelled());
      EXPECT_FALSE(future.Cancel());
      EXPECT_THAT(log, ElementsAre("begins", "cancelled")) << rounds << by_thread;
    }
  }
}

TEST(ThreadsTest, AThreadFutureMayBeWaitedForAsLongAsOneLikes) {
  LoopThread loop;
  for (const absl::Duration timeout :
       {absl::Hours(24 * 365 * 100), absl::Hours(24 * 365 * 280), absl::Seconds(1e10),
        absl::Seconds(1e18), absl::InfiniteDuration()}) {
    EXPECT_EQ(RunCoroutineThreadsafe(AddLater(2, 3), loop.ref()).Result(timeout), 5);
  }
  ThreadFuture<void> sleeping = RunCoroutineThreadsafe(SleepForEver(), loop.ref());
  for (const absl::Duration timeout : {absl::ZeroDuration(), absl::Seconds(-1e18),
                                       -absl::InfiniteDuration(), absl::Nanoseconds(1)}) {
    EXPECT_THROW(sleeping.Result(timeout), TimeoutError);
  }
}

TEST(ThreadsTest, ALoopThatClosesCancelsWhatOthersWaitFor) {
  ThreadFuture<void> sleeping;
  {
    LoopThread loop;
    sleeping = RunCoroutineThreadsafe(SleepForEver(), loop.ref());
  }
  EXPECT_THROW(sleeping.Result(), CancelledError);
}

TEST(ThreadsTest, ACoroutineThatNeverGotToItsLoopIsCancelled) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  ThreadFuture<int> posted = RunCoroutineThreadsafe(AddLater(1, 1), loop->Ref());

  loop->Close();

  EXPECT_THROW(posted.Result(), CancelledError);
}

// A new loop may lie where one was that is gone; so an address tells nothing.
TEST(ThreadsTest, TheLoopThatRunsHereIsNotTheOneOfAnOldRef) {  // THR 37
  LoopRef old;
  for (int round = 0; round < 20; ++round) {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    bool ran = false;
    loop->CallSoon([&] {
      EXPECT_TRUE(loop->Ref().IsRunningHere());
      if (!old) return;
      EXPECT_FALSE(old.IsRunningHere());
      EXPECT_THROW(old.Post([&ran] { ran = true; }), RuntimeError);
      EXPECT_THROW(RunCoroutineThreadsafe(AddLater(1, 1), old), RuntimeError);
    });
    loop->RunOnce(absl::ZeroDuration());
    EXPECT_FALSE(loop->Ref().IsRunningHere());
    loop->RunOnce(absl::ZeroDuration());
    EXPECT_FALSE(ran);
    old = loop->Ref();
    loop->Close();
  }
}

TEST(ThreadsTest, AClosedLoopTakesNoCoroutine) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  LoopRef ref = loop->Ref();
  loop->Close();
  EXPECT_THROW(RunCoroutineThreadsafe(AddLater(1, 1), ref), RuntimeError);
}

Coro<std::string> Repeat(std::string text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  co_return result;
}

WEFT_TEST_IN_REAL_TIME(WrapFutureTest, AThreadFutureCanBeAwaited) {
  LoopThread other;
  WEFT_EXPECT_EQ(co_await WrapFuture(RunCoroutineThreadsafe(AddLater(4, 5), other.ref())), 9);

  ThreadFuture<std::string> text = RunCoroutineThreadsafe(Repeat("x", 100), other.ref());
  WEFT_EXPECT_EQ(co_await WrapFuture(text), std::string(100, 'x'));
  WEFT_EXPECT_EQ(text.Result(), std::string(100, 'x'));

  ThreadFuture<void> sleeping = RunCoroutineThreadsafe(SleepForEver(), other.ref());
  Future<void> wrapped = WrapFuture(sleeping);
  wrapped.Cancel();
  WEFT_EXPECT_THROW(co_await wrapped, CancelledError);
  co_await Yield();
  EXPECT_THROW(sleeping.Result(), CancelledError);
}

// what belongs to other threads is awaited through WrapFuture(), or not at all.
static_assert(!Awaitable<ThreadFuture<int>>);

// Its moves and copies throw, after so many; none if negative.
class Fragile {
 public:
  Fragile() { ++alive; }
  Fragile(Fragile&&) : Fragile() { Moved(); }
  Fragile(const Fragile&) : Fragile() { Moved(); }
  ~Fragile() { --alive; }

  static inline std::atomic<int> moves_left = -1;
  static inline std::atomic<int> alive = 0;

 private:
  static void Moved() {
    if (moves_left >= 0 && moves_left-- == 0) throw std::runtime_error("moved");
  }
};
struct FragileMoveOnly : Fragile {
  FragileMoveOnly() {}
  FragileMoveOnly(FragileMoveOnly&&) = default;
};

// Gives a Fragile by way of another thread.
template <class T>
Coro<void> GiveInEveryWay(std::vector<std::string>* how, int moves) {
  const LoopRef ref = GetRunningLoop().Ref();
  const auto note = [&](const Outcome<T>& outcome) {
    how->push_back(outcome.has_value() ? "value" : DescribeException(outcome.exception()));
  };
  const auto make = []() -> Coro<T> { co_return T(); };
  const auto set = [=] { Fragile::moves_left = moves; };

  set();
  auto job = [] { return T(); };
  Outcome<T> by_job = co_await NoThrow(ToThread(job));
  note(by_job);

  set();
  Outcome<T> by_thread;
  auto wait = [&] {
    ThreadFuture<T> future = RunCoroutineThreadsafe(make(), ref);
    try {
      future.Result();
      by_thread.Emplace();
    } catch (...) {
      by_thread.SetCurrentException();
    }
  };
  co_await ToThread(wait);
  note(by_thread);

  set();
  ThreadFuture<T> future;
  std::thread([&] { future = RunCoroutineThreadsafe(make(), ref); }).join();
  Outcome<T> wrapped = co_await NoThrow(WrapFuture(future));
  note(wrapped);
  Fragile::moves_left = -1;
}

// Nobody waits for ever for a value that could not be moved to where it was to go.
template <class T>
void ExpectEveryMoveMayThrow() {
  int values = 0;
  for (int moves = 0; moves < 20; ++moves) {
    std::vector<std::string> how;
    Run(GiveInEveryWay<T>(&how, moves));
    ASSERT_EQ(how.size(), 3);
    for (const std::string& ended : how) {
      EXPECT_THAT(ended, ::testing::AnyOf("value", "std::runtime_error: moved")) << moves;
      values += ended == "value" ? 1 : 0;
    }
    EXPECT_EQ(Fragile::alive, 0);
  }
  EXPECT_GT(values, 15);
}

TEST(ThreadsTest, AResultWhoseMoveThrowsIsAnError) {
  ExpectEveryMoveMayThrow<Fragile>();
  ExpectEveryMoveMayThrow<FragileMoveOnly>();
}

TEST(ThreadsTest, AJobWhoseMoveThrowsIsRefusedAndKeepsNothingWaiting) {
  int runs = 0;
  for (int moves = 0; moves < 20; ++moves) {
    const auto main = [&]() -> Coro<bool> {
      auto job = [fragile = Fragile()] {};
      Fragile::moves_left = moves;
      bool ran = false;
      try {
        Future<void> future = ToThread(job);
        co_await future;
        ran = true;
      } catch (const std::runtime_error&) {
      }
      Fragile::moves_left = -1;
      co_await Sleep(absl::ZeroDuration());
      co_return ran;
    };
    VirtualClock clock;  // Would stand still while a job is outstanding.
    RunOptions options;
    options.environment.clock = &clock;
    runs += weft::Run(main(), options) ? 1 : 0;
    EXPECT_EQ(Fragile::alive, 0);
  }
  EXPECT_GT(runs, 5);
  EXPECT_LT(runs, 20);
}

ContextVar<int> request("request", 0);

Coro<void> NoteRequest(std::vector<int>* seen) {
  seen->push_back(request.Get());
  request.Set(8);
  co_return;
}

Coro<int> RequestAfterAYield() {
  co_await Yield();
  co_return request.Get();
}

// Posts, and coroutines, see what the thread saw that sent them.
TEST(ThreadsTest, PostsSeeCopiesOfTheContextVariablesOfTheirThread) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<int> seen;
  std::thread poster([&] {
    request.Set(5);
    loop->CallSoonThreadsafe([&] {
      seen.push_back(request.Get());
      request.Set(6);
    });
    request.Set(7);
    (void)RunCoroutineThreadsafe(NoteRequest(&seen), loop->Ref());
    request.Set(9);
  });
  poster.join();
  loop->CallLater(absl::ZeroDuration(), [&] { seen.push_back(request.Get()); });
  loop->CallLater(absl::Milliseconds(1), [&] { loop->Stop(); });
  loop->RunForever();

  EXPECT_THAT(seen, ElementsAre(5, 0, 7));
  loop->Close();
}

// A thread keeps slots, blocks and contexts, and gives them back when it ends.
TEST(ThreadsTest, ManyThreadsMayPostAllocateAndEnd) {
  constexpr int kThreads = 100;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  const auto shared = std::make_shared<int>(0);  // Whoever keeps one has not ended well.
  static ContextVar<std::shared_ptr<int>> held("held", nullptr);
  std::vector<int> noted;
  int ran = 0;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      held.Set(shared);
      request.Set(i);
      loop->CallSoonThreadsafe([&, copy = shared] { ran += held.Get() == copy; });
      (void)RunCoroutineThreadsafe(NoteRequest(&noted), loop->Ref());
      // A loop of the thread's own.
      EXPECT_EQ(weft::Run(RequestAfterAYield()), i);
    }).join();
  }
  loop->CallLater(absl::Milliseconds(1), [&] { loop->Stop(); });
  loop->RunForever();
  loop->Close();

  EXPECT_EQ(ran, kThreads);
  EXPECT_EQ(noted.size(), size_t{kThreads});
  EXPECT_EQ(shared.use_count(), 1);
}

// -- EXEC: jobs.

WEFT_TEST(ToThreadTest, TheLoopGoesOnWhileAJobRuns) {  // EXEC 297, A-70
  Latch may_end(1);
  Future<int> job = ToThread([&] {
    may_end.wait();
    return 1 + 2;
  });
  int rounds = 0;
  for (; rounds < 10; ++rounds) co_await Yield();
  WEFT_EXPECT_FALSE(job.Done());

  may_end.count_down();
  WEFT_EXPECT_EQ(co_await job, 3);
}

WEFT_TEST(ToThreadTest, GivesTheValueOrTheErrorOfAnotherThread) {  // EXEC 297, A-70
  const std::thread::id here = std::this_thread::get_id();
  WEFT_EXPECT_EQ(co_await ToThread([] { return 1 + 2; }), 3);
  WEFT_EXPECT_NE(co_await ToThread([] { return std::this_thread::get_id(); }), here);
  WEFT_EXPECT_THROW(co_await ToThread([]() -> int { throw TimeoutError("job"); }), TimeoutError);
  co_await ToThread([] {});
}

WEFT_TEST(ToThreadTest, MoveOnlyClosuresAndResults) {
  auto job = [number = std::make_unique<int>(7)]() mutable { return std::move(number); };
  std::unique_ptr<int> result = co_await ToThread(Take(job));
  WEFT_EXPECT_EQ(*result, 7);
}

WEFT_TEST(ToThreadTest, SeesCopiesOfTheContextVariables) {  // A-70, CTX 316
  request.Set(7);
  const int seen = co_await ToThread([] {
    const int value = request.Get();
    request.Set(8);
    return value;
  });
  WEFT_EXPECT_EQ(seen, 7);
  WEFT_EXPECT_EQ(request.Get(), 7);
  WEFT_EXPECT_EQ(co_await ToThread([] { return request.Get(); }), 7);
}

WEFT_TEST(ToThreadTest, JobsOverlap) {  // EXEC 298
  Latch all_here(4);
  std::vector<Future<void>> jobs;
  for (int i = 0; i < 4; ++i) {
    jobs.push_back(ToThread([&all_here] {
      all_here.arrive_and_wait();  // Would wait for ever if they ran one after the other.
    }));
  }
  for (Future<void>& job : jobs) co_await job;
}

WEFT_TEST(ToThreadTest, ACancelledAwaitEndsAtOnceAndTheJobGoesOn) {  // EXEC 299
  Latch begun(1), may_end(1);
  std::atomic<bool> ended{false};
  Future<void> job = ToThread([&] {
    begun.count_down();
    may_end.wait();
    ended = true;
  });
  begun.wait();

  WEFT_EXPECT_TRUE(job.Cancel());
  WEFT_EXPECT_THROW(co_await job, CancelledError);
  WEFT_EXPECT_FALSE(ended.load());

  may_end.count_down();
  co_await GetRunningLoop().ShutdownDefaultExecutor();
  WEFT_EXPECT_TRUE(ended.load());
}

WEFT_TEST(ToThreadTest, AJobThatWasCancelledBeforeItBeganDoesNotRun) {
  ThreadPoolOptions options;
  options.max_threads = 1;
  ThreadPool pool(options);
  Latch may_end(1);
  EventLoop& loop = GetRunningLoop();
  Future<void> first = loop.RunInExecutor(&pool, [&] { may_end.wait(); });
  std::atomic<bool> ran{false};
  Future<void> second = loop.RunInExecutor(&pool, [&] { ran = true; });
  second.Cancel();
  co_await Yield();

  may_end.count_down();
  co_await first;
  co_await loop.RunInExecutor(&pool, [] {});

  WEFT_EXPECT_FALSE(ran.load());
}

WEFT_TEST(ToThreadTest, AnExecutorThatWasOnlyPassedStaysOpen) {  // EXEC 301, A-71, A-72, A-73
  ThreadPool pool;
  EventLoop& loop = GetRunningLoop();
  WEFT_EXPECT_EQ(co_await loop.RunInExecutor(&pool, [] { return 1 << 10; }), 1024);
  co_await loop.ShutdownDefaultExecutor();
  WEFT_EXPECT_EQ(co_await loop.RunInExecutor(&pool, [] { return 243; }), 243);
  WEFT_EXPECT_EQ(ThrownBy([] { (void)ToThread([] {}); }),
                 "weft::RuntimeError: Executor shutdown has been called");
}

WEFT_TEST(ToThreadTest, AnExecutorThatWasSetIsUsed) {  // EXEC 301
  ThreadPoolOptions options;
  options.max_threads = 1;
  ThreadPool pool(options);
  EventLoop& loop = GetRunningLoop();
  loop.SetDefaultExecutor(&pool);
  Latch may_end(1);
  Future<void> first = ToThread([&] { may_end.wait(); });
  Future<void> second = loop.RunInExecutor(nullptr, [] {});
  WEFT_EXPECT_EQ(&loop.DefaultExecutor(), &pool);
  WEFT_EXPECT_GE(pool.queue_depth(), 1u);  // It has the one thread.

  may_end.count_down();
  co_await first;
  co_await second;

  loop.SetDefaultExecutor(nullptr);
  WEFT_EXPECT_NE(&loop.DefaultExecutor(), &pool);
  WEFT_EXPECT_EQ(co_await ToThread([] { return 7; }), 7);
}

WEFT_TEST(ToThreadTest, TenThousandSmallJobsUseNoMoreThreadsThanThereMayBe) {  // EXEC 302, A-75
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<Future<int>> jobs;
  for (int i = 0; i < 10'000; ++i) {
    jobs.push_back(ToThread([&, i] {
      std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
      return i;
    }));
  }
  int sum = 0;
  for (Future<int>& job : jobs) sum += co_await job;
  WEFT_EXPECT_EQ(sum, 9'999 * 10'000 / 2);
  WEFT_EXPECT_LE(threads.size(), static_cast<size_t>(ThreadPoolOptions::DefaultMaxThreads()));
}

WEFT_TEST(ToThreadTest, APostOfTheJobRunsBeforeItsAwaiter) {  // EXEC 303
  std::vector<std::string> log;
  LoopRef ref = GetRunningLoop().Ref();
  co_await ToThread([&] { ref.Post([&] { log.push_back("post"); }); });
  log.push_back("awaiter");
  WEFT_EXPECT_THAT(log, ElementsAre("post", "awaiter"));
}

WEFT_TEST(ToThreadTest, TheCallableDiesOnItsThreadBeforeTheAwaiterGoesOn) {
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id died_on;
  auto guard = std::shared_ptr<void>(nullptr, [&](void*) { died_on = std::this_thread::get_id(); });
  auto job = [guard = std::move(guard)] {};
  co_await ToThread(Take(job));
  WEFT_EXPECT_NE(died_on, here);
  WEFT_EXPECT_NE(died_on, std::thread::id());
}

// -- What is not weft's.

// Resumes whoever awaits it on a thread of its own.
class ResumedElsewhere {
 public:
  explicit ResumedElsewhere(std::vector<std::thread>* threads) : threads_(threads) {}
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> handle) {
    threads_->emplace_back([handle] { handle.resume(); });
  }
  std::thread::id await_resume() const { return std::this_thread::get_id(); }

 private:
  std::vector<std::thread>* threads_;
};

WEFT_TEST_IN_REAL_TIME(ForeignAwaiterTest, MayResumeOnAnotherThread) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 200; ++i) {
    const std::thread::id resumed_on = co_await ResumedElsewhere(&threads);
    WEFT_EXPECT_EQ(resumed_on, std::this_thread::get_id());
  }
  for (std::thread& thread : threads) thread.join();
}

// A loop that is made on one thread and run on another: nothing is counted by both.
TEST(OtherThreadsLoopTest, HasCopiesOfTheContextOfWhoMadeIt) {  // CTX 316
  request.Set(5);
  std::atomic<int> sum = 0;
  const auto fill = [&sum](EventLoop& loop) {
    for (int i = 0; i < 1000; ++i) {
      loop.CallSoon([&sum] { sum += request.Get(); });
      loop.CreateTask([&sum]() -> Coro<void> {
        sum += request.Get();
        co_return;
      });
    }
  };
  std::unique_ptr<EventLoop> elsewhere = *EventLoop::Create();
  std::unique_ptr<EventLoop> here = *EventLoop::Create();
  fill(*elsewhere);
  std::thread runner([&] { elsewhere->RunOnce(absl::ZeroDuration()); });
  fill(*here);
  here->RunOnce(absl::ZeroDuration());
  runner.join();

  EXPECT_EQ(sum, 4 * 1000 * 5);
  elsewhere->Close();
  here->Close();
  request.Set(0);
}

}  // namespace
}  // namespace weft
