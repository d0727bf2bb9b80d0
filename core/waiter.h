// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_WAITER_H_
#define WEFT_CORE_WAITER_H_

#include <coroutine>

#include "weft/core/cancellable.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/outcome.h"
#include "weft/core/task_state.h"

namespace weft::internal {

// How a wait without a value has ended, as an outcome.
inline Outcome<void> WaitOutcome(TaskState* task, bool cancelled) {
  Outcome<void> outcome;
  if (cancelled) {
    outcome.SetCancelled(task->cancelled_error());
  } else {
    outcome.Emplace();
  }
  return outcome;
}

// One wait of one task for something that is not a future: how it is woken and
// how it is cancelled. It lies in the awaiter, in the frame of the coroutine
// that waits.
//
//            Begin()             Wake(), or Cancel() of the task
//   kIdle ------------> kWaiting -------------------------------> kWoken, kCancelled
//
// Threads: belongs to the loop's thread.
class Wait : public Cancellable {
 public:
  enum class State : unsigned char { kIdle, kWaiting, kWoken, kCancelled };

  Wait() = default;
  Wait(const Wait&) = delete;

  // CPython's `not fut.done()`.
  bool is_waiting() const { return state_ == State::kWaiting; }
  bool was_woken() const { return state_ == State::kWoken; }
  bool was_cancelled() const { return state_ == State::kCancelled; }

  // Suspends the coroutine of `handle`; for await_suspend.
  template <class Promise>
  void Begin(std::coroutine_handle<Promise> handle) {
    Begin(handle.promise().task, handle);
  }
  void Begin(TaskState* task, std::coroutine_handle<> handle) {
    task_ = task;
    state_ = State::kWaiting;
    task_->Suspend(handle, this);
  }

  // Queues the task, for the next round. False if it was woken or cancelled
  // before.
  bool Wake() {
    if (state_ != State::kWaiting) return false;
    state_ = State::kWoken;
    task_->Wake();
    return true;
  }

  // The same for whoever queues something in the task's place, and runs the task himself; or,
  // as it may turn out then, lets it wait on: the only way back.
  void WakeByProxy() { state_ = State::kWoken; }
  void WaitOn() { state_ = State::kWaiting; }

  // How the wait ended, for await_resume: true if the await is to throw
  // `task()->cancelled_error()`. That can also be after Wake(), if the task was
  // cancelled after that: what it was woken for is then the caller's to pass on.
  bool End() {
    if (state_ == State::kIdle) return false;  // It never had to wait.
    // A cancellation that came while it was queued counts as this one.
    const bool cancelled = task_->TakeCancellation();
    return cancelled || state_ == State::kCancelled;
  }

  // End(), and throws.
  void EndOrThrow() {
    if (ABSL_PREDICT_FALSE(End())) std::rethrow_exception(task_->cancelled_error());
  }

  // End(), as an outcome.
  Outcome<void> EndAsOutcome() { return WaitOutcome(task_, End()); }

  TaskState* task() const { return task_; }

  // In debug mode: RuntimeError if another thread is running the task's loop. For
  // whoever is about to wake it.
  void CheckThread() const { task_->scheduler()->CheckThread(); }

  Step BeginCancel(const std::exception_ptr&) override {
    if (state_ != State::kWaiting) return {nullptr, CancelAnswer::kRefused};
    state_ = State::kCancelled;
    task_->Wake();
    return {nullptr, CancelAnswer::kAccepted};
  }
  bool WasCancelled() const override { return was_cancelled(); }

 private:
  State state_ = State::kIdle;
  TaskState* task_ = nullptr;
};

// A wait in a list: of a lock, an event or a queue. It stays in its list until
// the task *resumes*, as the futures in CPython's deques do: one that was woken
// or cancelled is still there, and whoever looks for somebody to wake passes it
// over. Whoever resumes it unlinks it.
class Waiter : public ListNode, public Wait {};

}  // namespace weft::internal

#endif  // WEFT_CORE_WAITER_H_
