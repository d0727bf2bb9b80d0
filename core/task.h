// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TASK_H_
#define WEFT_CORE_TASK_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/core/closure.h"
#include "weft/core/coro.h"
#include "weft/core/future.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/core/task_state.h"

namespace weft {
namespace internal {

template <class T>
class TaskStateOf final : public TaskState {
 public:
  // Takes over `root`, a coroutine that was not started.
  TaskStateOf(SchedulerCore* scheduler, CoroPromise& root, const SourceLocation& created_at)
      : TaskState(scheduler, created_at) {
    set_outcome_offset(reinterpret_cast<char*>(&outcome_) -
                       reinterpret_cast<char*>(static_cast<FutureState*>(this)));
    Start(root, &outcome_);
  }

  std::exception_ptr error() const override { return outcome_.exception(); }
  std::string value_text() const override { return ValueText(outcome_); }

 private:
  ~TaskStateOf() override = default;

  void ResetOutcome() override { outcome_.Reset(); }
  bool OutcomeIsError() const override { return outcome_.has_exception(); }
  bool OutcomeIsCancellation() const override { return outcome_.cancelled(); }

  Outcome<T> outcome_;
};

template <class A>
Coro<std::remove_cvref_t<AwaitResult<A>>> AwaitInCoro(A awaitable) {
  co_return co_await std::move(awaitable);
}

// Keeps a closure and its arguments for as long as the coroutine that it
// returns runs.
template <class T, class F, class... Args>
Coro<T> CallInCoro(F callable, Args... args) {
  co_return co_await callable(std::move(args)...);
}

// Makes a coroutine of what CreateTask takes first.
template <class A>
auto ToCoro(A&& awaitable) {
  using Decayed = std::remove_cvref_t<A>;
  if constexpr (IsCoro<Decayed>::value) {
    static_assert(!std::is_lvalue_reference_v<A>, "a Coro is moved: std::move() it");
    return Coro<typename IsCoro<Decayed>::ValueType>(std::forward<A>(awaitable));
  } else {
    return AwaitInCoro<Decayed>(std::forward<A>(awaitable));
  }
}

template <class F, class... Args>
auto CallToCoro(F&& callable, Args&&... args) {
  using Closure = ClosureType<F>;
  using Called = std::invoke_result_t<Closure&, std::decay_t<Args>...>;
  static_assert(Awaitable<Called>, "the function must return a Coro or another awaitable");
  using T = std::remove_cvref_t<AwaitResult<Called>>;
  if constexpr (sizeof...(Args) == 0 && IsCoro<Called>::value && std::is_empty_v<Closure>) {
    return callable();  // Without captures and arguments there is nothing to keep.
  } else {
    return CallInCoro<T, Closure, std::decay_t<Args>...>(KeepClosure(std::forward<F>(callable)),
                                                         std::forward<Args>(args)...);
  }
}

}  // namespace internal

// Task
//
// A coroutine that runs beside the others: its first step comes in the round
// after CreateTask(), and it goes on in its own time whether anybody holds or
// awaits it or not. As a Future, it is done when the coroutine has ended.
//
//   Task<int> task = CreateTask(Count("a"));
//   ...
//   int n = co_await std::move(task);
//
// Cancel() is a request: it is counted, and a CancelledError is thrown at the
// await where the task is. The task may clean up, which may await, or catch the
// error and go on; a done task that did not pass it on is not Cancelled().
// What the task awaits is cancelled too: a future for all who await it.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Task; but the loop holds its tasks, so none is lost.
template <class T = void>
class Task : public Future<T> {
 public:
  Task() = default;
  explicit Task(internal::IntrusivePtr<internal::TaskState> state)
      : Future<T>(internal::FutureStateRef(state.get())) {}

  // The name it was given, or "Task-N".
  std::string name() const { return task_state()->name(); }
  void SetName(std::string name) { task_state()->set_name(std::move(name)); }

  // How many times Cancel() was called and not taken back.
  int Cancelling() const { return task_state()->cancelling(); }
  // Takes one request back, and with the last the cancellation itself if it was
  // not delivered yet. Returns how many are left.
  int Uncancel() { return task_state()->Uncancel(); }

  // Where the task waits: its coroutines from the outermost to the innermost,
  // each with the place of its `co_await`. Empty if it is done; in release
  // builds too.
  std::vector<StackFrame> GetStack() const { return task_state()->GetStack(); }
  // The same in words.
  void PrintStack(std::ostream& out) const { internal::PrintStack(*task_state(), out); }

  internal::TaskState* task_state() const {
    return static_cast<internal::TaskState*>(this->state());
  }
};

// TaskRef
//
// A task of whatever type, or none.
//
// Threads: belongs to the loop's thread.
class TaskRef : public FutureRef {
 public:
  TaskRef() = default;
  explicit TaskRef(internal::TaskState* state) : FutureRef(internal::FutureStateRef(state)) {}
  template <class T>
  TaskRef(const Task<T>& task) : TaskRef(task.task_state()) {}  // NOLINT: any task is one.

  // REQUIRES for all below: *this.
  std::string name() const { return task_state()->name(); }
  void SetName(std::string name) { task_state()->set_name(std::move(name)); }
  int Cancelling() const { return task_state()->cancelling(); }
  int Uncancel() { return task_state()->Uncancel(); }
  std::vector<StackFrame> GetStack() const { return task_state()->GetStack(); }
  void PrintStack(std::ostream& out) const { internal::PrintStack(*task_state(), out); }

  internal::TaskState* task_state() const { return static_cast<internal::TaskState*>(state()); }
};

// The task that is running, or none: in a callback, or outside of a loop.
TaskRef CurrentTask();

// The tasks of the running loop that are not done, the caller's too, in the
// order of creation. Errors: RuntimeError "no running event loop".
std::vector<TaskRef> AllTasks();

namespace internal {

std::vector<TaskRef> TasksOf(SchedulerCore& core);

template <class T>
Task<T> StartTask(Scheduler& scheduler, Coro<T> coro, const SourceLocation& location) {
  if (ABSL_PREDICT_FALSE(scheduler.closed())) throw RuntimeError("Event loop is closed");
  if (ABSL_PREDICT_FALSE(!coro)) ThrowCoroReused();
  auto* state = new TaskStateOf<T>(scheduler.core(), *coro.Release(), location);
  return Task<T>(IntrusivePtr<TaskState>(state));
}

}  // namespace internal

// A callable that makes something to await.
template <class F, class... Args>
concept CoroutineFunction =
    !Awaitable<F> && std::invocable<internal::ClosureType<F>&, std::decay_t<Args>...>;

// Starts a task on the running loop: of a coroutine or anything else that can
// be awaited, or of a function and its arguments, which are copied or moved
// into the task (so that a lambda's captures live as long as it runs).
//
// Errors: RuntimeError "no running event loop"; the coroutine is destroyed then.
template <Awaitable A>
auto CreateTask(A&& awaitable, std::string name = "",
                const SourceLocation& location = SourceLocation::current()) {
  auto task = internal::StartTask(Scheduler::CurrentOrThrow(),
                                  internal::ToCoro(std::forward<A>(awaitable)), location);
  if (!name.empty()) task.SetName(std::move(name));
  return task;
}
template <class F, class... Args>
  requires CoroutineFunction<F, Args...>
auto CreateTask(F&& callable, Args&&... args) {
  WEFT_CHECK_CLOSURE(F);
  return internal::StartTask(
      Scheduler::CurrentOrThrow(),
      internal::CallToCoro(std::forward<F>(callable), std::forward<Args>(args)...),
      SourceLocation());
}

}  // namespace weft

#endif  // WEFT_CORE_TASK_H_
