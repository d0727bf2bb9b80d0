// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TIMEOUT_H_
#define WEFT_CORE_TIMEOUT_H_

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/time/time.h"
#include "weft/core/awaitable.h"
#include "weft/core/closure.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"
#include "weft/core/task_state.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"

namespace weft {

class Timeout;

namespace internal {

// A delay, counted from when the scope is entered, or a moment.
class TimeLimit {
 public:
  explicit TimeLimit(absl::Duration delay) : is_delay_(true), delay_(delay) {}
  explicit TimeLimit(TimePoint when) : is_delay_(false), when_(when) {}

 private:
  friend class ::weft::Timeout;

  bool is_delay_;
  absl::Duration delay_;
  TimePoint when_;
};

// `cause`: the CancelledError that it takes the place of.
std::exception_ptr MakeTimeoutError(std::exception_ptr cause);

}  // namespace internal

// Timeout
//
// The deadline of a `WithTimeout()` that is running: what its body is given.
// When it passes, the task is cancelled, and the scope turns that cancellation,
// and no other, into a TimeoutError.
//
//         the scope begins         it passes             the scope ends
//   created ----------> active -----------> expiring --------------> expired
//                          |
//                          +--------------------------------------> finished
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Timeout.
class Timeout : private Timer {
 public:
  Timeout() : Timer(&OnDue) {}
  ~Timeout() {
    if (ABSL_PREDICT_FALSE(state_ == State::kActive)) StopTimer();
  }

  // When it expires, or would have; InfiniteFuture() if never.
  TimePoint When() const { return when_; }

  // Moves the deadline. One that is past expires in the next round, if the scope
  // is still there by then; InfiniteFuture() takes it away.
  // Errors: RuntimeError once it has expired, and after the end of the scope.
  void Reschedule(TimePoint when);

  // The deadline has passed and the task was cancelled because of it.
  bool Expired() const { return state_ == State::kExpiring || state_ == State::kExpired; }

  // -- For WithTimeout().

  void Enter(internal::TaskState* task, const internal::TimeLimit& limit);

  bool is_expiring() const { return state_ == State::kExpiring; }

  // The scope ends before the deadline.
  void Finish() {
    if (state_ != State::kActive) return;  // It was not even entered.
    StopTimer();
    state_ = State::kFinished;
  }

  // The scope ends after it. True if the cancellation that ended the body, if
  // one did, is this timeout's own. REQUIRES: is_expiring(), and the awaiter of
  // the body has taken what it was to take.
  bool Expire() {
    state_ = State::kExpired;
    return task_->Uncancel() <= cancelling_before_;
  }

 private:
  enum class State : unsigned char { kCreated, kActive, kExpiring, kExpired, kFinished };

  static void OnDue(Runnable* runnable);
  void StartTimer(TimePoint now);
  void StopTimer();

  State state_ = State::kCreated;
  int cancelling_before_ = 0;
  internal::TaskState* task_ = nullptr;
  TimePoint when_;
};

namespace internal {

// Ends the await of what ran under `scope`.
template <class Result, class Awaiter>
Outcome<std::remove_cvref_t<Result>> EndTimeoutAsOutcome(Timeout& scope, Awaiter& awaiter) {
  if (ABSL_PREDICT_TRUE(!scope.is_expiring())) {
    scope.Finish();
    return ResumeAsOutcome(awaiter);
  }
  auto outcome = ResumeAsOutcome(awaiter);
  if (scope.Expire() && outcome.cancelled()) {
    outcome.SetError(MakeTimeoutError(outcome.exception()));
  }
  return outcome;
}

template <class Result, class Awaiter>
Result EndTimeout(Timeout& scope, Awaiter& awaiter) {
  if (ABSL_PREDICT_TRUE(!scope.is_expiring())) {
    scope.Finish();
    return awaiter.await_resume();
  }
  if constexpr (std::is_reference_v<Result>) {
    // An outcome would be a copy.
    try {
      Result result = awaiter.await_resume();
      scope.Expire();
      return static_cast<Result>(result);
    } catch (const CancelledError&) {
      if (scope.Expire()) throw TimeoutError(std::current_exception());
      throw;
    } catch (...) {
      if (scope.is_expiring()) scope.Expire();
      throw;
    }
  } else {
    auto outcome = ResumeAsOutcome(awaiter);
    if (scope.Expire() && outcome.cancelled()) throw TimeoutError(outcome.exception());
    return std::move(outcome).value();
  }
}

// Awaits `A` in place, under a timeout: no coroutine of its own.
template <class A>
class [[nodiscard]] TimeoutAwaiter {
 public:
  using Result = AwaitResult<A>;

  TimeoutAwaiter(A&& awaitable, const TimeLimit& limit)
      : limit_(limit),
        awaitable_(std::forward<A>(awaitable)),
        awaiter_(ToWeftAwaiter(std::forward<A>(awaitable_))) {}
  TimeoutAwaiter(const TimeoutAwaiter&) = delete;

  // What is ready needs no timer.
  bool await_ready() { return awaiter_.await_ready(); }
  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    scope_.Enter(handle.promise().task, limit_);
    return awaiter_.await_suspend(handle);
  }
  Result await_resume() { return EndTimeout<Result>(scope_, awaiter_); }
  auto await_outcome() { return EndTimeoutAsOutcome<Result>(scope_, awaiter_); }

 private:
  TimeLimit limit_;
  A awaitable_;  // A reference, for an lvalue.
  decltype(ToWeftAwaiter(std::declval<A>())) awaiter_;
  Timeout scope_;
};

// What WithTimeout(limit, awaitable) returns.
template <class A>
class [[nodiscard]] TimeoutAwaitable {
 public:
  TimeoutAwaitable(A&& awaitable, const TimeLimit& limit)
      : limit_(limit), awaitable_(std::forward<A>(awaitable)) {}

  TimeoutAwaiter<A> operator co_await() && {
    return TimeoutAwaiter<A>(std::forward<A>(awaitable_), limit_);
  }

 private:
  TimeLimit limit_;
  A awaitable_;
};

// The same for a body.
template <class T, class F>
class [[nodiscard]] TimeoutBodyAwaiter {
 public:
  TimeoutBodyAwaiter(InPlaceClosure<F> body, const TimeLimit& limit)
      : limit_(limit), body_(std::move(body)) {}
  TimeoutBodyAwaiter(const TimeoutBodyAwaiter&) = delete;

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    scope_.Enter(handle.promise().task, limit_);
    awaiter_.child = body_.get()(scope_).Release()->handle();
    awaiter_.await_suspend(handle);
  }
  T await_resume() { return EndTimeout<T>(scope_, awaiter_); }
  auto await_outcome() { return EndTimeoutAsOutcome<T>(scope_, awaiter_); }

 private:
  TimeLimit limit_;
  InPlaceClosure<F> body_;
  Timeout scope_;
  CoroAwaiter<T> awaiter_{std::coroutine_handle<>()};
};

template <class T, class F>
class [[nodiscard]] TimeoutBodyAwaitable {
 public:
  TimeoutBodyAwaitable(F&& body, const TimeLimit& limit)
      : limit_(limit), body_(std::forward<F>(body)) {}

  TimeoutBodyAwaiter<T, F> operator co_await() && {
    return TimeoutBodyAwaiter<T, F>(std::move(body_), limit_);
  }

 private:
  TimeLimit limit_;
  InPlaceClosure<F> body_;
};

template <class F>
concept TimeoutBody = std::invocable<ClosureType<F>&, Timeout&>;

template <TimeoutBody F>
auto RunWithTimeout(F&& body, const TimeLimit& limit) {
  WEFT_CHECK_CLOSURE(F);
  using Called = std::invoke_result_t<ClosureType<F>&, Timeout&>;
  static_assert(IsCoro<Called>::value, "the body must return a Coro");
  return TimeoutBodyAwaitable<typename IsCoro<Called>::ValueType, F>(std::forward<F>(body), limit);
}

}  // namespace internal

// Awaits `awaitable`, in place, for at most `delay`, counted from the await:
// when that has passed, the task is cancelled at whatever it waits for, and as
// soon as it has unwound to here a TimeoutError is thrown instead. A delay of
// zero or less expires at the first wait that lasts a round.
//
//   std::string reply = co_await WithTimeout(absl::Seconds(1), Ask(server));
//
// The TimeoutError's `cause()` is that CancelledError. A cancellation from elsewhere
// passes through. A result that the awaitable
// returns in spite of the cancellation is a result.
//
// Python: asyncio.timeout(), around an `await`.
template <Awaitable A>
internal::TimeoutAwaitable<A> WithTimeout(absl::Duration delay, A&& awaitable) {
  return internal::TimeoutAwaitable<A>(std::forward<A>(awaitable), internal::TimeLimit(delay));
}

// Runs `body(Timeout&)`, a function that returns a Coro, in the same way; it may
// look at its deadline and move it. A closure is used where it is, or, if it is
// a temporary, kept until the end.
//
//   co_await WithTimeout(absl::Seconds(5), [&](Timeout& timeout) -> Coro<> {
//     for (bool more = true; more;) {
//       more = co_await ReadSome();
//       timeout.Reschedule(loop.Time() + absl::Seconds(5));
//     }
//   });
template <internal::TimeoutBody F>
auto WithTimeout(absl::Duration delay, F&& body) {
  return internal::RunWithTimeout(std::forward<F>(body), internal::TimeLimit(delay));
}

// The same until `when`; InfiniteFuture() for no limit.
//
// Python: asyncio.timeout_at().
template <Awaitable A>
internal::TimeoutAwaitable<A> WithTimeoutAt(TimePoint when, A&& awaitable) {
  return internal::TimeoutAwaitable<A>(std::forward<A>(awaitable), internal::TimeLimit(when));
}
template <internal::TimeoutBody F>
auto WithTimeoutAt(TimePoint when, F&& body) {
  return internal::RunWithTimeout(std::forward<F>(body), internal::TimeLimit(when));
}

}  // namespace weft

#endif  // WEFT_CORE_TIMEOUT_H_
