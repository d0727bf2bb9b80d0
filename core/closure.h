// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CLOSURE_H_
#define WEFT_CORE_CLOSURE_H_

#include <type_traits>
#include <utility>

namespace weft {

// What `Take()` returns.
template <class F>
class Taken {
 public:
  explicit Taken(F& callable) : callable_(&callable) {}
  F& get() const { return *callable_; }

 private:
  F* callable_;
};

// Says that a closure is to be moved out of a named variable: how a move-only
// closure is handed to a function whose result is awaited at once.
//
//   auto job = [file = std::move(file)] { return Parse(*file); };
//   Result result = co_await ToThread(Take(job));
template <class F>
Taken<F> Take(F& callable) {
  return Taken<F>(callable);
}

namespace internal {

// Compilers that destroy the captures of a temporary closure twice when it
// stands in the same full expression as a co_await (seen in gcc 12.2, at every
// level of optimisation, without a warning).
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 15
inline constexpr bool kClosuresDieTwice = true;
#else
inline constexpr bool kClosuresDieTwice = false;
#endif

template <class F>
struct IsTaken : std::false_type {};
template <class F>
struct IsTaken<Taken<F>> : std::true_type {};

// What may be handed to a function that takes a closure and returns something
// to await: an lvalue, a `Take()`, or a temporary that has nothing to destroy.
template <class F>
concept SafeClosure =
    !kClosuresDieTwice || std::is_lvalue_reference_v<F> ||
    std::is_trivially_copyable_v<std::remove_cvref_t<F>> || IsTaken<std::remove_cvref_t<F>>::value;

// The callable's own type behind `F`, as a forwarding reference deduces it.
template <class F>
struct ClosureOf {
  using Type = std::decay_t<F>;
};
template <class F>
  requires IsTaken<std::remove_cvref_t<F>>::value
struct ClosureOf<F> {
  using Type = std::remove_reference_t<decltype(std::declval<F>().get())>;
};
template <class F>
using ClosureType = typename ClosureOf<F>::Type;

// The callable to keep: copied from an lvalue, moved from a temporary or out of
// a `Take()`.
template <class F>
ClosureType<F> KeepClosure(F&& callable) {
  if constexpr (IsTaken<std::remove_cvref_t<F>>::value) {
    return std::move(callable.get());
  } else {
    return std::forward<F>(callable);
  }
}

// A callable that runs in place, while whoever gave it waits: an lvalue, or what
// `Take()` names, is used where it is; a temporary is kept.
template <class F>
class InPlaceClosure {
 public:
  explicit InPlaceClosure(F&& callable) : callable_(std::forward<F>(callable)) {}
  std::remove_reference_t<F>& get() { return callable_; }

 private:
  F callable_;
};
template <class F>
class InPlaceClosure<F&> {
 public:
  explicit InPlaceClosure(F& callable) : callable_(&callable) {}
  F& get() { return *callable_; }

 private:
  F* callable_;
};
template <class F>
class InPlaceClosure<Taken<F>> : public InPlaceClosure<F&> {
 public:
  explicit InPlaceClosure(Taken<F> taken) : InPlaceClosure<F&>(taken.get()) {}
};

}  // namespace internal
}  // namespace weft

// To stand in every function that takes a SafeClosure.
#define WEFT_CHECK_CLOSURE(F)                                                             \
  static_assert(::weft::internal::SafeClosure<F>,                                         \
                "this compiler destroys the captures of such a temporary closure twice: " \
                "name it in a variable first, and pass that, or Take() of it")

#endif  // WEFT_CORE_CLOSURE_H_
