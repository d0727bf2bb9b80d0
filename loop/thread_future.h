// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_THREAD_FUTURE_H_
#define WEFT_LOOP_THREAD_FUTURE_H_

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/outcome.h"
#include "weft/core/task.h"
#include "weft/core/time_point.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/loop_owned.h"
#include "weft/loop/loop_ref.h"

namespace weft {
namespace internal {

template <class T>
class TaskForThread;

// What a ThreadFuture and the loop share.
template <class T>
class ThreadFutureState {
 public:
  explicit ThreadFutureState(LoopRef loop) : loop_(std::move(loop)) {}

  // Ends it as `fill(Outcome<T>&)` says, in place, or with what that throws: a
  // result is moved where an error can still be told to those who wait. Once, and
  // by the one who has it to complete; from any thread.
  template <class Fill>
  void Complete(Fill fill) {
    try {
      fill(outcome_);
    } catch (...) {
      outcome_.SetCurrentException();
    }
    std::vector<absl::AnyInvocable<void()>> callbacks;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_done_ = true;
      callbacks.swap(callbacks_);
    }
    done_.notify_all();
    for (auto& callback : callbacks) callback();
  }
  // The loop was closed first.
  void CompleteClosed() {
    Complete([](Outcome<T>& outcome) {
      outcome.SetCancelled(std::make_exception_ptr(CancelledError("Event loop is closed")));
    });
  }

  bool Done() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return is_done_;
  }

  bool WaitUntilDone(absl::Duration timeout) const {
    const TimePoint deadline = SteadyClock::Read() + timeout;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!is_done_) {
      const absl::Duration left = deadline - SteadyClock::Read();
      if (left <= absl::ZeroDuration()) return false;
      // Not all at once: what the library adds to its clock's reading overflows.
      done_.wait_for(lock, absl::ToChronoNanoseconds(std::min(left, absl::Hours(24))));
    }
    return true;
  }

  // REQUIRES: done. It does not change any more.
  const Outcome<T>& outcome() const { return outcome_; }
  Outcome<T>& outcome() { return outcome_; }

  // Calls `callback` when it is done, on the thread that completes it; here and
  // now if it is.
  void OnDone(absl::AnyInvocable<void()> callback) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!is_done_) {
        callbacks_.push_back(std::move(callback));
        return;
      }
    }
    callback();
  }

  const LoopRef& loop() const { return loop_; }

  // The loop's half, for its thread alone: null before it began and once it ended.
  TaskForThread<T>* on_loop = nullptr;
  // For the loop's thread as well: it was cancelled before it began.
  bool is_cancel_requested = false;

 private:
  const LoopRef loop_;
  mutable std::mutex mutex_;
  mutable std::condition_variable done_;
  bool is_done_ = false;
  Outcome<T> outcome_;
  std::vector<absl::AnyInvocable<void()>> callbacks_;
};

// The task behind a ThreadFuture.
template <class T>
class TaskForThread final : public LoopOwned {
 public:
  TaskForThread(std::shared_ptr<ThreadFutureState<T>> shared, Task<T> task)
      : shared_(std::move(shared)), task_(std::move(task)) {
    shared_->on_loop = this;
  }
  // By Close(), if the task is not done: nobody waits for ever.
  ~TaskForThread() override {
    shared_->on_loop = nullptr;
    if (!is_done_) shared_->CompleteClosed();
  }

  // Behind the first step of the task, which is queued before this can be called:
  // as in CPython, the coroutine begins in any case.
  void Cancel() {
    if (task_.task_state()->has_started()) {
      task_.Cancel();
      return;
    }
    GetRunningLoop().CallSoon([shared = shared_] {
      if (shared->on_loop != nullptr) shared->on_loop->Cancel();
    });
  }

  void OnTaskDone() {
    is_done_ = true;
    shared_->Complete([this](Outcome<T>& outcome) {
      if constexpr (std::is_void_v<T>) {
        task_.TakeResult();
        outcome.Emplace();
      } else {
        outcome.Emplace(task_.TakeResult());
      }
    });
    LoopOwnedList::Destroy(this);
  }

 private:
  bool is_done_ = false;
  std::shared_ptr<ThreadFutureState<T>> shared_;
  Task<T> task_;
};

// A coroutine on its way to its loop. If it never gets there, because the loop
// is closed first, whoever waits for it is told.
template <class T>
class PostedCoro {
 public:
  PostedCoro(std::shared_ptr<ThreadFutureState<T>> state, Coro<T> coro)
      : state_(std::move(state)), coro_(std::move(coro)) {}
  PostedCoro(PostedCoro&& other) noexcept = default;
  ~PostedCoro() {
    if (state_ != nullptr) state_->CompleteClosed();
  }

  void operator()() {
    EventLoop& loop = GetRunningLoop();
    Task<T> task = loop.CreateTask(std::move(coro_));
    const bool is_cancel_requested = state_->is_cancel_requested;
    auto* on_loop =
        loop.owned().Add(std::make_unique<TaskForThread<T>>(std::exchange(state_, nullptr), task));
    task.AddDoneCallback([on_loop](const Future<T>&) { on_loop->OnTaskDone(); });
    if (is_cancel_requested) on_loop->Cancel();
  }

 private:
  std::shared_ptr<ThreadFutureState<T>> state_;  // Null once it is a task.
  Coro<T> coro_;
};

}  // namespace internal

// ThreadFuture
//
// What a coroutine on a loop will give, for another thread: a counted reference.
//
//   ThreadFuture<int> answer = RunCoroutineThreadsafe(Ask(), ref);
//   int n = answer.Result(absl::Seconds(5));
//
// Threads: any.
// Python: concurrent.futures.Future, as run_coroutine_threadsafe() returns it.
template <class T>
class ThreadFuture {
 public:
  ThreadFuture() = default;
  explicit ThreadFuture(std::shared_ptr<internal::ThreadFutureState<T>> state)
      : state_(std::move(state)) {}

  bool Done() const { return state_->Done(); }
  bool Cancelled() const { return Done() && state_->outcome().cancelled(); }

  // Blocks until there is a result, for at most `timeout`, and gives it or throws
  // what the coroutine threw. Not to be called on the loop's thread: it would
  // wait for itself.
  // Errors: TimeoutError; CancelledError, also if the loop was closed first.
  typename internal::Shown<T>::Type Result(
      absl::Duration timeout = absl::InfiniteDuration()) const {
    if (state_->loop() && state_->loop().IsRunningHere() && !Done()) {
      throw RuntimeError("ThreadFuture::Result() would block the loop that it waits for");
    }
    if (!state_->WaitUntilDone(timeout)) throw TimeoutError();
    return std::as_const(*state_).outcome().value();
  }

  // Asks the task to end; the future is cancelled when it has. A coroutine that has
  // not begun does so, and is cancelled where it first waits. False if it is done
  // already.
  bool Cancel() {
    if (Done()) return false;
    try {
      state_->loop().Post([state = state_] {
        // On the loop's own thread this runs before what lies in the inbox.
        state->is_cancel_requested = true;
        if (state->on_loop != nullptr) state->on_loop->Cancel();
      });
    } catch (const RuntimeError&) {
      return false;  // Closed, which has ended it.
    }
    return true;
  }

  const std::shared_ptr<internal::ThreadFutureState<T>>& state() const { return state_; }

 private:
  std::shared_ptr<internal::ThreadFutureState<T>> state_;
};

// Runs a coroutine on a loop, from another thread.
// Errors: RuntimeError "Event loop is closed"; the coroutine is destroyed then.
// Python: asyncio.run_coroutine_threadsafe().
template <class T>
ThreadFuture<T> RunCoroutineThreadsafe(Coro<T> coro, LoopRef loop) {
  auto state = std::make_shared<internal::ThreadFutureState<T>>(loop);
  loop.Post(internal::PostedCoro<T>(state, std::move(coro)));
  return ThreadFuture<T>(std::move(state));
}

// The same result as a future of the running loop; one that cannot be copied is
// moved there, and the ThreadFuture has it no more. Cancelling the one cancels the
// other.
// Errors: RuntimeError "no running event loop".
// Python: asyncio.wrap_future().
template <class T>
Future<T> WrapFuture(ThreadFuture<T> thread_future) {
  EventLoop& loop = GetRunningLoop();
  Future<T> future = loop.CreateFuture<T>();
  auto* on_loop = loop.owned().Add(std::make_unique<internal::JobOnLoop<T>>(&loop, future));
  future.AddDoneCallback([thread_future](const Future<T>& done) mutable {
    if (done.Cancelled()) thread_future.Cancel();
  });
  thread_future.state()->OnDone([state = thread_future.state(), ref = loop.Ref(), on_loop] {
    try {
      ref.Post([state, on_loop] {
        if constexpr (std::is_copy_constructible_v<Outcome<T>>) {
          on_loop->Complete(std::as_const(*state).outcome());
        } else {
          on_loop->Complete(std::move(state->outcome()));
        }
      });
    } catch (const RuntimeError&) {
      // Closed: the future's loop is gone.
    }
  });
  return future;
}

}  // namespace weft

#endif  // WEFT_LOOP_THREAD_FUTURE_H_
