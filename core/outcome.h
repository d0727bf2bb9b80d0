// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_OUTCOME_H_
#define WEFT_CORE_OUTCOME_H_

#include <exception>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include "weft/core/errors.h"

namespace weft {
namespace internal {

// What an outcome of T keeps: void becomes an empty struct, a reference a
// pointer.
struct Nothing {};

template <class T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<void> {
  using Type = Nothing;
};
template <class T>
struct Stored<T&> {
  using Type = T*;
};

// Whether a T can be copied. A vector of what cannot be says of itself that it can.
template <class T>
struct IsCopyable : std::is_copy_constructible<T> {};
template <class T>
  requires requires { typename T::value_type; } && (!std::is_same_v<T, typename T::value_type>)
struct IsCopyable<T> : std::bool_constant<std::is_copy_constructible_v<T> &&
                                          IsCopyable<typename T::value_type>::value> {};
template <class A, class B>
struct IsCopyable<std::pair<A, B>>
    : std::bool_constant<IsCopyable<A>::value && IsCopyable<B>::value> {};
template <class... Ts>
struct IsCopyable<std::tuple<Ts...>> : std::bool_constant<(IsCopyable<Ts>::value && ...)> {};

// How a kept T is shown: by constant reference, but a T& as it is.
template <class T>
struct Shown {
  using Type = const T&;
};
template <>
struct Shown<void> {
  using Type = void;
};
template <class T>
struct Shown<T&> {
  using Type = T&;
};

// What an outcome is, whatever the type of its value.
class OutcomeBase {
 public:
  bool has_value() const { return kind_ == Kind::kValue; }
  explicit operator bool() const { return has_value(); }
  bool has_exception() const { return kind_ == Kind::kError || kind_ == Kind::kCancelled; }
  bool cancelled() const { return kind_ == Kind::kCancelled; }

  // Nothing yet: neither value nor error.
  bool empty() const { return kind_ == Kind::kEmpty; }

 protected:
  enum class Kind : unsigned char { kEmpty, kValue, kError, kCancelled };

  OutcomeBase() = default;
  ~OutcomeBase() = default;

  Kind kind_ = Kind::kEmpty;
};

}  // namespace internal

// Outcome
//
// How something ended: with a value, with an error, or cancelled. What
// `co_await NoThrow(x)` returns, what `GatherOutcomes()` collects, and what a
// task keeps.
//
//   Outcome<int> outcome = co_await NoThrow(Count());
//   if (outcome.has_value()) Use(*outcome);
//
// Which of them it is: has_value(), has_exception(), cancelled(), empty().
//
// Threads: a value, as safe as T.
template <class T>
class Outcome : public internal::OutcomeBase {
  using Storage = typename internal::Stored<T>::Type;

 public:
  Outcome() {}
  Outcome(Outcome&& other) noexcept(std::is_nothrow_move_constructible_v<Storage>) : OutcomeBase() {
    MoveFrom(other);
  }
  Outcome(const Outcome& other)
    requires internal::IsCopyable<Storage>::value
      : OutcomeBase() {
    CopyFrom(other);
  }
  Outcome& operator=(Outcome&& other) noexcept(std::is_nothrow_move_constructible_v<Storage>) {
    if (this != &other) {
      Reset();
      MoveFrom(other);
    }
    return *this;
  }
  Outcome& operator=(const Outcome& other)
    requires internal::IsCopyable<Storage>::value
  {
    if (this != &other) {
      Reset();
      CopyFrom(other);
    }
    return *this;
  }
  ~Outcome() { Reset(); }

  // The value. If there is none: throws what happened instead.
  std::add_lvalue_reference_t<T> value() & {
    ThrowIfError();
    return Get();
  }
  typename internal::Shown<T>::Type value() const& {
    ThrowIfError();
    return Peek();
  }
  T value() && {
    ThrowIfError();
    return Take();
  }
  std::add_lvalue_reference_t<T> operator*() & { return value(); }
  typename internal::Shown<T>::Type operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  auto operator->()
    requires(!std::is_void_v<T>)
  {
    return std::addressof(value());
  }
  auto operator->() const
    requires(!std::is_void_v<T>)
  {
    return std::addressof(value());
  }

  // The error, which for a cancellation is a `CancelledError`; null if there
  // is none.
  std::exception_ptr exception() const { return has_exception() ? error_ : nullptr; }

  // -- For those who produce outcomes. Each replaces what was there.

  template <class... Args>
  void Emplace(Args&&... args) {
    Reset();
    if constexpr (std::is_reference_v<T>) {
      new (&value_) Storage(std::addressof(args)...);
    } else {
      new (&value_) Storage(std::forward<Args>(args)...);
    }
    kind_ = Kind::kValue;
  }
  // The same for what a coroutine returns: behind which no error is, as that would have
  // been its end, but perhaps a value, if it has returned twice (and a destructor thrown in
  // between).
  template <class... Args>
  void EmplaceReturned(Args&&... args) {
    if constexpr (std::is_trivially_destructible_v<Storage>) kind_ = Kind::kEmpty;
    Emplace(std::forward<Args>(args)...);
  }
  void SetError(std::exception_ptr error) { Set(Kind::kError, std::move(error)); }
  // `error` holds a CancelledError.
  void SetCancelled(std::exception_ptr error) { Set(Kind::kCancelled, std::move(error)); }
  // The exception that is being handled.
  void SetCurrentException() {
    Set(internal::IsHandlingCancelledError() ? Kind::kCancelled : Kind::kError,
        std::current_exception());
  }
  void Reset() {
    if (kind_ == Kind::kValue) {
      value_.~Storage();
    } else if (kind_ != Kind::kEmpty) {
      error_.~exception_ptr();
    }
    kind_ = Kind::kEmpty;
  }

  // The value as value() shows it. REQUIRES: has_value().
  typename internal::Shown<T>::Type Peek() const { return const_cast<Outcome*>(this)->Get(); }

  // Moves the value out. REQUIRES: has_value().
  T Take() {
    if constexpr (std::is_void_v<T>) {
      return;
    } else if constexpr (std::is_reference_v<T>) {
      return *value_;
    } else {
      return std::move(value_);
    }
  }

 private:
  std::add_lvalue_reference_t<T> Get() {
    if constexpr (std::is_void_v<T>) {
      return;
    } else if constexpr (std::is_reference_v<T>) {
      return *value_;
    } else {
      return value_;
    }
  }

  void ThrowIfError() const {
    if (has_exception()) std::rethrow_exception(error_);
    if (kind_ == Kind::kEmpty) throw InvalidStateError("Result is not set.");
  }

  void Set(Kind kind, std::exception_ptr error) {
    Reset();
    new (&error_) std::exception_ptr(std::move(error));
    kind_ = kind;
  }

  void MoveFrom(Outcome& other) {
    if (other.kind_ == Kind::kValue) {
      new (&value_) Storage(std::move(other.value_));
    } else if (other.kind_ != Kind::kEmpty) {
      new (&error_) std::exception_ptr(other.error_);
    }
    kind_ = other.kind_;
  }

  void CopyFrom(const Outcome& other) {
    if (other.kind_ == Kind::kValue) {
      new (&value_) Storage(other.value_);
    } else if (other.kind_ != Kind::kEmpty) {
      new (&error_) std::exception_ptr(other.error_);
    }
    kind_ = other.kind_;
  }

  union {
    Storage value_;
    std::exception_ptr error_;
  };
};

}  // namespace weft

#endif  // WEFT_CORE_OUTCOME_H_
