// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_NO_THROW_H_
#define WEFT_CORE_NO_THROW_H_

#include <coroutine>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
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

// An awaiter, or what one of its steps threw. A reference is kept as one.
template <class Awaiter>
class AwaiterOrError {
  using Stored = std::conditional_t<std::is_reference_v<Awaiter>,
                                    AwaiterRef<std::remove_reference_t<Awaiter>>, Awaiter>;

 public:
  template <class A>
  explicit AwaiterOrError(A&& awaitable) {
    try {
      ::new (&awaiter_) Stored(ToWeftAwaiter(std::forward<A>(awaitable)));
    } catch (...) {
      SetCurrentException();
    }
  }
  AwaiterOrError(const AwaiterOrError&) = delete;
  ~AwaiterOrError() {
    if (ABSL_PREDICT_FALSE(has_error_)) {
      error_.~exception_ptr();
    } else {
      awaiter_.~Stored();
    }
  }

  bool has_error() const { return has_error_; }
  const std::exception_ptr& error() const { return error_; }
  auto& awaiter() {
    if constexpr (std::is_reference_v<Awaiter>) {
      return awaiter_.get();
    } else {
      return awaiter_;
    }
  }

  // The awaiter has thrown, and goes.
  ABSL_ATTRIBUTE_NOINLINE void Fail() {
    awaiter_.~Stored();
    SetCurrentException();
  }

 private:
  void SetCurrentException() {
    ::new (&error_) std::exception_ptr(std::current_exception());
    has_error_ = true;
  }

  union {
    Stored awaiter_;
    std::exception_ptr error_;
  };
  bool has_error_ = false;
};

// Refers to what NoThrow() returned, which lives as long. Whatever step of the await
// throws, what it throws is the outcome; before the end that is a misuse (a coroutine
// that was awaited before, another loop's lock) or a body's function.
template <class A>
class [[nodiscard]] NoThrowAwaiter {
 public:
  using ValueType = std::remove_cvref_t<AwaitResult<A>>;

  explicit NoThrowAwaiter(A&& awaitable) : inner_(std::forward<A>(awaitable)) {}
  NoThrowAwaiter(const NoThrowAwaiter&) = delete;

  bool await_ready() noexcept {
    if (ABSL_PREDICT_FALSE(inner_.has_error())) return true;
    try {
      return inner_.awaiter().await_ready();
    } catch (...) {
      inner_.Fail();
      return true;
    }
  }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    try {
      if constexpr (std::is_void_v<decltype(inner_.awaiter().await_suspend(handle))>) {
        inner_.awaiter().await_suspend(handle);
        return true;
      } else {
        return inner_.awaiter().await_suspend(handle);
      }
    } catch (...) {
      inner_.Fail();
      return false;
    }
  }

  // Inline, or each await would be a call more.
  ABSL_ATTRIBUTE_ALWAYS_INLINE Outcome<ValueType> await_resume() noexcept {
    try {
      if (ABSL_PREDICT_FALSE(inner_.has_error())) std::rethrow_exception(inner_.error());
      return ResumeAsOutcome(inner_.awaiter());
    } catch (...) {
      Outcome<ValueType> outcome;
      outcome.SetCurrentException();
      return outcome;
    }
  }
  // So that it is one of weft's awaiters. Only a move of the value may fail.
  Outcome<Outcome<ValueType>> await_outcome() noexcept {
    Outcome<Outcome<ValueType>> outcome;
    try {
      outcome.Emplace(await_resume());
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 private:
  AwaiterOrError<decltype(ToWeftAwaiter(std::declval<A>()))> inner_;
};

// What NoThrow() returns. `A` is kept: an awaitable given as a temporary moves in.
template <class A>
class [[nodiscard]] NoThrowAwaitable {
 public:
  explicit NoThrowAwaitable(A&& awaitable) : awaitable_(std::forward<A>(awaitable)) {}

  NoThrowAwaiter<A> operator co_await() && {
    return NoThrowAwaiter<A>(std::forward<A>(awaitable_));
  }

 private:
  A awaitable_;  // A reference, for an lvalue.
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
//
// A misuse that the await finds out is an outcome as well. What is thrown before the
// await, by the expression that makes `awaitable`, is not caught.
template <Awaitable A>
internal::NoThrowAwaitable<A> NoThrow(A&& awaitable) {
  return internal::NoThrowAwaitable<A>(std::forward<A>(awaitable));
}

}  // namespace weft

#endif  // WEFT_CORE_NO_THROW_H_
