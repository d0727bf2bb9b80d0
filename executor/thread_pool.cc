// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/executor/thread_pool.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "weft/core/errors.h"
#include "weft/executor/thread_name.h"

namespace weft {

// One mutex guards everything; no job and no destructor of a job runs under it.
// A queue without locks was considered and refused: a job is for what blocks,
// which takes so much longer than a mutex that nobody would see the difference.
// It is std::mutex and not absl::Mutex, because ThreadSanitizer misunderstands
// how that one wakes a thread, and reports a race in it to whoever runs a pool
// (google/sanitizers#953).
//
// When a thread is started: `pending_.size() > idle_` after a push, that is, if
// there are more jobs waiting than threads. A thread counts as idle until it
// has woken *and* holds the mutex, and its job as pending just as long, so a
// second job submitted in between sees one of each too many, and the comparison
// stays right.
//
// When one is woken: at most one wake is under way, and who takes a job passes
// it on if there is more to do. A wake for each job of a burst would send all
// threads to the mutex at once. `waking_` holds whenever jobs are pending and
// threads idle: a thread only falls idle when nothing is pending, and both who
// adds a job and who takes one sees to it.
class ThreadPool::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(ThreadPoolOptions options) : options_(std::move(options)) {
    if (options_.max_threads < 1) throw ValueError("max_threads must be greater than 0");
  }

  void Submit(absl::AnyInvocable<void()> job);
  void Shutdown(ExecutorShutdown how);

  // Lets the threads go their own way, after `Shutdown()`.
  void DetachThreads();

  // True on the threads of this pool.
  bool IsOwnThread() const { return current_ == this; }

  Stats stats() const;

 private:
  using Job = absl::AnyInvocable<void()>;

  // False if the system has no thread to give. Called under the mutex.
  bool TryStartThread();

  // Whether to notify a thread now; says so once per wake. Called under the
  // mutex.
  bool MustWake();

  // What a thread does, from its start to its end.
  void Work(int number);
  static void RunAndDestroy(Job job);

  // Calls `ended` when no thread is left, which may be now.
  void WhenEnded(Job ended);
  void JoinThreads();

  // The pool that this thread works for, if any.
  static thread_local const State* current_;

  const ThreadPoolOptions options_;
  mutable std::mutex mutex_;            // Guards all that follows.
  std::condition_variable job_or_end_;  // For the idle threads.
  std::condition_variable no_thread_;   // `live_` has become 0.
  std::deque<Job> pending_;
  std::vector<std::thread> threads_;  // To be joined.
  std::vector<Job> ended_;            // To be called by the last thread.
  int live_ = 0;                      // Threads that are in `Work()`.
  int idle_ = 0;                      // Those of them that wait for a job.
  bool waking_ = false;               // One was notified and has not looked yet.
  bool shut_down_ = false;
};

thread_local const ThreadPool::State* ThreadPool::State::current_ = nullptr;

void ThreadPool::State::Submit(Job job) {
  if (job == nullptr) throw ValueError("job must not be null");
  std::unique_lock<std::mutex> lock(mutex_);
  if (shut_down_) throw RuntimeError("cannot schedule new futures after shutdown");

  pending_.push_back(std::move(job));
  if (pending_.size() > static_cast<size_t>(idle_) && live_ < options_.max_threads) {
    if (TryStartThread()) return;
    if (live_ == 0) {
      job = std::move(pending_.back());
      pending_.pop_back();
      throw RuntimeError("can't start new thread");
    }
  }
  const bool wake = MustWake();
  lock.unlock();  // First, else what wakes has to wait for it.
  if (wake) job_or_end_.notify_one();
}

bool ThreadPool::State::TryStartThread() {
  try {
    threads_.emplace_back([self = shared_from_this(), number = live_] { self->Work(number); });
  } catch (const std::system_error&) {
    return false;
  }
  ++live_;
  return true;
}

bool ThreadPool::State::MustWake() {
  if (pending_.empty() || idle_ == 0 || waking_) return false;
  waking_ = true;
  return true;
}

void ThreadPool::State::Work(int number) {
  current_ = this;
  internal::SetThreadName(options_.thread_name_prefix, number);

  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (!pending_.empty()) {
      Job job = std::move(pending_.front());
      pending_.pop_front();
      const bool wake = MustWake();
      lock.unlock();
      if (wake) job_or_end_.notify_one();
      RunAndDestroy(std::move(job));
      lock.lock();
    } else if (!shut_down_) {
      ++idle_;
      job_or_end_.wait(lock);
      --idle_;
      waking_ = false;
    } else {
      break;
    }
  }
  std::vector<Job> ended;
  if (--live_ == 0) {
    ended.swap(ended_);
    no_thread_.notify_all();
  }
  lock.unlock();
  for (Job& call : ended) call();
}

void ThreadPool::State::RunAndDestroy(Job job) {
  try {
    job();
  } catch (...) {
    std::fprintf(stderr, "weft: a job of a thread pool threw: %s\n",
                 DescribeException(std::current_exception()).c_str());
  }
}

void ThreadPool::State::Shutdown(ExecutorShutdown how) {
  const bool wait = how.wait == ExecutorShutdown::Wait::kUntilEnded;
  if (wait && IsOwnThread()) throw RuntimeError("cannot join current thread");

  std::deque<Job> discarded;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    shut_down_ = true;
    if (how.pending == ExecutorShutdown::Pending::kDiscard) discarded.swap(pending_);
    job_or_end_.notify_all();
  }
  discarded.clear();  // Before anybody is told that this has ended.
  if (how.ended != nullptr) WhenEnded(std::move(how.ended));
  if (wait) JoinThreads();
}

void ThreadPool::State::WhenEnded(Job ended) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (live_ > 0) {
      ended_.push_back(std::move(ended));
      return;
    }
  }
  ended();
}

void ThreadPool::State::JoinThreads() {
  std::vector<std::thread> threads;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    // Not by join() alone: of two who wait, only one has the threads.
    no_thread_.wait(lock, [this] { return live_ == 0; });
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void ThreadPool::State::DetachThreads() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::thread& thread : threads_) thread.detach();
  threads_.clear();
}

ThreadPool::Stats ThreadPool::State::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  Stats stats;
  stats.pending = pending_.size();
  stats.running = live_ - idle_;
  stats.idle = idle_;
  stats.max_threads = options_.max_threads;
  return stats;
}

int ThreadPoolOptions::DefaultMaxThreads() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());  // 0: not known.
  return std::min(32, std::max(cores, 1) + 4);
}

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : state_(std::make_shared<State>(std::move(options))) {}

ThreadPool::~ThreadPool() {
  ExecutorShutdown how;
  const bool in_own_job = state_->IsOwnThread();
  if (in_own_job) how.wait = ExecutorShutdown::Wait::kNo;
  state_->Shutdown(std::move(how));
  if (in_own_job) state_->DetachThreads();
}

// A job may own the pool, and end before the call that submitted it returns.
// So a call holds the state itself.
void ThreadPool::Submit(absl::AnyInvocable<void()> job) {
  const std::shared_ptr<State> state = state_;
  state->Submit(std::move(job));
}

void ThreadPool::Shutdown(ExecutorShutdown how) {
  const std::shared_ptr<State> state = state_;
  state->Shutdown(std::move(how));
}

size_t ThreadPool::queue_depth() const { return stats().pending; }

ThreadPool::Stats ThreadPool::stats() const { return state_->stats(); }

}  // namespace weft
