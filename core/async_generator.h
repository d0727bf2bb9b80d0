// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_ASYNC_GENERATOR_H_
#define WEFT_CORE_ASYNC_GENERATOR_H_

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/coro.h"
#include "weft/core/coro_promise.h"
#include "weft/core/outcome.h"
#include "weft/core/scheduler.h"
#include "weft/core/task_state.h"

namespace weft {

// GeneratorExit
//
// What `co_yield` throws in an asynchronous generator that is being closed. Not a
// `std::exception`. A generator may clean up, which may await, and lets it pass.
class GeneratorExit final {};

namespace internal {

class GeneratorOwner;

// The promise of a generator, whatever it yields.
struct GeneratorPromise : AwaitingPromise, GeneratorLink {
  GeneratorPromise() {}
  ~GeneratorPromise();

  // Gives a value, or its end, to who awaits it: as FinalAwaiter does.
  struct YieldAwaiter {
    explicit YieldAwaiter(GeneratorPromise* yielding) : promise(yielding) {}

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) noexcept {
      promise->task->SwitchTo(promise->awaiter->parent->handle());
    }
    void await_resume() {
      if (promise->is_closing) throw GeneratorExit();
    }

    GeneratorPromise* promise;
  };

  void return_void() { is_over = true; }
  void unhandled_exception() noexcept {
    is_over = true;
    error = std::current_exception();
    is_cancellation = IsHandlingCancelledError();
  }

  GeneratorOwner* owner = nullptr;  // Null: it was dropped.
  void* value = nullptr;            // What was yielded; lives until it goes on.
  bool value_is_const = false;
  bool is_started = false;
  bool is_running = false;  // Between its yields.
  bool is_closing = false;
  bool is_over = false;
  bool is_cancellation = false;
  std::exception_ptr error;
};

// Who holds a generator's frame. The two know of each other, since either may go
// first: the frame when its task is destroyed in the midst of it.
class GeneratorOwner {
 public:
  explicit GeneratorOwner(GeneratorPromise* promise) : promise_(promise) { promise_->owner = this; }
  GeneratorOwner(GeneratorOwner&& other) noexcept
      : promise_(std::exchange(other.promise_, nullptr)) {
    if (promise_ != nullptr) promise_->owner = this;
  }
  GeneratorOwner& operator=(GeneratorOwner&& other) noexcept {
    if (this == &other) return *this;
    Drop();
    promise_ = std::exchange(other.promise_, nullptr);
    if (promise_ != nullptr) promise_->owner = this;
    return *this;
  }
  ~GeneratorOwner() { Drop(); }

  // Null: it is at its end.
  GeneratorPromise* promise() const { return promise_; }

 private:
  friend struct GeneratorPromise;

  void Drop() {
    GeneratorPromise* promise = std::exchange(promise_, nullptr);
    if (promise == nullptr) return;
    promise->owner = nullptr;
    // One that runs goes when it next stands still.
    if (!promise->is_running) DestroyFrame(promise->handle());
  }

  GeneratorPromise* promise_;
};

// Runs a generator up to its next yield or its end, in place.
class GeneratorAwaiter : public CoroAwaiterBase {
 public:
  explicit GeneratorAwaiter(GeneratorPromise* promise) : promise_(promise) {}
  GeneratorAwaiter(const GeneratorAwaiter&) = delete;

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    parent = &handle.promise();
    child = promise_->handle();
    promise_->awaiter = this;
    promise_->task = parent->task;
    promise_->is_running = true;
    if (!promise_->is_started) {
      promise_->is_started = true;
      parent->task->scheduler()->generators.PushBack(promise_);
    }
    parent->task->SwitchTo(child);
  }

 protected:
  // It stands still again. If it is at its end, or nobody holds it, the frame
  // goes; `error` is what it threw, or null. False if there is no value.
  bool TakeStep(std::exception_ptr* error, bool* is_cancellation);

  GeneratorPromise* promise_;
};

[[noreturn]] void ThrowGeneratorRunning(const char* operation);

template <class T>
class [[nodiscard]] GeneratorNext : public GeneratorAwaiter {
 public:
  using GeneratorAwaiter::GeneratorAwaiter;

  bool await_ready() const {
    if (promise_ == nullptr) return true;
    if (promise_->is_running) ThrowGeneratorRunning("anext(): ");
    return false;
  }
  std::optional<T> await_resume() { return await_outcome().value(); }
  Outcome<std::optional<T>> await_outcome() {
    Outcome<std::optional<T>> outcome;
    std::optional<T> value;
    if (promise_ != nullptr) {
      std::exception_ptr copy_error;
      if (!promise_->is_over) {
        try {
          TakeValue(&value);
        } catch (...) {
          copy_error = std::current_exception();
        }
      }
      std::exception_ptr error;
      bool is_cancellation = false;
      TakeStep(&error, &is_cancellation);
      if (error == nullptr) error = copy_error;
      if (error != nullptr) {
        if (is_cancellation) {
          outcome.SetCancelled(std::move(error));
        } else {
          outcome.SetError(std::move(error));
        }
        return outcome;
      }
    }
    outcome.Emplace(std::move(value));
    return outcome;
  }

 private:
  void TakeValue(std::optional<T>* value) {
    if (promise_->value_is_const) {
      if constexpr (std::is_copy_constructible_v<T>) {
        value->emplace(*static_cast<const T*>(promise_->value));
      }
    } else {
      value->emplace(std::move(*static_cast<T*>(promise_->value)));
    }
  }
};

class [[nodiscard]] GeneratorClose : public GeneratorAwaiter {
 public:
  explicit GeneratorClose(GeneratorPromise* promise) : GeneratorAwaiter(promise) {}

  bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    promise_->is_closing = true;
    GeneratorAwaiter::await_suspend(handle);
  }
  void await_resume() { await_outcome().value(); }
  Outcome<void> await_outcome();
};

// Makes the awaiter of Next() or Close() where it is awaited, so that it need not
// move.
template <class Awaiter>
class [[nodiscard]] GeneratorAwaitable {
 public:
  explicit GeneratorAwaitable(GeneratorOwner* owner) : owner_(owner) {}
  Awaiter operator co_await() && { return Awaiter(owner_->promise()); }

 private:
  GeneratorOwner* owner_;
};

}  // namespace internal

// AsyncGenerator
//
// A coroutine that yields values one after the other and may await in between:
//
//   AsyncGenerator<Row> Query(Database& db) {
//     Cursor cursor = co_await db.Open();
//     while (true) {
//       std::optional<Row> row = co_await cursor.Fetch();
//       if (!row) break;
//       co_yield *std::move(row);
//     }
//   }
//
//   auto rows = Query(db);
//   while (std::optional<Row> row = co_await rows.Next()) Use(*row);
//
// It runs only during Next(), in place, in the task that awaits it.
//
// One that is dropped before its end is destroyed where it stands, with its
// locals, at once; what it refers to may go after that. Cleanup that awaits needs
// `Close()`, which throws a GeneratorExit at the `co_yield`; what still lives when
// the loop ends is closed by `Run()`.
//
// Threads: belongs to the loop's thread.
// Python: an asynchronous generator, Next() is anext() and Close() is aclose().
// One that is dropped is not closed in a task of its own, since what it refers to
// would be gone by then.
template <class T>
class [[nodiscard]] AsyncGenerator {
  static_assert(!std::is_reference_v<T> && !std::is_void_v<T>, "a generator yields objects");

 public:
  struct promise_type : internal::GeneratorPromise {
    promise_type() {}
    AsyncGenerator get_return_object(SourceLocation defined_at = SourceLocation::current()) {
      awaiting_at = defined_at;
      return AsyncGenerator(this);
    }

    YieldAwaiter yield_value(T&& yielded) { return Yield(std::addressof(yielded), false); }
    YieldAwaiter yield_value(const T& yielded)
      requires std::is_copy_constructible_v<T>
    {
      return Yield(const_cast<T*>(std::addressof(yielded)), true);
    }

   private:
    YieldAwaiter Yield(T* yielded, bool is_const) {
      value = yielded;
      value_is_const = is_const;
      return YieldAwaiter(this);
    }
  };

  // Awaitable of std::optional<T>: runs it to its next `co_yield`; nothing at its
  // end, and from then on. Throws what it throws, which is its end too.
  // Errors: RuntimeError if another task is in the midst of it.
  internal::GeneratorAwaitable<internal::GeneratorNext<T>> Next() {
    return internal::GeneratorAwaitable<internal::GeneratorNext<T>>(&owner_);
  }

  // Awaitable of void: ends it early. Does nothing if it was not begun or is at
  // its end. Throws what its cleanup throws.
  // Errors: RuntimeError if another task is in the midst of it, or if it yields
  // again.
  internal::GeneratorAwaitable<internal::GeneratorClose> Close() {
    return internal::GeneratorAwaitable<internal::GeneratorClose>(&owner_);
  }

 private:
  explicit AsyncGenerator(promise_type* promise) : owner_(promise) {}

  internal::GeneratorOwner owner_;
};

// Closes all generators that were begun on `scheduler` and are not at their end,
// at the same time. What their cleanup throws goes to the exception handler. For
// the end of a run.
//
// Python: loop.shutdown_asyncgens().
Coro<> CloseAsyncGenerators(Scheduler& scheduler);

}  // namespace weft

#endif  // WEFT_CORE_ASYNC_GENERATOR_H_
