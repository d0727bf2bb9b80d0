// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TASK_GROUP_H_
#define WEFT_CORE_TASK_GROUP_H_

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "weft/core/closure.h"
#include "weft/core/coro.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"
#include "weft/core/runnable.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"
#include "weft/core/task_state.h"
#include "weft/core/waiter.h"

namespace weft {

class TaskGroup;

namespace internal {

// A child's place in its group's list.
struct TaskGroupLink : ListNode {};

// A child that the group has not seen end yet, and the group's callback, which
// is the first in the list of those who wait for the child.
struct TaskGroupChild : TaskGroupLink, Runnable, PooledObject {
  TaskGroupChild(TaskGroup* owner, TaskState* state)
      : Runnable(&OnDone), group(owner), task(state) {}

  static void OnDone(Runnable* runnable);

  TaskGroup* group;
  IntrusivePtr<TaskState> task;
};

// Waits until a group has no child left, or is cancelled: returns the
// cancellation, or null.
class [[nodiscard]] TaskGroupAwaiter {
 public:
  explicit TaskGroupAwaiter(Wait* wait) : wait_(wait) {}

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    wait_->Begin(handle);
  }
  std::exception_ptr await_resume() {
    return wait_->End() ? wait_->task()->cancelled_error() : nullptr;
  }
  Outcome<std::exception_ptr> await_outcome() {
    Outcome<std::exception_ptr> outcome;
    outcome.Emplace(await_resume());
    return outcome;
  }

 private:
  Wait* wait_;
};

template <class T, class F>
Coro<T> RunTaskGroup(InPlaceClosure<F> body);

}  // namespace internal

// TaskGroup
//
// Tasks that belong together: what the body of a `WithTaskGroup()` starts them
// in. If one fails, the others and the body are cancelled.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.TaskGroup.
class TaskGroup : public internal::TaskStarter<TaskGroup> {
 public:
  TaskGroup(const TaskGroup&) = delete;

  // CreateTask() starts a task in the group: as weft::CreateTask().
  //
  // Errors: RuntimeError once the group is shutting down, because a child or the
  // body failed, or finished; the coroutine is destroyed then.
  using internal::TaskStarter<TaskGroup>::CreateTask;

  // Waits until no child is left: the wait of the group's end, made early, while
  // the body's locals still live. Whatever cancels it, it ends only then; and if
  // it was cancelled, or a child failed, with a CancelledError, which the end of
  // the group passes on or turns into the group's error.
  //
  // Errors: RuntimeError if it is awaited by another task than the group's own.
  Coro<> Join();

  // "<TaskGroup tasks=2 entered>"
  std::string ToString() const;

 private:
  template <class T, class F>
  friend Coro<T> internal::RunTaskGroup(internal::InPlaceClosure<F> body);
  friend struct internal::TaskGroupChild;

  explicit TaskGroup(internal::TaskState* parent) : parent_(parent) {}
  ~TaskGroup();

  friend class internal::TaskStarter<TaskGroup>;

  template <class T>
  Task<T> StartCoro(Coro<T>&& coro, SourceLocation location) {
    if (ABSL_PREDICT_FALSE(!IsOpen())) {
      coro.Close();
      ThrowNotOpen();
    }
    Task<T> task = internal::StartTask(*parent_->scheduler()->owner, std::move(coro), location);
    Add(task.task_state());
    return task;
  }
  bool IsOpen() const { return !aborting_ && !(exiting_ && children_.empty()); }
  [[noreturn]] void ThrowNotOpen() const;
  void Add(internal::TaskState* task);

  // Cancels the children, in the order in which they were started.
  void Abort();
  void OnChildDone(internal::TaskGroupChild* child);

  // The end of the group, in three steps: the body has ended, with `error` or
  // null; while there are children, the wait for them was cancelled (or not, if
  // null); there are none.
  void BeginExit(const std::exception_ptr& error, bool is_cancellation);
  bool has_children() const { return !children_.empty(); }
  internal::TaskGroupAwaiter ChildrenDone() { return internal::TaskGroupAwaiter(&completed_); }
  void OnWaitOver(std::exception_ptr cancellation);
  void EndExit();

  internal::TaskState* parent_;
  bool exiting_ = false;
  bool aborting_ = false;
  bool parent_cancel_requested_ = false;
  size_t child_count_ = 0;
  List<internal::TaskGroupLink> children_;
  // The wait for the last child to end.
  class ChildrenWait final : public internal::Wait {
   public:
    explicit ChildrenWait(TaskGroup* group) : group_(group) {}
    std::string Description() const override;

   private:
    TaskGroup* group_;
  } completed_{this};
  std::vector<std::exception_ptr> errors_;
  std::exception_ptr base_error_;    // A KeyboardInterrupt: goes on as it is.
  std::exception_ptr body_error_;    // No cancellation.
  std::exception_ptr cancellation_;  // From outside, to be passed on.
};

namespace internal {

// A coroutine that does nothing but throw.
template <class T>
Coro<T> ThrowInCoro(std::exception_ptr error) {
  std::rethrow_exception(error);
  co_await ThrowInCoro<T>(nullptr);
}

template <class T, class F>
Coro<T> CallBody(F& body, TaskGroup& group) {
  try {
    return body(group);
  } catch (...) {
    return ThrowInCoro<T>(std::current_exception());
  }
}

template <class T, class F>
Coro<T> RunTaskGroup(InPlaceClosure<F> body) {
  TaskGroup group(CurrentTask().task_state());
  Outcome<T> outcome = co_await NoThrow(CallBody<T>(body.get(), group));
  group.BeginExit(outcome.exception(), outcome.cancelled());
  while (group.has_children()) {
    std::exception_ptr cancellation = co_await group.ChildrenDone();
    group.OnWaitOver(std::move(cancellation));
  }
  group.EndExit();
  co_return std::move(outcome).value();
}

template <class F>
concept TaskGroupBody = std::invocable<ClosureType<F>&, TaskGroup&>;

}  // namespace internal

// Runs `body(TaskGroup&)`, a function that returns a Coro, in place, and waits
// for all tasks that it and they have started in the group; returns what the
// body returned.
//
//   co_await WithTaskGroup([&](TaskGroup& group) -> Coro<> {
//     group.CreateTask(Fetch(a));
//     group.CreateTask(Fetch(b));
//     co_return;
//   });
//
// If a child or the body fails, the children that run, and the body, are
// cancelled, and when all have ended an ExceptionGroup of all failures is thrown,
// in their order. If the task is cancelled, so are the children, and when they
// have ended the cancellation goes on. A child that is cancelled on its own is
// no failure.
//
// The body's locals die before the group waits, also when the body throws:
// children may refer only to what is outside of the body, or the body awaits
// `group.Join()` first. A closure is used where it is, or, if it is a temporary,
// kept until the end.
//
// Python: `async with asyncio.TaskGroup()`.
template <internal::TaskGroupBody F>
auto WithTaskGroup(F&& body) {
  WEFT_CHECK_CLOSURE(F);
  using Called = std::invoke_result_t<internal::ClosureType<F>&, TaskGroup&>;
  static_assert(internal::IsCoro<Called>::value, "the body must return a Coro");
  return internal::RunTaskGroup<typename internal::IsCoro<Called>::ValueType>(
      internal::InPlaceClosure<F>(std::forward<F>(body)));
}

}  // namespace weft

#endif  // WEFT_CORE_TASK_GROUP_H_
