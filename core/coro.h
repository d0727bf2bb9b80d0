// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CORO_H_
#define WEFT_CORE_CORO_H_

#include <coroutine>
#include <type_traits>
#include <utility>

#include "weft/core/awaitable.h"
#include "weft/core/coro_promise.h"
#include "weft/core/outcome.h"
#include "weft/core/source_location.h"
#include "weft/core/task_state.h"

namespace weft {

template <class T>
class Coro;

namespace internal {

// At its end a coroutine goes back to who awaits it, by way of the step loop, and keeps
// its frame until that has looked at the outcome. The root of a task has nobody: it
// runs off its end, and its frame goes with that.
struct FinalAwaiter {
  explicit FinalAwaiter(CoroPromise* ended) : promise(ended) {}

  bool await_ready() noexcept {
    if (promise->awaiter != nullptr) return false;
    promise->task->EndStep(promise->awaiting_at);
    return true;
  }
  void await_suspend(std::coroutine_handle<>) noexcept {
    promise->task->SwitchTo(promise->awaiter->parent->handle());
  }
  void await_resume() noexcept {}

  CoroPromise* promise;
};

[[noreturn]] void ThrowCoroReused();

// What all coroutines of weft do at their suspension points.
struct AwaitingPromise : CoroPromise {
  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return FinalAwaiter(this); }

  template <class A>
  auto await_transform(A&& a, SourceLocation location = SourceLocation::current()) {
    static_assert(Awaitable<A>, "this cannot be awaited");
    awaiting_at = location;
    using Awaiter = decltype(ToWeftAwaiter(std::forward<A>(a)));
    if constexpr (std::is_reference_v<Awaiter>) {
      return AwaiterRef<std::remove_reference_t<Awaiter>>(ToWeftAwaiter(std::forward<A>(a)));
    } else {
      return ToWeftAwaiter(std::forward<A>(a));
    }
  }
};

template <class T>
struct ReturningPromise : AwaitingPromise {
  template <class U = T>
    requires std::is_constructible_v<typename Stored<T>::Type, U> || std::is_reference_v<T>
  void return_value(U&& value) {
    static_cast<Outcome<T>*>(outcome)->EmplaceReturned(std::forward<U>(value));
  }
  void unhandled_exception() noexcept { static_cast<Outcome<T>*>(outcome)->SetCurrentException(); }
};

template <>
struct ReturningPromise<void> : AwaitingPromise {
  void return_void() { static_cast<Outcome<void>*>(outcome)->EmplaceReturned(); }
  void unhandled_exception() noexcept {
    static_cast<Outcome<void>*>(outcome)->SetCurrentException();
  }
};

// Awaits a coroutine: a call, in the same task, without a hop.
template <class T>
class [[nodiscard]] CoroAwaiter : public CoroAwaiterBase {
 public:
  explicit CoroAwaiter(std::coroutine_handle<> handle) { child = handle; }
  CoroAwaiter(CoroAwaiter&& other) noexcept {
    child = std::exchange(other.child, nullptr);  // Before it was started.
  }
  ~CoroAwaiter() {
    if (child != nullptr) child.destroy();
  }

  bool await_ready() const { return false; }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    static_assert(alignof(Outcome<T>) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                  "frames of coroutines are no more strictly aligned than this: await a task of "
                  "the coroutine, or return a std::unique_ptr");
    CoroPromise& awaiting = handle.promise();
    CoroPromise& called =
        std::coroutine_handle<CoroPromise>::from_address(child.address()).promise();
    parent = &awaiting;
    called.awaiter = this;
    called.task = awaiting.task;
    called.outcome = &outcome_;
    awaiting.task->SwitchTo(child);
  }

  T await_resume() { return std::move(outcome_).value(); }
  Outcome<T> await_outcome() { return std::move(outcome_); }

 private:
  Outcome<T> outcome_;
};

}  // namespace internal

// Coro
//
// A coroutine that has not been started: what a function that uses `co_await`
// returns. Awaiting it is a call: it runs at once, in the same task, and gives
// its value or throws what it threw. To run it beside its caller, make a task.
//
//   Coro<int> Count(std::string path) { ... co_return n; }
//
//   int n = co_await Count("a");              // here and now
//   Task<int> task = CreateTask(Count("b"));  // meanwhile
//
// Nothing of the body runs until then. If it never is started, which is a mistake
// as a rule, only its arguments are destroyed, and the log has "coroutine 'Count'
// was never awaited". A coroutine keeps its by-value parameters for as long
// as it lives; what a reference or a view refers to is the caller's to keep.
//
// Threads: may be created on any thread; belongs to the loop's once started.
// Python: a coroutine object.
template <class T = void>
class [[nodiscard]] Coro {
 public:
  struct promise_type : internal::ReturningPromise<T> {
    promise_type() {}
    // Called in the coroutine's own function, so the place is that of its definition.
    Coro get_return_object(SourceLocation defined_at = SourceLocation::current()) {
      this->awaiting_at = defined_at;
      return Coro(*this);
    }
  };

  Coro(Coro&& other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
  Coro& operator=(Coro&& other) noexcept {
    std::swap(promise_, other.promise_);
    return *this;
  }
  ~Coro() {
    if (ABSL_PREDICT_FALSE(promise_ != nullptr)) internal::DestroyNeverAwaited(*promise_);
  }

  // Destroys the coroutine, if there still is one: for who will not await it, and
  // wants no warning.
  void Close() {
    if (promise_ != nullptr) internal::DestroyFrame(std::exchange(promise_, nullptr)->handle());
  }

  // Where it is defined. REQUIRES: *this.
  const SourceLocation& defined_at() const { return promise_->awaiting_at; }

  // False once it was awaited, made a task, or moved from.
  explicit operator bool() const { return promise_ != nullptr; }

  // Errors: RuntimeError if there is no coroutine, because it was awaited, made
  // a task or moved from.
  internal::CoroAwaiter<T> operator co_await() && {
    return internal::CoroAwaiter<T>(Release()->handle());
  }

  // -- For what runs coroutines. The caller takes over the frame.
  internal::CoroPromise* Release() {
    if (ABSL_PREDICT_FALSE(promise_ == nullptr)) internal::ThrowCoroReused();
    return std::exchange(promise_, nullptr);
  }

 private:
  explicit Coro(internal::CoroPromise& promise) : promise_(&promise) {}

  internal::CoroPromise* promise_;
};

namespace internal {

template <class T>
struct IsCoro : std::false_type {};
template <class T>
struct IsCoro<Coro<T>> : std::true_type {
  using ValueType = T;
};

}  // namespace internal
}  // namespace weft

#endif  // WEFT_CORE_CORO_H_
