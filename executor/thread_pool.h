// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXECUTOR_THREAD_POOL_H_
#define WEFT_EXECUTOR_THREAD_POOL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "weft/executor/executor.h"

namespace weft {

struct ThreadPoolOptions {
  ThreadPoolOptions() {}

  // The most threads there ever are at once; at least one.
  int max_threads = DefaultMaxThreads();

  // Threads are called "weft_0", "weft_1", ... where the system has names for
  // them. Linux keeps 15 characters: a longer prefix is cut, the number not.
  std::string thread_name_prefix = "weft";

  // min(32, cores + 4), CPython's choice: enough to overlap calls that block,
  // few enough on a machine with many cores.
  static int DefaultMaxThreads();
};

// ThreadPool
//
// An executor that runs jobs on threads of its own, first in, first out.
//
//   ThreadPool pool;
//   pool.Submit([] { Compress("access.log"); });
//
// A thread is started when a job is submitted and none is idle, up to
// `max_threads`, and stays until the end. An unused pool has none. The pool is
// meant for calls that block, not for a crowd of clients: ten thousand
// connections need a loop, not ten thousand threads, and wait here for their
// turn (`queue_depth()`).
//
//                 submitted         a thread is free           returned, threw
//   Submit() ---> pending --------------------------> running ----------------> gone
//                   |  Shutdown() with kDiscard                                   ^
//                   +-------------------------------------------------------------+
//
// The destructor is `Shutdown(ExecutorShutdown())`: it runs what is pending,
// and waits. A job that never ends makes it wait for ever.
//
// The edges:
//   * A job that throws: what it threw is reported on stderr, and the thread
//     goes on. Ending the program would lose the other jobs for one careless
//     one; nobody is there to be told.
//   * A pool whose destructor runs in one of its own jobs (the job held the last
//     reference) does not wait, as it would for itself. Its threads finish what
//     is pending, and go away by themselves.
//   * A job may submit jobs. One that waits for them may wait for ever, since
//     it holds a thread that they may need.
//   * The system has no more threads: the job waits for those that there are.
//     If there are none, `Submit()` throws RuntimeError("can't start new
//     thread"), and the job is not taken.
//   * After a fork() the child has none of the threads: it must not use the pool.
//
// Threads: all functions may be called from any, the destructor from one. What
// happened before `Submit()` happens before the job, and the end of a job
// happens before the end of a `Shutdown()` that waits.
// Python: concurrent.futures.ThreadPoolExecutor.
class ThreadPool final : public Executor {
 public:
  struct Stats {
    size_t pending = 0;  // Jobs that have not begun, as `queue_depth()`.
    int running = 0;     // Threads that run a job, or are about to.
    int idle = 0;        // Threads that wait for one.
    int max_threads = 0;
  };

  // Throws ValueError if `options.max_threads` is less than one.
  explicit ThreadPool(ThreadPoolOptions options = ThreadPoolOptions());
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool() override;

  void Submit(absl::AnyInvocable<void()> job) override;
  void Shutdown(ExecutorShutdown how) override;
  size_t queue_depth() const override;

  // All numbers of one moment.
  Stats stats() const;

 private:
  class State;

  // Shared with the threads, which may outlive the pool (see above).
  const std::shared_ptr<State> state_;
};

}  // namespace weft

#endif  // WEFT_EXECUTOR_THREAD_POOL_H_
