// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TASK_H_
#define WEFT_CORE_TASK_H_

#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
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
  static_assert(alignof(Outcome<T>) <= FutureState::kMaxOutcomeAlignment,
                "put it behind a pointer");

 public:
  // Whether it lives in the blocks that AllocateBlock() gives.
  static constexpr bool kIsPooled = alignof(Outcome<T>) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;

  TaskStateOf(SchedulerCore* scheduler, const SourceLocation& created_at)
      : TaskState(scheduler, &outcome_, created_at) {}

  std::exception_ptr error() const override { return outcome_.exception(); }
  std::string value_text() const override { return ValueText(outcome_); }

 private:
  ~TaskStateOf() override = default;

  // Most have nothing to destroy: then the memory is all that is given back, and no
  // destructor runs.
  void OnUnreferenced() override {
    if constexpr (kIsPooled && std::is_trivially_destructible_v<typename Stored<T>::Type>) {
      if (ABSL_PREDICT_TRUE(HasNothingToDestroy())) {
        SchedulerCore* const core = scheduler();
        FreeBlock(this, sizeof(*this));
        return core->Release();
      }
    }
    FutureState::OnUnreferenced();
  }

  void ResetOutcome() override { outcome_.Reset(); }

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

// Makes a coroutine of what CreateTask takes first, if it is none.
template <class A>
decltype(auto) ToCoro(A&& awaitable) {
  using Decayed = std::remove_cvref_t<A>;
  if constexpr (IsCoro<Decayed>::value) {
    static_assert(!std::is_lvalue_reference_v<A>, "a Coro is moved: std::move() it");
    return std::forward<A>(awaitable);
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

template <class T = void>
class Task;

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
  void SetName(std::string name) {
    state()->CheckUse();
    task_state()->set_name(std::move(name));
  }
  int Cancelling() const { return task_state()->cancelling(); }
  int Uncancel() {
    state()->CheckUse();
    return task_state()->Uncancel();
  }
  std::vector<StackFrame> GetStack() const {
    task_state()->scheduler()->CheckThread();
    return task_state()->GetStack();
  }
  std::string WaitsFor() const {
    task_state()->scheduler()->CheckThread();
    return task_state()->WaitsFor();
  }
  void PrintStack(std::ostream& out) const {
    task_state()->scheduler()->CheckThread();
    internal::PrintStack(*task_state(), out);
  }

  internal::TaskState* task_state() const { return static_cast<internal::TaskState*>(state()); }
};

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
template <class T>
class Task : public Future<T> {
 public:
  Task() = default;
  // Of a state that is a task's.
  explicit Task(internal::FutureStateRef state) : Future<T>(std::move(state)) {}

  // The name it was given, or "Task-N".
  std::string name() const { return task_state()->name(); }
  void SetName(std::string name) {
    this->state()->CheckUse();
    task_state()->set_name(std::move(name));
  }

  // How many times Cancel() was called and not taken back.
  int Cancelling() const { return task_state()->cancelling(); }
  // Takes one request back, and with the last the cancellation itself if it was
  // not delivered yet. Returns how many are left.
  int Uncancel() {
    this->state()->CheckUse();
    return task_state()->Uncancel();
  }

  // Where the task waits: its coroutines from the outermost to the innermost,
  // each with the place of its `co_await`. Empty if it is done; in release
  // builds too.
  std::vector<StackFrame> GetStack() const { return TaskRef(*this).GetStack(); }
  // What it waits for, in one line: "<Lock [locked, waiters:1]>", "its turn".
  // Empty while it runs and once it is done.
  std::string WaitsFor() const { return TaskRef(*this).WaitsFor(); }
  // Both in words, as a traceback.
  void PrintStack(std::ostream& out) const { TaskRef(*this).PrintStack(out); }

  internal::TaskState* task_state() const {
    return static_cast<internal::TaskState*>(this->state());
  }
};

// The task that is running, or none: in a callback, or outside of a loop.
TaskRef CurrentTask();

// The tasks of the running loop that are not done, the caller's too, in the
// order of creation. Errors: RuntimeError "no running event loop".
std::vector<TaskRef> AllTasks();

// All that is known of each of them, for people: its state, name and coroutine, its
// stack, what it waits for, and where it was created. Errors: as AllTasks().
void DumpTasks(std::ostream& out);

namespace internal {

std::vector<TaskRef> TasksOf(SchedulerCore& core);
void DumpTasksOf(SchedulerCore& core, std::ostream& out);

// Starts `coro`, and takes it in any case: where this throws, it is destroyed.
template <class T>
ABSL_ATTRIBUTE_NOINLINE Task<T> StartTaskSlowly(Scheduler& scheduler, Coro<T>&& taken,
                                                SourceLocation location) {
  Coro<T> coro = std::move(taken);
  if (scheduler.core()->guarded) scheduler.CheckCall();
  if (!coro) ThrowCoroReused();
  ContextRef context = scheduler.current_context();
  auto* state = new TaskStateOf<T>(scheduler.core(), location);
  state->context() = std::move(context);
  return Task<T>(FutureStateRef::Adopt(state->Start(*coro.Release())));
}

// The same. In the steady state it calls nothing, and so has nothing to save.
template <class T>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline Task<T> StartTask(Scheduler& scheduler, Coro<T>&& coro,
                                                      SourceLocation location) {
  SchedulerCore* const core = scheduler.core();
  if (ABSL_PREDICT_TRUE(TaskStateOf<T>::kIsPooled && !core->guarded && coro &&
                        !core->may_have_context())) {
    if (void* block = TakeFreeBlock(sizeof(TaskStateOf<T>)); ABSL_PREDICT_TRUE(block != nullptr)) {
      auto* state = ::new (block) TaskStateOf<T>(core, location);
      return Task<T>(FutureStateRef::Adopt(state->Start(*coro.Release())));
    }
  }
  return StartTaskSlowly(scheduler, std::move(coro), location);
}

}  // namespace internal

// A callable that makes something to await.
template <class F, class... Args>
concept CoroutineFunction =
    !Awaitable<F> && std::invocable<internal::ClosureType<F>&, std::decay_t<Args>...>;

namespace internal {

// CreateTask() in all its shapes, for what starts tasks: `Derived` has
// StartCoro(coro, location). A parameter behind a pack of arguments cannot have a
// default, so there is one shape for each number of arguments up to three, and one
// without a place of creation for more.
template <class Derived>
class TaskStarter {
 public:
  template <Awaitable A>
  ABSL_ATTRIBUTE_ALWAYS_INLINE auto CreateTask(
      A&& awaitable, SourceLocation location = SourceLocation::current()) {
    return derived().StartCoro(ToCoro(std::forward<A>(awaitable)), location);
  }
  template <Awaitable A>
  auto CreateTask(A&& awaitable, std::string_view name,
                  SourceLocation location = SourceLocation::current()) {
    auto task = CreateTask(std::forward<A>(awaitable), location);
    if (!name.empty()) task.task_state()->set_name(std::string(name));
    return task;
  }

  template <class F>
    requires CoroutineFunction<F>
  auto CreateTask(F&& callable, SourceLocation location = SourceLocation::current()) {
    WEFT_CHECK_CLOSURE(F);
    return derived().StartCoro(CallToCoro(std::forward<F>(callable)), location);
  }
  template <class F, class A>
    requires CoroutineFunction<F, A>
  auto CreateTask(F&& callable, A&& a, SourceLocation location = SourceLocation::current()) {
    WEFT_CHECK_CLOSURE(F);
    return derived().StartCoro(CallToCoro(std::forward<F>(callable), std::forward<A>(a)), location);
  }
  template <class F, class A, class B>
    requires CoroutineFunction<F, A, B>
  auto CreateTask(F&& callable, A&& a, B&& b, SourceLocation location = SourceLocation::current()) {
    WEFT_CHECK_CLOSURE(F);
    return derived().StartCoro(
        CallToCoro(std::forward<F>(callable), std::forward<A>(a), std::forward<B>(b)), location);
  }
  template <class F, class A, class B, class C>
    requires CoroutineFunction<F, A, B, C>
  auto CreateTask(F&& callable, A&& a, B&& b, C&& c,
                  SourceLocation location = SourceLocation::current()) {
    WEFT_CHECK_CLOSURE(F);
    return derived().StartCoro(CallToCoro(std::forward<F>(callable), std::forward<A>(a),
                                          std::forward<B>(b), std::forward<C>(c)),
                               location);
  }
  template <class F, class A, class B, class C, class D, class... More>
    requires CoroutineFunction<F, A, B, C, D, More...>
  auto CreateTask(F&& callable, A&& a, B&& b, C&& c, D&& d, More&&... more) {
    WEFT_CHECK_CLOSURE(F);
    return derived().StartCoro(
        CallToCoro(std::forward<F>(callable), std::forward<A>(a), std::forward<B>(b),
                   std::forward<C>(c), std::forward<D>(d), std::forward<More>(more)...),
        SourceLocation());
  }

 protected:
  TaskStarter() = default;
  ~TaskStarter() = default;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

// On the running loop.
struct RunningTaskStarter : TaskStarter<RunningTaskStarter> {
  // By value: it is destroyed here, as elsewhere.
  template <class T>
  ABSL_ATTRIBUTE_NOINLINE static Task<T> Refuse(Coro<T> coro) {
    return StartTask(Scheduler::CurrentOrThrow(), std::move(coro), SourceLocation());
  }
  template <class T>
  Task<T> StartCoro(Coro<T>&& coro, SourceLocation location) {
    Scheduler* const scheduler = Scheduler::Current();
    if (ABSL_PREDICT_FALSE(scheduler == nullptr)) return Refuse<T>(std::move(coro));
    return StartTask(*scheduler, std::move(coro), location);
  }
};

}  // namespace internal

// Starts a task on the running loop: of a coroutine or anything else that can
// be awaited, or of a function and its arguments, which are copied or moved
// into the task (so that a lambda's captures live as long as it runs).
//
// Errors: RuntimeError "no running event loop"; the coroutine is destroyed then.
template <Awaitable A>
auto CreateTask(A&& awaitable, SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<A>(awaitable), location);
}
template <Awaitable A>
auto CreateTask(A&& awaitable, std::string_view name,
                SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<A>(awaitable), name, location);
}
template <class F>
  requires CoroutineFunction<F>
auto CreateTask(F&& callable, SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<F>(callable), location);
}
template <class F, class A>
  requires CoroutineFunction<F, A>
auto CreateTask(F&& callable, A&& a, SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<F>(callable), std::forward<A>(a),
                                                   location);
}
template <class F, class A, class B>
  requires CoroutineFunction<F, A, B>
auto CreateTask(F&& callable, A&& a, B&& b, SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<F>(callable), std::forward<A>(a),
                                                   std::forward<B>(b), location);
}
template <class F, class A, class B, class C>
  requires CoroutineFunction<F, A, B, C>
auto CreateTask(F&& callable, A&& a, B&& b, C&& c,
                SourceLocation location = SourceLocation::current()) {
  return internal::RunningTaskStarter().CreateTask(std::forward<F>(callable), std::forward<A>(a),
                                                   std::forward<B>(b), std::forward<C>(c),
                                                   location);
}
template <class F, class A, class B, class C, class D, class... More>
  requires CoroutineFunction<F, A, B, C, D, More...>
auto CreateTask(F&& callable, A&& a, B&& b, C&& c, D&& d, More&&... more) {
  return internal::RunningTaskStarter().CreateTask(std::forward<F>(callable), std::forward<A>(a),
                                                   std::forward<B>(b), std::forward<C>(c),
                                                   std::forward<D>(d), std::forward<More>(more)...);
}

}  // namespace weft

#endif  // WEFT_CORE_TASK_H_
