// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_AWAITABLE_H_
#define WEFT_CORE_AWAITABLE_H_

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "absl/base/optimization.h"
#include "weft/core/coro_promise.h"
#include "weft/core/outcome.h"
#include "weft/core/runnable.h"
#include "weft/core/task_state.h"

namespace weft {
namespace internal {

template <class A>
concept HasMemberCoAwait = requires(A&& a) { std::forward<A>(a).operator co_await(); };
template <class A>
concept HasFreeCoAwait = requires(A&& a) { operator co_await(std::forward<A>(a)); };

// The awaiter behind `a`, as the language finds it. What is an awaiter itself is
// returned by lvalue reference, also a temporary: it lives as long as the full
// expression.
template <class A>
decltype(auto) ToAwaiter(A&& a) {
  if constexpr (HasMemberCoAwait<A>) {
    return std::forward<A>(a).operator co_await();
  } else if constexpr (HasFreeCoAwait<A>) {
    return operator co_await(std::forward<A>(a));
  } else {
    return static_cast<std::remove_reference_t<A>&>(a);
  }
}

template <class A>
using AwaiterOf = decltype(ToAwaiter(std::declval<A>()));

template <class A>
concept IsAwaiter = requires(std::remove_cvref_t<A>& a) {
  { a.await_ready() } -> std::convertible_to<bool>;
  a.await_resume();
};

// An awaiter that knows tasks: its await_suspend takes the handle of a
// coroutine of weft, and it can say how it ended without throwing.
template <class A>
concept IsWeftAwaiter = IsAwaiter<A> && requires(std::remove_cvref_t<A>& a) { a.await_outcome(); };

}  // namespace internal

// What `co_await a` yields.
template <class A>
using AwaitResult =
    decltype(std::declval<std::remove_reference_t<internal::AwaiterOf<A>>&>().await_resume());

// Something that can stand behind `co_await`.
template <class A>
concept Awaitable = internal::IsAwaiter<internal::AwaiterOf<A>>;

namespace internal {

// Stands in for a task before an awaiter that is not weft's: resuming its
// handle queues the task, so that a foreign library never resumes a coroutine
// of ours in the middle of something. Any thread may do it.
class Bridge {
 public:
  struct promise_type {
    explicit promise_type(TaskState*) {}
    static void* operator new(size_t size) { return AllocateBlock(size); }
    static void operator delete(void* frame, size_t size) noexcept { FreeBlock(frame, size); }
    Bridge get_return_object() {
      return Bridge(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() noexcept {}
  };

  explicit Bridge(std::coroutine_handle<> handle) : handle_(handle) {}
  Bridge(Bridge&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Bridge& operator=(Bridge&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Bridge() {
    if (handle_ != nullptr) handle_.destroy();
  }
  std::coroutine_handle<> handle() const { return handle_; }

  static Bridge To(TaskState* task) { co_await Waking(task); }

 private:
  // Who resumes it is done with its frame when this is called, which may be on another
  // thread: the task may go on, and destroy it.
  struct Waking {
    explicit Waking(TaskState* waiting) : task(waiting) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<>) const {
      task->scheduler()->owner->QueueFromAnyThread(task);
    }
    void await_resume() const {}
    TaskState* task;
  };

  std::coroutine_handle<> handle_;
};

// Awaits by an awaiter that is not weft's. A cancellation is delivered when
// that is over: there is no way to end it early, and it may not be abandoned.
template <class A>
class ForeignAwaiter {
 public:
  explicit ForeignAwaiter(A&& inner) : inner_(std::forward<A>(inner)) {}

  bool await_ready() { return inner_.await_ready(); }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    TaskState* task = handle.promise().task;
    bridge_ = Bridge::To(task);
    try {
      if (!SuspendInner()) return false;
    } catch (...) {
      // It has resumed the bridge before it threw: the task is queued, so it waits.
      if (!static_cast<Runnable*>(task)->is_linked()) throw;
      error_ = std::current_exception();
    }
    task_ = task;
    task->Suspend(handle, nullptr);
    return true;
  }

  decltype(auto) await_resume() {
    if (ABSL_PREDICT_FALSE(error_ != nullptr)) std::rethrow_exception(error_);
    if (task_ != nullptr) task_->ThrowIfCancelled();
    return inner_.await_resume();
  }

 private:
  // False: it goes on at once.
  bool SuspendInner() {
    using Result = decltype(inner_.await_suspend(bridge_.handle()));
    if constexpr (std::is_void_v<Result>) {
      inner_.await_suspend(bridge_.handle());
    } else if constexpr (std::is_same_v<Result, bool>) {
      return inner_.await_suspend(bridge_.handle());
    } else {
      const std::coroutine_handle<> next = inner_.await_suspend(bridge_.handle());
      if (next == bridge_.handle()) return false;
      next.resume();
    }
    return true;
  }

  A inner_;
  TaskState* task_ = nullptr;
  Bridge bridge_{std::coroutine_handle<>()};
  std::exception_ptr error_;
};

// The awaiter that a coroutine of weft uses for `a`.
template <class A>
decltype(auto) ToWeftAwaiter(A&& a) {
  using Awaiter = AwaiterOf<A>;
  if constexpr (IsWeftAwaiter<Awaiter>) {
    return ToAwaiter(std::forward<A>(a));
  } else {
    return ForeignAwaiter<Awaiter>(ToAwaiter(std::forward<A>(a)));
  }
}

// An awaiter that is somebody else's. It stands for a reference, which gcc 12
// would copy.
template <class Awaiter>
class AwaiterRef {
 public:
  explicit AwaiterRef(Awaiter& awaiter) : awaiter_(&awaiter) {}
  Awaiter& get() const { return *awaiter_; }

  bool await_ready() { return awaiter_->await_ready(); }
  template <class Promise>
  decltype(auto) await_suspend(std::coroutine_handle<Promise> handle) {
    return awaiter_->await_suspend(handle);
  }
  decltype(auto) await_resume() { return awaiter_->await_resume(); }

 private:
  Awaiter* awaiter_;
};

}  // namespace internal
}  // namespace weft

#endif  // WEFT_CORE_AWAITABLE_H_
