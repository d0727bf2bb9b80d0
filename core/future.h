// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_FUTURE_H_
#define WEFT_CORE_FUTURE_H_

#include <coroutine>
#include <exception>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/core/callback.h"
#include "weft/core/future_ref.h"
#include "weft/core/future_state.h"
#include "weft/core/outcome.h"
#include "weft/core/source_location.h"
#include "weft/core/task_state.h"

namespace weft {

template <class T>
class Future;

namespace internal {

template <class T>
concept Printable = requires(std::ostream& out, const T& value) { out << value; };

template <class T>
std::string ValueText(const Outcome<T>& outcome) {
  if constexpr (!std::is_void_v<T>) {
    if constexpr (Printable<std::remove_reference_t<T>>) {
      if (outcome.has_value()) {
        std::ostringstream out;
        out << outcome.value();
        return out.str();
      }
    }
  }
  return std::string();
}

// A state with the place for its outcome: of a plain future, and the base of
// what is made of other futures.
template <class T>
class FutureStateOf : public FutureState {
  static_assert(alignof(Outcome<T>) <= kMaxOutcomeAlignment, "put it behind a pointer");

 public:
  FutureStateOf(SchedulerCore* scheduler, const SourceLocation& created_at)
      : FutureState(scheduler, &outcome_, /*refs=*/0, created_at) {}

  std::exception_ptr error() const override { return outcome_.exception(); }
  std::string value_text() const override { return ValueText(outcome_); }

 protected:
  Outcome<T> outcome_;
};

// Keeps a state alive while a callback waits to be called with it.
class CallbackFutureRef {
 public:
  explicit CallbackFutureRef(FutureState* state) : state_(state) { state_->AddCallbackRef(); }
  CallbackFutureRef(CallbackFutureRef&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)) {}
  CallbackFutureRef& operator=(CallbackFutureRef&&) = delete;
  ~CallbackFutureRef() {
    if (state_ != nullptr) state_->ReleaseCallbackRef();
  }
  FutureState* state() const { return state_; }

 private:
  FutureState* state_;
};

// Registers `callable`, to be called without arguments, behind all who wait for
// `state`; if that is done, for the next round.
template <class F>
CallbackId AddDoneCallback(FutureState* state, F&& callable, const SourceLocation& location) {
  state->CheckUse();
  SchedulerCore* core = state->scheduler();
  if (ABSL_PREDICT_FALSE(core->owner == nullptr)) throw RuntimeError("Event loop is closed");
  if (state->done()) return core->owner->CallSoon(std::forward<F>(callable), location);
  CallbackSlot* slot = core->owner->MakeCallback(std::forward<F>(callable), location);
  state->waiters().PushBack(slot);
  return Handle(core->owner, slot);
}

// What can be called with a future that is done, and is no coroutine.
template <class F, class Done>
concept DoneCallback = std::invocable<std::decay_t<F>&, Done> && !ReturnsCoroutine<F, Done>;

// Throws why `task` cannot await `state`: it is itself, or another loop's.
[[noreturn]] void ThrowCannotAwait(TaskState* task, FutureState* state);
[[noreturn]] void ThrowEmptyFuture();
[[noreturn]] void ThrowNotSettable(const FutureState& state, const char* operation);

// The results of a future that somebody holds already, for what is made of
// several: `Future<T>::TakeResult()` without a reference of its own.
struct FutureResult {
  template <class T>
  static T Take(FutureState& state) {
    return Future<T>::TakeResult(state);
  }
};

// Waits for a future. `kConsume`: the reference was given up for it, so the
// result may be moved out.
template <class T, bool kConsume>
class [[nodiscard]] FutureAwaiter {
 public:
  explicit FutureAwaiter(FutureStateRef state) : state_(std::move(state)) {
    if (ABSL_PREDICT_FALSE(!state_)) ThrowEmptyFuture();
  }

  bool await_ready() const { return state_->done(); }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    task_ = handle.promise().task;
    if (ABSL_PREDICT_FALSE(!IsAwaitableBy(task_))) {
      misuse_ = true;
      task_->Suspend(handle, nullptr);
      return task_->Wake();
    }
    task_->Suspend(handle, state_.get());
    state_->waiters().PushBack(task_);
  }

  decltype(auto) await_resume() {
    if (task_ != nullptr) {
      if (ABSL_PREDICT_FALSE(TakeCancellation())) {
        std::rethrow_exception(task_->cancelled_error());
      }
      if (ABSL_PREDICT_FALSE(misuse_)) ThrowMisuse();
    }
    if constexpr (kConsume) {
      return Future<T>::TakeResult(*state_);
    } else {
      return Future<T>::ResultOf(*state_);
    }
  }

  Outcome<std::remove_cvref_t<T>> await_outcome() {
    Outcome<std::remove_cvref_t<T>> outcome;
    if (task_ != nullptr && TakeCancellation()) {
      outcome.SetCancelled(task_->cancelled_error());
      return outcome;
    }
    if (state_->cancelled()) {
      outcome.SetCancelled(state_->cancelled_error());
      return outcome;
    }
    if (!misuse_) {
      const Outcome<T>& ended = state_->template outcome<T>();
      if (ended.has_exception()) {
        state_->MarkRetrieved();
        if (ended.cancelled()) {
          outcome.SetCancelled(ended.exception());
        } else {
          outcome.SetError(ended.exception());
        }
        return outcome;
      }
    }
    try {
      if (misuse_) ThrowMisuse();
      if constexpr (std::is_void_v<T>) {
        outcome.Emplace();
      } else if constexpr (kConsume) {
        outcome.Emplace(Future<T>::TakeResult(*state_));
      } else {
        outcome.Emplace(Future<T>::ResultOf(*state_));
      }
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 private:
  // Takes the task's cancellation, which replaces what the future ended with,
  // unless that is a CancelledError itself.
  bool TakeCancellation() {
    if (ABSL_PREDICT_TRUE(!task_->TakeCancellation())) return false;
    if (misuse_) return true;
    if (state_->has_error()) state_->MarkRetrieved();
    return !state_->cancelled() && !state_->template outcome<T>().cancelled();
  }

  bool IsAwaitableBy(TaskState* task) const {
    return state_.get() != task && state_->scheduler() == task->scheduler();
  }
  [[noreturn]] void ThrowMisuse() { ThrowCannotAwait(task_, state_.get()); }

  FutureStateRef state_;
  TaskState* task_ = nullptr;  // Once it was suspended.
  bool misuse_ = false;
};

}  // namespace internal

// Future
//
// A counted reference to a value to come. Whoever holds one may wait for it,
// complete it, cancel it, or have callbacks called; there is no separate
// promise. In debug mode each of these is refused, with a RuntimeError, while
// another thread is running its loop, or this one another loop.
//
//   Future<int> answer = loop.CreateFuture<int>();
//   loop.CallLater(absl::Seconds(1), [answer]() mutable { answer.SetResult(42); });
//   int n = co_await answer;
//
// Nobody runs inside SetResult(): tasks that wait and callbacks are queued, in
// the order in which they came. Awaiting a future that is done goes on at once.
//
// `co_await future` gives a `const T&` that is valid while the future is held;
// `co_await std::move(future)` gives a T, moved out of the last reference (or if
// T cannot be copied), else a copy.
//
// A `Task<T>` kept as a `Future<T>` is still a task: it cancels as one, and
// SetResult() on it throws.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Future.
template <class T = void>
class Future {
 public:
  using ValueType = T;

  // Refers to nothing; all but assignment and destruction needs a future.
  // Empty, as one that was moved from, or awaited as an rvalue: it may be assigned to,
  // compared and tested. Awaiting it throws InvalidStateError.
  Future() = default;
  explicit Future(internal::FutureStateRef state) : state_(std::move(state)) {}

  explicit operator bool() const { return static_cast<bool>(state_); }
  friend bool operator==(const Future& a, const Future& b) { return a.state_ == b.state_; }

  // It has a result or an error, or was cancelled.
  bool Done() const {
    state_->scheduler()->CheckThread();
    return state_->done();
  }
  bool Cancelled() const {
    state_->scheduler()->CheckThread();
    return state_->cancelled();
  }

  // The result. If it ended otherwise: throws what it ended with.
  // Errors: InvalidStateError "Result is not set." while pending, "Result was
  // moved out" after an await took it.
  typename internal::Shown<T>::Type Result() const {
    state_->scheduler()->CheckThread();
    return ResultOf(*state_);
  }

  // The same, but takes the result, as `co_await` of a temporary does: moved out
  // of the last reference, or if T cannot be copied, else copied.
  T TakeResult() {
    state_->scheduler()->CheckThread();
    return TakeResult(*state_);
  }

  // The error, or null if there is a result.
  // Errors: InvalidStateError while pending; CancelledError if cancelled.
  std::exception_ptr Exception() const { return Ref().Exception(); }

  // Gives the future its result, and queues all who wait.
  // Errors: InvalidStateError if it is done; RuntimeError for a task.
  template <class... U>
    requires(std::is_void_v<T> ? sizeof...(U) == 0 : sizeof...(U) == 1)
  void SetResult(U&&... value) {
    CheckSettable("set_result");
    state_->template outcome<T>().Emplace(std::forward<U>(value)...);
    state_->Finish(/*has_error=*/false);
  }

  // The same with an error: an exception_ptr, or an exception to make one of.
  template <class E>
  void SetException(E&& error) {
    CheckSettable("set_exception");
    if constexpr (std::is_same_v<std::decay_t<E>, std::exception_ptr>) {
      if (error == nullptr) throw ValueError("exception: null");
      const bool is_cancellation = internal::IsCancelledError(error);
      FinishWithError(std::forward<E>(error), is_cancellation);
    } else {
      FinishWithError(std::make_exception_ptr(std::forward<E>(error)),
                      std::is_same_v<std::decay_t<E>, CancelledError>);
    }
  }

  // Cancels it: who waits is thrown a CancelledError with `message`. For a task
  // this is a request, see Task. False if it is done already.
  bool Cancel(std::string message = "") {
    state_->CheckUse();
    return state_->Cancel(std::move(message));
  }

  // Has `callable(Future<T>)` called in the round after the one in which this
  // is done; in the next if it is. Errors: RuntimeError if the loop is closed.
  template <class F>
    requires internal::DoneCallback<F, Future<T>>
  CallbackId AddDoneCallback(F&& callable,
                             const SourceLocation& location = SourceLocation::current()) {
    return internal::AddDoneCallback(
        state_.get(),
        [callable = std::forward<F>(callable),
         ref = internal::CallbackFutureRef(state_.get())]() mutable {
          callable(Future<T>(internal::FutureStateRef(ref.state())));
        },
        location);
  }

  // Takes a callback back. False if it is not there, or queued already.
  bool RemoveDoneCallback(CallbackId id) {
    state_->CheckUse();
    if (state_->done() || !id.IsPending()) return false;
    id.Cancel();
    return true;
  }

  // In one line, for people: "<Future finished result=3>".
  std::string ToString() const { return state_->Repr(); }
  friend std::ostream& operator<<(std::ostream& out, const Future& future) {
    return out << (future ? future.ToString() : "<Future none>");
  }

  // The same future without its type.
  FutureRef Ref() const { return FutureRef(state_); }
  internal::FutureState* state() const { return state_.get(); }

  internal::FutureAwaiter<T, /*kConsume=*/false> operator co_await() const& {
    return internal::FutureAwaiter<T, false>(state_);
  }
  internal::FutureAwaiter<T, /*kConsume=*/true> operator co_await() && {
    return internal::FutureAwaiter<T, true>(std::move(state_));
  }

 private:
  template <class U, bool kConsume>
  friend class internal::FutureAwaiter;
  friend struct internal::FutureResult;

  // The outcome, for reading. Throws what it ended with.
  static typename internal::Shown<T>::Type ResultOf(internal::FutureState& state) {
    if (ABSL_PREDICT_FALSE(!state.has_result())) internal::ThrowNoResult(state);
    const Outcome<T>& outcome = state.template outcome<T>();
    return outcome.Peek();
  }

  // The result, moved out if this is the last reference or it must be.
  static T TakeResult(internal::FutureState& state) {
    if (ABSL_PREDICT_FALSE(!state.has_result())) internal::ThrowNoResult(state);
    Outcome<T>& outcome = state.template outcome<T>();
    if constexpr (std::is_void_v<T> || std::is_reference_v<T>) {
      return outcome.Take();
    } else {
      if constexpr (internal::IsCopyable<T>::value) {
        if (!state.IsUniquelyReferenced()) return outcome.value();
      }
      state.MarkMovedOut();
      return outcome.Take();
    }
  }

  void FinishWithError(std::exception_ptr error, bool is_cancellation) {
    Outcome<T>& outcome = state_->template outcome<T>();
    if (is_cancellation) {
      outcome.SetCancelled(std::move(error));
    } else {
      outcome.SetError(std::move(error));
    }
    state_->Finish(/*has_error=*/true);
  }

  void CheckSettable(const char* operation) const {
    state_->CheckUse();
    if (!state_->is_settable()) internal::ThrowNotSettable(*state_, operation);
    if (state_->done()) internal::ThrowInvalidState();
  }

 protected:
  internal::FutureStateRef state_;
};

// A pending future of `scheduler`.
template <class T>
Future<T> MakeFuture(Scheduler& scheduler,
                     const SourceLocation& location = SourceLocation::current()) {
  scheduler.CheckThread();
  return Future<T>(
      internal::FutureStateRef(new internal::FutureStateOf<T>(scheduler.core(), location)));
}

}  // namespace weft

#endif  // WEFT_CORE_FUTURE_H_
