// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXECUTOR_EXECUTOR_H_
#define WEFT_EXECUTOR_EXECUTOR_H_

#include <cstddef>

#include "absl/functional/any_invocable.h"

namespace weft {

// ExecutorShutdown
//
// How an executor ends. Without changes: what was submitted is run, and the
// caller waits for it.
struct ExecutorShutdown {
  enum class Pending {
    kRun,      // Jobs that have not begun are run before the end.
    kDiscard,  // They are destroyed instead, on the calling thread.
  };
  enum class Wait {
    kUntilEnded,  // `Shutdown()` returns when the last job has ended.
    kNo,          // It returns at once; `ended` tells when it is over.
  };

  ExecutorShutdown() {}

  Pending pending = Pending::kRun;
  Wait wait = Wait::kUntilEnded;

  // Called once when the last job has ended and been destroyed: on a thread of
  // the executor, or before `Shutdown()` returns if nothing is left to wait
  // for. It must not throw. May be null.
  absl::AnyInvocable<void()> ended;
};

// Executor
//
// Something that runs jobs on other threads, for what would block a loop: files,
// DNS, a long computation. It knows no loop; a job that has something to tell
// one posts it.
//
// Threads: all functions may be called from any.
// Python: concurrent.futures.Executor, but a job answers for its own result:
// `RunInExecutor()` wraps what it is given, so that the future is the loop's.
//
// To write one: a job is run once or destroyed unrun, never forgotten, for its
// destructor is what tells a future that nothing will come. It is destroyed
// outside of all locks, for that may run anybody's code.
class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `job` at some later time on some other thread, which also destroys it.
  // What a job throws is not passed on to anybody: it is the job's to catch.
  //
  // Throws RuntimeError("cannot schedule new futures after shutdown") once
  // `Shutdown()` was called, and ValueError if `job` is null.
  virtual void Submit(absl::AnyInvocable<void()> job) = 0;

  // Takes no more jobs and ends when those that run, and those pending if so
  // asked, have ended. A job that runs is never interrupted. May be called
  // again, to discard what is still pending or to wait.
  //
  // Throws RuntimeError("cannot join current thread"), and nothing has changed,
  // if a job asks to wait for itself.
  virtual void Shutdown(ExecutorShutdown how) = 0;

  // How many jobs have not begun: a metric. If it grows, the threads are too
  // few, or stuck.
  virtual size_t queue_depth() const = 0;
};

}  // namespace weft

#endif  // WEFT_EXECUTOR_EXECUTOR_H_
