// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_WAIT_FOR_H_
#define WEFT_CORE_WAIT_FOR_H_

#include <coroutine>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/time/time.h"
#include "weft/core/awaitable.h"
#include "weft/core/ensure_future.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"
#include "weft/core/runnable.h"
#include "weft/core/task_state.h"
#include "weft/core/timeout.h"
#include "weft/core/waiter.h"

namespace weft {
namespace internal {

// With no time at all: makes a future of `A`, and unless that is done, cancels it
// and waits until it has ended.
template <class A>
class [[nodiscard]] CancelAndWaitAwaiter final : private Runnable, private Wait {
 public:
  using Result = AwaitResult<A>;

  explicit CancelAndWaitAwaiter(A&& awaitable)
      : Runnable(&OnDone), awaitable_(std::forward<A>(awaitable)) {}
  CancelAndWaitAwaiter(const CancelAndWaitAwaiter&) = delete;

  bool await_ready() {
    future_.emplace(EnsureFuture(std::forward<A>(awaitable_)));
    return future_->Done();
  }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    TaskState* task = handle.promise().task;
    if (ABSL_PREDICT_FALSE(future_->state()->scheduler() != task->scheduler())) {
      ThrowCannotAwait(task, future_->state());
    }
    // In this order: what is cancelled may be a gather of this very task, and then
    // the task is told while it still runs, as in CPython.
    future_->state()->waiters().PushBack(this);
    future_->Cancel();
    Begin(handle);
  }
  Result await_resume() {
    Unlink();
    EndOrThrow();
    if (WasCancelledHere()) throw TimeoutError(Cancellation());
    return ResultAwaiter().await_resume();
  }
  Outcome<std::remove_cvref_t<Result>> await_outcome() {
    Unlink();
    Outcome<std::remove_cvref_t<Result>> outcome;
    if (End()) {
      outcome.SetCancelled(task()->cancelled_error());
      return outcome;
    }
    if (WasCancelledHere()) {
      outcome.SetError(MakeTimeoutError(Cancellation()));
      return outcome;
    }
    return ResultAwaiter().await_outcome();
  }

 private:
  using Type = decltype(EnsureFuture(std::declval<A>()));

  static void OnDone(Runnable* runnable) { static_cast<CancelAndWaitAwaiter*>(runnable)->Wake(); }

  // It was asked to end, and takes its time.
  std::string Description() const override { return future_->ToString(); }

  // It ended as this asked it to. (A gather does so with an error.)
  bool WasCancelledHere() {
    if (!was_woken()) return false;
    FutureState& state = *future_->state();
    if (state.cancelled()) return true;
    if (!state.outcome<typename Type::ValueType>().cancelled()) return false;
    state.MarkRetrieved();
    return true;
  }

  std::exception_ptr Cancellation() const {
    FutureState& state = *future_->state();
    return state.cancelled() ? state.cancelled_error() : state.error();
  }

  // A reference to a future that the caller keeps gives a reference.
  decltype(auto) ResultAwaiter() {
    if constexpr (FutureLike<A> && std::is_lvalue_reference_v<A>) {
      return std::as_const(*future_).operator co_await();
    } else {
      return std::move(*future_).operator co_await();
    }
  }

  A awaitable_;
  std::optional<Type> future_;
};

template <class A>
class [[nodiscard]] WaitForAwaiter {
 public:
  using Result = AwaitResult<A>;

  WaitForAwaiter(A&& awaitable, absl::Duration timeout) {
    if (timeout > absl::ZeroDuration()) {
      in_time_.emplace(std::forward<A>(awaitable), TimeLimit(timeout));
    } else {
      at_once_.emplace(std::forward<A>(awaitable));
    }
  }
  WaitForAwaiter(const WaitForAwaiter&) = delete;

  bool await_ready() { return in_time_ ? in_time_->await_ready() : at_once_->await_ready(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (!in_time_) {
      at_once_->await_suspend(handle);
      return true;
    }
    if constexpr (std::is_void_v<decltype(in_time_->await_suspend(handle))>) {
      in_time_->await_suspend(handle);
      return true;
    } else {
      return in_time_->await_suspend(handle);
    }
  }
  Result await_resume() { return in_time_ ? in_time_->await_resume() : at_once_->await_resume(); }
  Outcome<std::remove_cvref_t<Result>> await_outcome() {
    return in_time_ ? in_time_->await_outcome() : at_once_->await_outcome();
  }

 private:
  std::optional<TimeoutAwaiter<A>> in_time_;
  std::optional<CancelAndWaitAwaiter<A>> at_once_;
};

// What WaitFor() returns.
template <class A>
class [[nodiscard]] WaitForAwaitable {
 public:
  WaitForAwaitable(A&& awaitable, absl::Duration timeout)
      : timeout_(timeout), awaitable_(std::forward<A>(awaitable)) {}

  WaitForAwaiter<A> operator co_await() && {
    return WaitForAwaiter<A>(std::forward<A>(awaitable_), timeout_);
  }

 private:
  absl::Duration timeout_;
  A awaitable_;
};

}  // namespace internal

// Awaits `awaitable` for at most `timeout`: WithTimeout(), but if `timeout` is
// zero or less, a coroutine is not even started, and what is done already gives
// its result. When it throws TimeoutError, `awaitable` was cancelled and has
// ended; Shield() it to have it run on.
//
//   int n = co_await WaitFor(Count(), absl::Seconds(1));
//
// Python: asyncio.wait_for(). A coroutine runs in the calling task.
template <Awaitable A>
internal::WaitForAwaitable<A> WaitFor(A&& awaitable, absl::Duration timeout) {
  return internal::WaitForAwaitable<A>(std::forward<A>(awaitable), timeout);
}

}  // namespace weft

#endif  // WEFT_CORE_WAIT_FOR_H_
