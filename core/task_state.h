// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TASK_STATE_H_
#define WEFT_CORE_TASK_STATE_H_

#include <coroutine>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/macros.h"
#include "weft/core/coro_promise.h"
#include "weft/core/future_state.h"
#include "weft/core/timer.h"

namespace weft::internal {

// A task, whatever it returns.
//
// It is a runnable, the only one it has: for its first step, its yields and
// every wait. So a task is in one place at a time, and running it is one step:
// resume the leaf coroutine, and go on with whatever coroutine that called or
// returned to, until something really waits. Calls and returns come back to the
// step loop instead of resuming each other, so the stack stays as it is however
// deep or often coroutines await, with every compiler and at every -O.
//
// The runnable is a timer, by which the task sleeps: most tasks that wait for long do no
// more than that, and then need nothing else.
//
// Ownership: the loop holds a task until it is done. The frames belong to the
// task and go when it is done, the state with its last reference.
class TaskState : public FutureState, public Timer, public TaskLink {
 public:
  // -- For awaiters, in await_suspend and await_resume.

  // The task waits: `leaf` is resumed when the runnable has run, which somebody
  // has queued, put into a list of waiters, or keeps. `waiting_on` is what
  // Cancel() asks; null: nothing, the runnable is in the ready queue or sure to
  // come there.
  void Suspend(std::coroutine_handle<> leaf, Cancellable* waiting_on) {
    leaf_ = leaf;
    waiting_on_ = waiting_on;
  }
  // The same with the runnable in the ready queue, for the next round: a bare yield.
  void SuspendReady(std::coroutine_handle<> leaf) {
    leaf_ = leaf;
    Wake();
  }

  // The same with the runnable armed: when `delay`, in nanoseconds from now, is over it runs,
  // and queues the task. That makes two hops, as in asyncio, where the timer's handle completes
  // a future.
  void SuspendUntilDue(std::coroutine_handle<> leaf, int64_t delay);

  // Queues the runnable, for the next round.
  void Wake() { scheduler()->ready.PushBack(this); }

  // The step goes on with another coroutine.
  void SwitchTo(std::coroutine_handle<> next) {
    leaf_ = next;
    progress_ = Progress::kGoesOn;
  }

  // The root coroutine is at its end, and its frame about to go. `ended_at`: its last await.
  void EndStep(const SourceLocation& ended_at) {
    leaf_ = nullptr;
    ended_at_ = ended_at;
    progress_ = Progress::kEnds;
  }

  // If a cancellation is to be delivered here, takes it: the await ends with
  // `cancelled_error()`. To be asked whenever the task had been suspended.
  bool TakeCancellation() {
    if (ABSL_PREDICT_TRUE((flags_ & kMustCancel) == 0)) return false;
    flags_ &= ~kMustCancel;
    return true;
  }
  void ThrowIfCancelled() {
    if (ABSL_PREDICT_FALSE(TakeCancellation())) std::rethrow_exception(cancelled_error());
  }
  // What was received cannot be given back: leaves the cancellation for later.
  bool has_pending_cancellation() const { return (flags_ & kMustCancel) != 0; }

  // -- For those who hold the task.

  using FutureState::Cancel;
  int cancelling() const { return cancels_; }
  int Uncancel();

  std::string name() const;
  void set_name(std::string name);
  // The number of a task without a name; 0 of one that has one, and its name.
  uint64_t number() const { return (name_ & 1) != 0 ? name_ >> 1 : 0; }
  std::string_view given_name() const {
    if ((name_ & 1) != 0) return std::string_view();
    return *reinterpret_cast<const std::string*>(name_);
  }

  // From the root to the leaf.
  std::vector<StackFrame> GetStack() const;
  // Where the innermost coroutine awaits, or last did; line 0 once it is done.
  SourceLocation position() const;
  // What the task waits for, in one line: "<Lock [locked, waiters:1]>"; "its turn"
  // if it is queued. Empty while it runs and once it is done.
  std::string WaitsFor() const;
  bool is_running() const { return scheduler()->current_task == this; }
  bool has_started() const { return run_fn() != &RunFirstStep; }

  std::string_view kind() const override { return "Task"; }
  std::string Repr() const override;
  bool is_settable() const override { return false; }

  ContextRef& context() { return context_; }

  // Takes over `root`, a coroutine that was not started, queues the first step and
  // makes the loop hold the task. Returns a reference, for the caller to adopt. The
  // context is the caller's to set.
  TaskState* Start(CoroPromise& root) {
    SchedulerCore* const core = scheduler();
    leaf_ = root.handle();
    root.task = this;
    root.outcome = &outcome_base();
    core->tasks.PushBack(this);
    core->ready.PushBack(this);
    return this;
  }

  Step BeginCancel(const std::exception_ptr& error) override;
  Step ContinueCancel(size_t count, CancelAnswer answers) override;

  // Destroys the frames of a task that will not be resumed any more, the leaf
  // first. The task stays pending. For Close().
  void DestroyFrames();

  // The task that `runnable` is, or null if it is something else.
  static TaskState* FromRunnable(Runnable* runnable) {
    const bool is_task = runnable->run_fn() == &RunLaterStep ||
                         runnable->run_fn() == &RunFirstStep ||
                         runnable->run_fn() == &RunCancelledSleep;
    return is_task ? static_cast<TaskState*>(runnable) : nullptr;
  }

  // The task in a loop's list.
  static TaskState* FromLink(TaskLink* link) { return static_cast<TaskState*>(link); }

 protected:
  // Whether its destructor would find nothing to do, if the outcome has nothing either: it
  // has returned, and there was nothing unusual about it. REQUIRES: nobody refers to it but
  // callbacks.
  bool HasNothingToDestroy() const {
    ABSL_ASSERT(!done() || (!TaskLink::is_linked() && !Runnable::is_linked()));
    constexpr uint8_t kUnusual = kUnretrieved | kHasError | kUnreferenced | kWasAsked;
    return status() == Status::kFinished && (flags_ & kUnusual) == 0 && refs() == 0 &&
           (name_ & 1) != 0 && !context_ && !scheduler()->closed;
  }

  // `outcome` is where the Outcome<T> of the task will be, which the task's own class
  // makes. To be started at once.
  TaskState(SchedulerCore* scheduler, OutcomeBase* outcome, const SourceLocation& created_at)
      : FutureState(scheduler, outcome, /*refs=*/2, created_at),
        Timer(&RunFirstStep),
        name_(++scheduler->tasks_created << 1 | 1) {}
  ~TaskState() override {
    if (ABSL_PREDICT_FALSE((name_ & 1) == 0)) DeleteName();
  }

 private:
  static constexpr uint8_t kMustCancel = kKindFlag1;
  static constexpr uint8_t kBeingAsked = kKindFlag2;  // In a walk of RequestCancel().
  static constexpr uint8_t kWasAsked = kKindFlag3;    // Ever. Implied by kMustCancel.

  static void RunFirstStep(Runnable* runnable);
  static void RunLaterStep(Runnable* runnable);

  // What the runnable does while the task sleeps, and what it does when that was cancelled.
  static void RunDueSleep(Runnable* runnable);
  static void RunCancelledSleep(Runnable* runnable);
  bool is_asleep() const { return run_fn() == &RunDueSleep; }
  void CancelSleep();

  static void RunStep(Runnable* runnable);
  void EndUnstarted();
  static void End(Runnable* runnable);
  static void CancelWait(Runnable* runnable);
  CoroPromise& leaf_promise() const {
    return std::coroutine_handle<CoroPromise>::from_address(leaf_.address()).promise();
  }

  void EndOtherwise();
  void DeleteName();
  // Empties it.
  virtual void ResetOutcome() = 0;

  std::coroutine_handle<> leaf_;
  union {
    Cancellable* waiting_on_ = nullptr;
    SourceLocation ended_at_;  // Once it is done: the last await of the root.
  };
  ContextRef context_;
  // Odd: twice the number of a task without a name, plus one. Even: a string
  // of its own.
  uintptr_t name_;
};

// "Stack for <Task ...> (most recent call last):", a line for each frame, and what
// it waits for.
void PrintStack(const TaskState& task, std::ostream& out);

// All that is known of a task, in a few lines.
void DumpTask(const TaskState& task, std::ostream& out);

}  // namespace weft::internal

#endif  // WEFT_CORE_TASK_STATE_H_
