// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_NO_THROW_H_
#define WEFT_CORE_NO_THROW_H_

#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/core/awaitable.h"
#include "weft/core/outcome.h"

namespace weft {
namespace internal {

// Ends an await, and says how it ended.
template <class Awaiter>
auto ResumeAsOutcome(Awaiter& awaiter) {
  if constexpr (IsWeftAwaiter<Awaiter>) {
    return awaiter.await_outcome();
  } else {
    using Result = decltype(awaiter.await_resume());
    Outcome<std::remove_cvref_t<Result>> outcome;
    try {
      if constexpr (std::is_void_v<Result>) {
        awaiter.await_resume();
        outcome.Emplace();
      } else {
        outcome.Emplace(awaiter.await_resume());
      }
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }
}

// `A` is kept: an awaitable given as a temporary moves in.
template <class A>
class [[nodiscard]] NoThrowAwaiter {
 public:
  using ValueType = std::remove_cvref_t<AwaitResult<A>>;

  explicit NoThrowAwaiter(A&& awaitable)
      : awaitable_(std::forward<A>(awaitable)),
        awaiter_(ToWeftAwaiter(std::forward<A>(awaitable_))) {}
  NoThrowAwaiter(const NoThrowAwaiter&) = delete;

  bool await_ready() { return awaiter_.await_ready(); }

  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> handle) {
    return awaiter_.await_suspend(handle);
  }

  Outcome<ValueType> await_resume() { return ResumeAsOutcome(awaiter_); }
  // So that it is one of weft's awaiters. It cannot fail.
  Outcome<Outcome<ValueType>> await_outcome() {
    Outcome<Outcome<ValueType>> outcome;
    outcome.Emplace(await_resume());
    return outcome;
  }

 private:
  A awaitable_;  // A reference, for an lvalue.
  decltype(ToWeftAwaiter(std::declval<A>())) awaiter_;
};

// What NoThrow() returns.
template <class A>
class [[nodiscard]] NoThrowAwaitable {
 public:
  explicit NoThrowAwaitable(A&& awaitable) : awaitable_(std::forward<A>(awaitable)) {}

  NoThrowAwaiter<A> operator co_await() && {
    return NoThrowAwaiter<A>(std::forward<A>(awaitable_));
  }

 private:
  A awaitable_;
};

}  // namespace internal

// Awaits `awaitable` and says how it ended, instead of throwing: for cleanup
// that awaits, for noexcept code, and where timeouts are common, since an
// exception costs about a microsecond a frame.
//
//   Outcome<std::string> reply = co_await NoThrow(WithTimeout(absl::Seconds(1), Ask()));
//   if (reply.cancelled()) { ... the task was asked to end ... }
//
// A cancellation counts as delivered when it is returned here: whoever does not
// want to end must not, and whoever does throws it on by `reply.value()`.
template <Awaitable A>
internal::NoThrowAwaitable<A> NoThrow(A&& awaitable) {
  return internal::NoThrowAwaitable<A>(std::forward<A>(awaitable));
}

}  // namespace weft

#endif  // WEFT_CORE_NO_THROW_H_
