// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SLEEP_H_
#define WEFT_CORE_SLEEP_H_

#include <coroutine>
#include <exception>
#include <string>

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
    task_->Suspend(handle, nullptr);
    task_->Wake();
  }
  void await_resume() { task_->ThrowIfCancelled(); }
  Outcome<void> await_outcome() {
    Outcome<void> outcome;
    if (task_->TakeCancellation()) {
      outcome.SetCancelled(task_->cancelled_error());
    } else {
      outcome.Emplace();
    }
    return outcome;
  }

 private:
  TaskState* task_ = nullptr;
};

// "<Sleep for another 2.5s>"
std::string DescribeSleep(TimePoint deadline, TimePoint now);

// The timer lies in the frame. When it is due its runnable runs, and queues the
// task: two hops, as in asyncio, where the timer's handle completes a future.
class [[nodiscard]] SleepAwaiter : private Timer, private Wait {
 public:
  explicit SleepAwaiter(absl::Duration delay) : Timer(&OnDue), delay_(delay) {}
  // Before it is awaited.
  SleepAwaiter(SleepAwaiter&& other) noexcept : SleepAwaiter(other.delay_) {}
  ~SleepAwaiter() {
    // Only in a frame that is destroyed in the midst of the wait.
    if (ABSL_PREDICT_FALSE(is_armed() || is_linked())) DisarmTimer();
  }

  bool await_ready() const { return false; }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    Begin(handle);
    TaskState* task = this->task();
    if (delay_ <= absl::ZeroDuration()) {
      // A bare yield: there is nothing to cancel, the task is in the queue.
      task->Suspend(handle, nullptr);
      Wake();
      return;
    }
    Scheduler* scheduler = task->scheduler()->owner;
    scheduler->Arm(this, scheduler->Now() + delay_);
  }

  void await_resume() {
    DisarmTimer();
    EndOrThrow();
  }
  Outcome<void> await_outcome() {
    DisarmTimer();
    return EndAsOutcome();
  }

 private:
  static void OnDue(Runnable* runnable) { static_cast<SleepAwaiter*>(runnable)->Wake(); }
  void DisarmTimer() { task()->scheduler()->owner->Disarm(this); }
  std::string Description() const override {
    return DescribeSleep(deadline(), task()->scheduler()->owner->Now());
  }

  absl::Duration delay_;
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
