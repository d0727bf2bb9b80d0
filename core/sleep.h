// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SLEEP_H_
#define WEFT_CORE_SLEEP_H_

#include <coroutine>
#include <cstddef>
#include <string>

#include "absl/base/optimization.h"
#include "absl/time/time.h"
#include "weft/core/outcome.h"
#include "weft/core/scheduler.h"
#include "weft/core/task_state.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"
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

// The wait for a moment. When it is due its runnable runs, and queues the task: two
// hops, as in asyncio, where the timer's handle completes a future.
class SleepTimer final : public Timer, public Wait {
 public:
  SleepTimer() : Timer(&OnDue) {}
  ~SleepTimer();

  void Start(TaskState* task, std::coroutine_handle<> handle, absl::Duration delay);

 private:
  static void OnDue(Runnable* runnable) { static_cast<SleepTimer*>(runnable)->Wake(); }
  Scheduler* scheduler() const { return task()->scheduler()->owner; }
  // "<Sleep for another 2.5s>"
  std::string Description() const override;
};

// A sleep that ends at once is a bare yield, and so common that it makes no timer:
// there is nothing to cancel, the task is in the queue.
class [[nodiscard]] SleepAwaiter {
 public:
  explicit SleepAwaiter(absl::Duration delay) : delay_(delay) {}
  // Before it is awaited.
  SleepAwaiter(SleepAwaiter&& other) noexcept : SleepAwaiter(other.delay_) {}
  ~SleepAwaiter() {
    if (ABSL_PREDICT_FALSE(timer_ != nullptr)) timer_->~SleepTimer();
  }

  bool await_ready() const { return false; }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    task_ = handle.promise().task;
    if (delay_ > absl::ZeroDuration()) return StartTimer(handle);
    task_->SuspendReady(handle);
  }

  void await_resume() {
    if (ABSL_PREDICT_FALSE(timer_ != nullptr)) return EndOrThrow();
    task_->ThrowIfCancelled();
  }
  Outcome<void> await_outcome() { return WaitOutcome(task_, End()); }

 private:
  void StartTimer(std::coroutine_handle<> handle);
  // Whether the await is to throw.
  bool End();
  void EndOrThrow();

  absl::Duration delay_;
  TaskState* task_ = nullptr;
  SleepTimer* timer_ = nullptr;  // Null until it is needed; in `storage_`.
  alignas(SleepTimer) std::byte storage_[sizeof(SleepTimer)];
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
