// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/executor/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/latch.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pending = ExecutorShutdown::Pending;
using Wait = ExecutorShutdown::Wait;

ThreadPoolOptions AtMost(int threads) {
  ThreadPoolOptions options;
  options.max_threads = threads;
  return options;
}

ExecutorShutdown How(Pending pending, Wait wait) {
  ExecutorShutdown how;
  how.pending = pending;
  how.wait = wait;
  return how;
}

// What the call throws, or "nothing".
template <class Error>
std::string ErrorOf(absl::AnyInvocable<void()> call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

// Returns when nothing is left to do and the pool has so many threads.
void WaitUntilIdle(const ThreadPool& pool, int threads) {
  while (true) {
    const ThreadPool::Stats stats = pool.stats();
    if (stats.pending == 0 && stats.running == 0 && stats.idle == threads) return;
    std::this_thread::yield();
  }
}

// A job that blocks its thread from `Begin()` until `End()`.
class Blocker {
 public:
  explicit Blocker(Executor* executor) {
    executor->Submit([job = job_] {
      job->began.count_down();
      job->may_end.wait();
    });
  }

  void Begin() { job_->began.wait(); }
  void End() { job_->may_end.count_down(); }

 private:
  struct Job {
    Latch began{1};
    Latch may_end{1};
  };

  const std::shared_ptr<Job> job_ = std::make_shared<Job>();
};

// Tells, when it is destroyed, that it was, and where.
class DeathNote {
 public:
  explicit DeathNote(std::vector<std::thread::id>* where) : where_(where) {}
  DeathNote(DeathNote&& other) noexcept : where_(std::exchange(other.where_, nullptr)) {}
  ~DeathNote() {
    if (where_ != nullptr) where_->push_back(std::this_thread::get_id());
  }

 private:
  std::vector<std::thread::id>* where_;
};

TEST(ThreadPoolTest, RunsAJobOnAnotherThread) {
  std::thread::id where;
  Latch ran{1};
  ThreadPool pool;

  pool.Submit([&] {
    where = std::this_thread::get_id();
    ran.count_down();
  });
  ran.wait();

  EXPECT_NE(where, std::thread::id());
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(ThreadPoolTest, OneThreadRunsJobsInTheOrderOfSubmission) {
  std::vector<int> order;
  {
    ThreadPool pool(AtMost(1));
    for (int i = 0; i < 5; ++i) pool.Submit([&order, i] { order.push_back(i); });
  }

  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
}

TEST(ThreadPoolTest, TakesAJobThatCanOnlyBeMoved) {
  int seen = 0;
  {
    ThreadPool pool;
    pool.Submit([&seen, value = std::make_unique<int>(7)] { seen = *value; });
  }

  EXPECT_EQ(seen, 7);
}

TEST(ThreadPoolTest, AnUnusedPoolHasNoThread) {
  ThreadPool pool(AtMost(4));

  const ThreadPool::Stats stats = pool.stats();

  EXPECT_EQ(stats.running + stats.idle, 0);
  EXPECT_EQ(stats.max_threads, 4);
}

TEST(ThreadPoolTest, AnIdleThreadIsUsedAgain) {
  ThreadPool pool(AtMost(4));
  std::set<std::thread::id> threads;

  for (int i = 0; i < 100; ++i) {
    pool.Submit([&] { threads.insert(std::this_thread::get_id()); });
    WaitUntilIdle(pool, 1);
  }

  EXPECT_EQ(threads.size(), 1);
}

TEST(ThreadPoolTest, StartsAThreadForEachJobThatFindsNoneIdle) {
  ThreadPool pool(AtMost(3));
  Blocker first(&pool), second(&pool);
  first.Begin();
  second.Begin();

  EXPECT_EQ(pool.stats().running, 2);

  first.End();
  second.End();
  WaitUntilIdle(pool, 2);
}

// A job that was given to an idle thread still leaves it looking idle until it
// has woken; the next one may not count on it too.
TEST(ThreadPoolTest, JobsSubmittedTogetherOverlap) {
  ThreadPool pool(AtMost(4));
  pool.Submit([] {});
  WaitUntilIdle(pool, 1);

  for (int round = 0; round < 100; ++round) {
    Latch all_begun{4};
    Latch all_ended{4};
    for (int i = 0; i < 4; ++i) {
      pool.Submit([&] {
        all_begun.arrive_and_wait();
        all_ended.count_down();
      });
    }
    all_ended.wait();
  }
}

//
TEST(ThreadPoolTest, TenThousandJobsUseNoMoreThanTheLimit) {
  constexpr int kJobs = 10'000;
  std::atomic<int> ran = 0;
  std::atomic<int> inside = 0;
  std::atomic<int> most_inside = 0;
  {
    ThreadPool pool(AtMost(3));
    for (int i = 0; i < kJobs; ++i) {
      pool.Submit([&] {
        const int now_inside = ++inside;
        int most = most_inside;
        while (most < now_inside && !most_inside.compare_exchange_weak(most, now_inside)) {
        }
        ++ran;
        --inside;
      });
    }
    EXPECT_LE(pool.stats().running + pool.stats().idle, 3);
  }

  EXPECT_EQ(ran, kJobs);
  EXPECT_LE(most_inside, 3);
}

//
TEST(ThreadPoolTest, QueueDepthCountsTheJobsThatHaveNotBegun) {
  ThreadPool pool(AtMost(1));
  Blocker blocker(&pool);
  blocker.Begin();

  EXPECT_EQ(pool.queue_depth(), 0);
  pool.Submit([] {});
  pool.Submit([] {});
  EXPECT_EQ(pool.queue_depth(), 2);
  EXPECT_EQ(pool.stats().running, 1);
  blocker.End();
  WaitUntilIdle(pool, 1);
  EXPECT_EQ(pool.queue_depth(), 0);
}

TEST(ThreadPoolTest, AJobIsDestroyedOnItsThreadBeforeTheNextOneBegins) {
  std::vector<std::thread::id> destroyed;
  std::thread::id worker;
  size_t destroyed_before_the_next = 0;
  {
    ThreadPool pool(AtMost(1));
    pool.Submit([note = DeathNote(&destroyed), &worker] { worker = std::this_thread::get_id(); });
    pool.Submit([&] { destroyed_before_the_next = destroyed.size(); });
  }

  EXPECT_THAT(destroyed, ElementsAre(worker));
  EXPECT_EQ(destroyed_before_the_next, 1);
}

TEST(ThreadPoolTest, WhatAJobThrowsIsReportedAndTheThreadGoesOn) {
  std::thread::id thrower, next;

  ::testing::internal::CaptureStderr();
  {
    ThreadPool pool(AtMost(1));
    pool.Submit([&] {
      thrower = std::this_thread::get_id();
      throw std::runtime_error("no such disk");
    });
    pool.Submit([] { throw 7; });
    pool.Submit([&] { next = std::this_thread::get_id(); });
  }
  const std::string report = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(report,
              HasSubstr("a job of a thread pool threw: std::runtime_error: no such disk\n"));
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 2);
  EXPECT_EQ(next, thrower);
}

TEST(ThreadPoolTest, AJobMaySubmitJobs) {
  Latch done{1};
  ThreadPool pool(AtMost(1));

  pool.Submit([&] { pool.Submit([&] { done.count_down(); }); });

  done.wait();
}

TEST(ThreadPoolTest, RefusesBadArguments) {
  ThreadPool pool;

  EXPECT_EQ(ErrorOf<ValueError>([&] { pool.Submit(nullptr); }), "job must not be null");
  EXPECT_EQ(ErrorOf<ValueError>([] { ThreadPool none(AtMost(0)); }),
            "max_threads must be greater than 0");
}

TEST(ThreadPoolTest, DefaultLimitIsThatOfCPython) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));

  EXPECT_EQ(ThreadPool().stats().max_threads, std::min(32, cores + 4));
}

TEST(ThreadPoolTest, DestructorRunsWhatIsPending) {
  int ran = 0;
  {
    ThreadPool pool(AtMost(1));
    for (int i = 0; i < 100; ++i) pool.Submit([&ran] { ++ran; });
  }

  EXPECT_EQ(ran, 100);
}

TEST(ThreadPoolTest, SubmitAfterShutdownThrows) {
  ThreadPool pool;
  pool.Shutdown({});

  EXPECT_EQ(ErrorOf<RuntimeError>([&] { pool.Submit([] {}); }),
            "cannot schedule new futures after shutdown");
}

TEST(ThreadPoolTest, ShutdownRunsWhatIsPendingAndWaits) {
  ThreadPool pool(AtMost(1));
  int ran = 0;
  for (int i = 0; i < 100; ++i) pool.Submit([&ran] { ++ran; });

  pool.Shutdown({});

  EXPECT_EQ(ran, 100);
  EXPECT_EQ(pool.stats().running + pool.stats().idle, 0);
}

TEST(ThreadPoolTest, ShutdownWithDiscardDestroysWhatIsPendingOnTheCallingThread) {
  ThreadPool pool(AtMost(1));
  Blocker blocker(&pool);
  blocker.Begin();
  bool ran = false;
  std::vector<std::thread::id> destroyed;
  pool.Submit([note = DeathNote(&destroyed), &ran] { ran = true; });

  pool.Shutdown(How(Pending::kDiscard, Wait::kNo));

  EXPECT_THAT(destroyed, ElementsAre(std::this_thread::get_id()));
  EXPECT_EQ(pool.queue_depth(), 0);
  blocker.End();
  pool.Shutdown({});
  EXPECT_FALSE(ran);
}

TEST(ThreadPoolTest, ShutdownWithoutWaitingLeavesTheJobsRunning) {
  ThreadPool pool(AtMost(1));
  Blocker blocker(&pool);
  blocker.Begin();
  bool ran = false;
  pool.Submit([&ran] { ran = true; });

  pool.Shutdown(How(Pending::kRun, Wait::kNo));

  EXPECT_EQ(pool.stats().running, 1);
  EXPECT_EQ(pool.queue_depth(), 1);
  blocker.End();
  pool.Shutdown({});
  EXPECT_TRUE(ran);
}

TEST(ThreadPoolTest, EndedIsCalledWhenTheLastJobHasEnded) {
  std::vector<std::string> log;
  Latch over{1};
  ThreadPool pool(AtMost(2));
  Blocker first(&pool), second(&pool);
  first.Begin();
  second.Begin();
  pool.Submit([&log] { log.push_back("pending"); });

  ExecutorShutdown how = How(Pending::kRun, Wait::kNo);
  how.ended = [&] {
    log.push_back("ended");
    over.count_down();
  };
  pool.Shutdown(std::move(how));
  EXPECT_FALSE(over.try_wait());
  first.End();
  second.End();
  over.wait();

  EXPECT_THAT(log, ElementsAre("pending", "ended"));
}

TEST(ThreadPoolTest, EndedIsCalledAtOnceIfThereIsNothingToWaitFor) {
  ThreadPool pool;
  bool ended = false;

  ExecutorShutdown how = How(Pending::kRun, Wait::kNo);
  how.ended = [&ended] { ended = true; };
  pool.Shutdown(std::move(how));

  EXPECT_TRUE(ended);
}

TEST(ThreadPoolTest, EveryShutdownIsTold) {
  Latch told{2};
  ThreadPool pool(AtMost(1));
  Blocker blocker(&pool);

  for (int i = 0; i < 2; ++i) {
    ExecutorShutdown how = How(Pending::kRun, Wait::kNo);
    how.ended = [&told] { told.count_down(); };
    pool.Shutdown(std::move(how));
  }
  blocker.End();

  told.wait();
}

TEST(ThreadPoolTest, TwoThreadsMayWaitForTheEnd) {
  Latch may_end{1};
  std::atomic<bool> ended = false;
  ThreadPool pool(AtMost(2));
  pool.Submit([&] {
    may_end.wait();
    ended = true;
  });

  std::vector<std::thread> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.emplace_back([&] {
      pool.Shutdown({});
      EXPECT_TRUE(ended);
    });
  }
  may_end.count_down();

  for (std::thread& thread : waiting) thread.join();
}

TEST(ThreadPoolTest, AJobThatWaitsForItselfIsRefusedAndNothingHasChanged) {
  std::string error;
  Latch done{1};
  ThreadPool pool;

  pool.Submit([&] {
    error = ErrorOf<RuntimeError>([&] { pool.Shutdown({}); });
    pool.Submit([&] { done.count_down(); });
  });
  done.wait();

  EXPECT_EQ(error, "cannot join current thread");
}

TEST(ThreadPoolTest, APoolMayWaitForAnotherPoolInAJob) {
  bool ran = false;
  Latch done{1};
  ThreadPool outer;

  outer.Submit([&] {
    {
      ThreadPool inner;
      inner.Submit([&ran] { ran = true; });
    }
    done.count_down();
  });
  done.wait();

  EXPECT_TRUE(ran);
}

TEST(ThreadPoolTest, APoolDestroyedInItsOwnJobFinishesWhatIsPending) {
  Latch handed_over{1};
  Latch ran_after{1};
  auto pool = std::make_unique<ThreadPool>(AtMost(1));
  ThreadPool& same = *pool;

  same.Submit([&] {
    handed_over.wait();
    pool.reset();
  });
  same.Submit([&] { ran_after.count_down(); });
  handed_over.count_down();

  ran_after.wait();
}

TEST(ThreadPoolTest, AJobMayOwnThePool) {
  for (int round = 0; round < 100; ++round) {
    Latch over{1};
    auto pool = std::make_unique<ThreadPool>();
    ThreadPool& same = *pool;

    same.Submit([&over, pool = std::move(pool)]() mutable {
      pool.reset();
      over.count_down();
    });

    over.wait();
  }
}

TEST(ThreadPoolTest, APoolMayBeDestroyedWhenToldThatItHasEnded) {
  Latch over{1};
  auto pool = std::make_unique<ThreadPool>();
  ThreadPool& same = *pool;
  Blocker blocker(&same);

  ExecutorShutdown how = How(Pending::kRun, Wait::kNo);
  how.ended = [&] {
    pool.reset();
    over.count_down();
  };
  same.Shutdown(std::move(how));
  blocker.End();

  over.wait();
}

TEST(ThreadPoolTest, EachJobRunsOnceOrIsRefusedWhenShutDownMeanwhile) {
  constexpr int kSubmitters = 4;
  constexpr int kJobs = 2'000;
  std::vector<std::atomic<int>> runs(kSubmitters * kJobs);
  std::vector<int> accepted(kSubmitters * kJobs);
  std::atomic<int> submitted = 0;
  ThreadPool pool(AtMost(3));

  std::vector<std::thread> submitters;
  for (int submitter = 0; submitter < kSubmitters; ++submitter) {
    submitters.emplace_back([&, first = submitter * kJobs] {
      for (int i = first; i < first + kJobs; ++i) {
        ++submitted;
        accepted[i] =
            ErrorOf<RuntimeError>([&] { pool.Submit([&runs, i] { ++runs[i]; }); }) == "nothing";
      }
    });
  }
  while (submitted < kSubmitters * kJobs / 4) std::this_thread::yield();
  pool.Shutdown({});
  for (std::thread& thread : submitters) thread.join();

  for (int i = 0; i < kSubmitters * kJobs; ++i) ASSERT_EQ(runs[i], accepted[i]);
}

}  // namespace
}  // namespace weft
