// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SLEEP_H_
#define WEFT_CORE_SLEEP_H_

#include <coroutine>
#include <cstdint>

#include "absl/time/time.h"
#include "weft/core/outcome.h"
#include "weft/core/task_state.h"
#include "weft/core/time_point.h"
#include "weft/core/waiter.h"

namespace weft {
namespace internal {

// Lets everything else that is ready run once.
class [[nodiscard]] YieldAwaiter {
 public:
  YieldAwaiter() {}

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    task_ = handle.promise().task;
    task_->SuspendReady(handle);
  }
  void await_resume() { task_->ThrowIfCancelled(); }
  Outcome<void> await_outcome() { return WaitOutcome(task_, task_->TakeCancellation()); }

 private:
  TaskState* task_ = nullptr;
};

// A sleep that ends at once is a bare yield. Another needs no memory of its own: it is the
// task that is armed. (See TaskState::SuspendUntilDue().)
class [[nodiscard]] SleepAwaiter {
 public:
  explicit SleepAwaiter(absl::Duration delay)
      : delay_(delay <= absl::ZeroDuration() ? 0 : (TimePoint() + delay).nanoseconds()) {}
  // Before it is awaited.
  SleepAwaiter(SleepAwaiter&& other) noexcept = default;

  bool await_ready() const { return false; }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    const int64_t delay = delay_;
    task_ = handle.promise().task;
    if (delay > 0) return task_->SuspendUntilDue(handle, delay);
    task_->SuspendReady(handle);
  }

  void await_resume() { task_->ThrowIfCancelled(); }
  Outcome<void> await_outcome() { return WaitOutcome(task_, task_->TakeCancellation()); }

 private:
  union {
    int64_t delay_;    // Until it is awaited: rounded up to nanoseconds, 0 if it is not positive.
    TaskState* task_;  // From then on.
  };
};

}  // namespace internal

// Lets everything else that is ready run, once, and goes on: `Sleep(0)`.
inline internal::YieldAwaiter Yield() { return internal::YieldAwaiter(); }

// Suspends the task for at least `delay`, counted from the moment of the await;
// zero or less yields once. An infinite delay ends only by a cancellation.
//
// Python: asyncio.sleep().
inline internal::SleepAwaiter Sleep(absl::Duration delay) { return internal::SleepAwaiter(delay); }

}  // namespace weft

#endif  // WEFT_CORE_SLEEP_H_
