// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_WAIT_H_
#define WEFT_CORE_WAIT_H_

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "weft/core/ensure_future.h"
#include "weft/core/future_ref.h"
#include "weft/core/outcome.h"
#include "weft/core/runnable.h"
#include "weft/core/task_state.h"
#include "weft/core/timer.h"
#include "weft/core/waiter.h"

namespace weft {

// When Wait() returns: when all are done; when the first is; when the first has
// failed, or else all are done.
enum ReturnWhen { kAllCompleted, kFirstCompleted, kFirstException };

// WaitResult
//
// What Wait() found: the futures that are done and those that are not, each kind
// in the order in which they were given, none twice.
template <class F = FutureRef>
struct WaitResult {
  WaitResult() {}

  std::vector<F> done;
  std::vector<F> pending;
};

namespace internal {

// Futures, tasks, and references to either of whatever type.
template <class F>
concept Waitable = FutureLike<F> || std::is_base_of_v<FutureRef, std::remove_cvref_t<F>>;

// The wait for several futures: one callback in the list of each, and a timer.
class MultiWait : private Timer, public Wait {
 public:
  MultiWait(ReturnWhen return_when, absl::Duration timeout)
      : Timer(&OnTimeout), return_when_(return_when), timeout_(timeout) {}
  ~MultiWait() { Cleanup(); }

  // -- In this order, for await_suspend.
  // Errors: ValueError if there is none; RuntimeError for another loop's.
  void Reserve(size_t count);
  void Add(TaskState* task, FutureState* state);
  template <class Promise>
  void Begin(std::coroutine_handle<Promise> handle) {
    Wait::Begin(handle);
    Start();
  }

  // For await_resume: true if it was cancelled.
  bool End() {
    Cleanup();
    return Wait::End();
  }

  std::string Description() const override;

 private:
  struct Entry : Runnable {
    Entry() : Runnable(&OnDone) {}

    MultiWait* owner = nullptr;
    FutureState* state = nullptr;  // Null: it was given before.
  };

  static void OnDone(Runnable* runnable);
  static void OnTimeout(Runnable* runnable);
  void Start();
  void StopTimer();
  void Cleanup();

  ReturnWhen return_when_;
  absl::Duration timeout_;
  size_t count_ = 0;
  size_t missing_ = 0;
  std::unique_ptr<Entry[]> entries_;
};

template <class F>
class [[nodiscard]] MultiWaitAwaiter {
 public:
  MultiWaitAwaiter(std::vector<F> futures, ReturnWhen return_when, absl::Duration timeout)
      : futures_(std::move(futures)), wait_(return_when, timeout) {}
  MultiWaitAwaiter(const MultiWaitAwaiter&) = delete;

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    wait_.Reserve(futures_.size());
    for (const F& future : futures_) wait_.Add(handle.promise().task, future.state());
    wait_.Begin(handle);
  }
  WaitResult<F> await_resume() {
    if (wait_.End()) std::rethrow_exception(wait_.task()->cancelled_error());
    return TakeResult();
  }
  Outcome<WaitResult<F>> await_outcome() {
    Outcome<WaitResult<F>> outcome;
    if (wait_.End()) {
      outcome.SetCancelled(wait_.task()->cancelled_error());
    } else {
      outcome.Emplace(TakeResult());
    }
    return outcome;
  }

 private:
  WaitResult<F> TakeResult() {
    WaitResult<F> result;
    for (F& future : futures_) {
      FutureState* state = future.state();
      if (!state->Mark()) continue;
      (state->done() ? result.done : result.pending).push_back(std::move(future));
    }
    for (const F& future : result.done) future.state()->Unmark();
    for (const F& future : result.pending) future.state()->Unmark();
    return result;
  }

  std::vector<F> futures_;
  MultiWait wait_;
};

// What Wait() returns.
template <class F>
class [[nodiscard]] MultiWaitAwaitable {
 public:
  MultiWaitAwaitable(std::vector<F> futures, ReturnWhen return_when, absl::Duration timeout)
      : futures_(std::move(futures)), return_when_(return_when), timeout_(timeout) {}

  MultiWaitAwaiter<F> operator co_await() && {
    return MultiWaitAwaiter<F>(std::move(futures_), return_when_, timeout_);
  }

 private:
  std::vector<F> futures_;
  ReturnWhen return_when_;
  absl::Duration timeout_;
};

}  // namespace internal

// Waits until all of `futures` are done, or the first is, or fails; at most for
// `timeout`, counted from the await. Throws nothing that they threw and cancels
// none of them, whether the time is over or the waiting task is cancelled.
//
//   std::vector<Task<int>> tasks = ...;
//   WaitResult result = co_await Wait(tasks, kFirstCompleted, absl::Seconds(1));
//   for (Task<int>& task : result.done) ...
//
// `futures` may be Tasks, Futures, or TaskRefs and FutureRefs of whatever types.
//
// Errors: ValueError if there are none.
// Threads: belongs to the loop's thread.
// Python: asyncio.wait().
template <internal::Waitable F>
internal::MultiWaitAwaitable<F> Wait(std::vector<F> futures, ReturnWhen return_when = kAllCompleted,
                                     absl::Duration timeout = absl::InfiniteDuration()) {
  return internal::MultiWaitAwaitable<F>(std::move(futures), return_when, timeout);
}

}  // namespace weft

#endif  // WEFT_CORE_WAIT_H_
