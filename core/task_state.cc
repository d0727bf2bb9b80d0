// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task_state.h"

#include <algorithm>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/log.h"

namespace weft::internal {

void TaskState::RunFirstStep(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  task.set_run(&RunLaterStep);
  if (ABSL_PREDICT_FALSE((task.flags_ & kMustCancel) != 0)) return task.EndUnstarted();
  RunStep(runnable);
}

void TaskState::RunLaterStep(Runnable* runnable) { RunStep(runnable); }

void TaskState::SuspendUntilDue(std::coroutine_handle<> leaf, int64_t delay) {
  Scheduler* const owner = scheduler()->owner;
  owner->Arm(this, owner->Now() + absl::Nanoseconds(delay));
  leaf_ = leaf;
  set_run(&RunDueSleep);
}

void TaskState::RunDueSleep(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  task.set_run(&RunLaterStep);
  task.Wake();
}

// Whatever comes meanwhile, the await throws, even if the request has been taken back.
void TaskState::RunCancelledSleep(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  task.set_run(&RunLaterStep);
  task.flags_ |= kMustCancel;
  RunLaterStep(runnable);
}

void TaskState::CancelSleep() {
  scheduler()->owner->Disarm(this);
  set_run(&RunCancelledSleep);
  Wake();
}

// What comes after a step is given the runnable, not the task, so that there is but one
// pointer to be kept meanwhile.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline void TaskState::RunStep(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  SchedulerCore* core = task.scheduler();
  core->current_task = &task;
  core->current_context = &task.context_;
  core->inline_budget = Scheduler::kInlineBudget;
  task.waiting_on_ = nullptr;
  do {
    task.progress_ = Progress::kWaits;
    task.leaf_.resume();
  } while (task.progress_ == Progress::kGoesOn);
  core->current_task = nullptr;
  core->current_context = &core->no_context;
  if (task.progress_ == Progress::kEnds) return End(runnable);
  if (ABSL_PREDICT_FALSE((task.flags_ & kMustCancel) != 0)) CancelWait(runnable);
}

// The task was asked to end while it ran, and waits now.
void TaskState::CancelWait(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  if (task.is_asleep()) {
    task.flags_ &= ~kMustCancel;
    return task.CancelSleep();
  }
  if (task.waiting_on_ == nullptr) return;  // It is queued, and will see for itself.
  task.flags_ = (task.flags_ & ~kMustCancel) | kBeingAsked;
  const std::exception_ptr error = task.cancel_error_;
  task.ContinueCancel(1, RequestCancel(task.waiting_on_, error));
}

// Of a task that was asked to end before its first step.
void TaskState::EndUnstarted() {
  SchedulerCore* core = scheduler();
  ended_at_ = leaf_promise().awaiting_at;
  core->current_context = &context_;
  {
    NeverAwaitedIsFine silence;  // Its arguments may be coroutines.
    std::exchange(leaf_, nullptr).destroy();
  }
  core->current_context = &core->no_context;
  End(this);
}

// The frame has gone, and with it what it held: so what its end does (a parameter's
// destructor that releases a lock) comes before those who wait for this task.
void TaskState::End(Runnable* runnable) {
  auto& task = static_cast<TaskState&>(*runnable);
  task.TaskLink::Unlink();
  if (ABSL_PREDICT_TRUE(task.outcome_base().has_value() && (task.flags_ & kWasAsked) == 0)) {
    task.Finish(/*has_error=*/false);
  } else {
    task.EndOtherwise();
  }
  task.Release();
}

// Of a task that has not just returned: it has thrown, or was asked to end.
void TaskState::EndOtherwise() {
  const OutcomeBase& outcome = outcome_base();
  if (outcome.cancelled()) {
    std::exception_ptr error = this->error();
    ResetOutcome();
    return FinishCancelled(std::move(error));
  }
  if (outcome.has_exception()) {
    // It is the task's, and leaves the run all the same.
    if (ABSL_PREDICT_FALSE(IsKeyboardInterrupt(error()))) scheduler()->owner->Interrupt();
    return Finish(/*has_error=*/true);
  }
  if ((flags_ & kMustCancel) != 0) {
    flags_ &= ~kMustCancel;
    ResetOutcome();
    return FinishCancelled(nullptr);
  }
  Finish(/*has_error=*/false);
  if (scheduler()->debug && cancels_ > 0) {
    Log(LogSeverity::kWarning,
        absl::StrCat("a task was cancelled, swallowed that and returned: ", Repr(),
                     "\n  its last await: ", weft::ToString(ended_at_)));
  }
}

Cancellable::Step TaskState::BeginCancel(const std::exception_ptr& error) {
  if (done() || leaf_ == nullptr) return {nullptr, CancelAnswer::kRefused};
  ++cancels_;
  flags_ |= kWasAsked;
  const bool was_cancelled =
      waiting_on_ != nullptr ? waiting_on_->WasCancelled() : run_fn() == &RunCancelledSleep;
  if (!was_cancelled) cancel_error_ = error;
  if ((flags_ & kBeingAsked) != 0) return {nullptr, CancelAnswer::kRing};
  if (waiting_on_ == nullptr) {
    if (is_asleep()) {
      CancelSleep();
    } else {
      flags_ |= kMustCancel;
    }
    return {nullptr, CancelAnswer::kAccepted};
  }
  flags_ |= kBeingAsked;
  return {waiting_on_, CancelAnswer::kAccepted};
}

Cancellable::Step TaskState::ContinueCancel(size_t, CancelAnswer answers) {
  flags_ &= ~kBeingAsked;
  if (answers == CancelAnswer::kAccepted) return {nullptr, answers};
  flags_ |= kMustCancel;
  if (answers == CancelAnswer::kRing) {
    // Nobody else will ever wake this task, so the ring ends here.
    Runnable::Unlink();
    Wake();
    waiting_on_ = nullptr;
    ReportLater("tasks that wait for each other in a ring were cancelled");
  }
  return {nullptr, CancelAnswer::kAccepted};
}

int TaskState::Uncancel() {
  if (cancels_ > 0) --cancels_;
  if (cancels_ == 0) flags_ &= ~kMustCancel;
  return cancels_;
}

std::string TaskState::name() const {
  if ((name_ & 1) != 0) return absl::StrCat("Task-", name_ >> 1);
  return *reinterpret_cast<const std::string*>(name_);
}

void TaskState::set_name(std::string name) {
  if ((name_ & 1) == 0) {
    *reinterpret_cast<std::string*>(name_) = std::move(name);
  } else {
    name_ = reinterpret_cast<uintptr_t>(new std::string(std::move(name)));
  }
}

void TaskState::DeleteName() { delete reinterpret_cast<std::string*>(name_); }

namespace {

// The coroutines by which CreateTask() keeps what it was given.
bool IsWrapper(const CoroPromise& promise) {
  const std::string_view function = promise.awaiting_at.function_name();
  return absl::StrContains(function, "weft::internal::CallInCoro") ||
         absl::StrContains(function, "weft::internal::AwaitInCoro");
}

}  // namespace

std::vector<StackFrame> TaskState::GetStack() const {
  std::vector<StackFrame> frames;
  if (leaf_ == nullptr || progress_ == Progress::kEnds) return frames;
  const CoroPromise* promise = &leaf_promise();
  while (true) {
    const bool is_root = promise->awaiter == nullptr;
    if (!is_root || frames.empty() || !IsWrapper(*promise))
      frames.push_back({promise->awaiting_at});
    if (is_root) break;
    promise = promise->awaiter->parent;
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

SourceLocation TaskState::position() const {
  return leaf_ == nullptr ? ended_at_ : leaf_promise().awaiting_at;
}

std::string TaskState::WaitsFor() const {
  if (done() || leaf_ == nullptr || is_running()) return "";
  const FutureState* future = waiting_on_ == nullptr ? nullptr : waiting_on_->AsFuture();
  // Its runnable stands in the list of a future that it waits for; else only in
  // the queue of what is ready.
  if (Runnable::is_linked() && (future == nullptr || future->done())) return "its turn";
  if (is_asleep()) {
    if (deadline() == TimePoint::InfiniteFuture()) return "<Sleep for ever>";
    return absl::StrCat("<Sleep for another ",
                        absl::FormatDuration(deadline() - scheduler()->owner->Now()), ">");
  }
  if (waiting_on_ == nullptr) return "an awaiter of another library";
  return waiting_on_->Description();
}

std::string TaskState::Repr() const {
  const bool is_cancelling = !done() && cancels_ > 0;
  std::string text =
      absl::StrCat("<Task ", is_cancelling ? "cancelling" : StatusText(), " name='", name(), "'");
  const std::vector<StackFrame> stack = GetStack();
  const std::string coroutine = stack.empty() ? FunctionName(ended_at_) : stack.front().function();
  if (!coroutine.empty() && !absl::StartsWith(coroutine, "weft::internal::")) {
    absl::StrAppend(&text, " coro=", coroutine);
  }
  if (!stack.empty() && has_started()) {
    absl::StrAppend(&text, " at ", weft::ToString(stack.back().location));
  } else if (created_at().line() != 0) {
    absl::StrAppend(&text, " created at ", weft::ToString(created_at()));
  }
  return absl::StrCat(text, OutcomeText(), ">");
}

void TaskState::DestroyFrames() {
  if (leaf_ == nullptr) return;
  NeverAwaitedIsFine silence;  // That the task has not ended is reported already.
  if (is_armed()) scheduler()->owner->Disarm(this);
  Runnable::Unlink();
  TaskLink::Unlink();
  ended_at_ = leaf_promise().awaiting_at;
  std::coroutine_handle<> frame = std::exchange(leaf_, nullptr);
  while (frame != nullptr) {
    CoroPromise& promise =
        std::coroutine_handle<CoroPromise>::from_address(frame.address()).promise();
    CoroAwaiterBase* awaiter = promise.awaiter;
    std::coroutine_handle<> parent;
    if (awaiter != nullptr) {
      parent = awaiter->parent->handle();
      awaiter->child = nullptr;
    }
    frame.destroy();
    frame = parent;
  }
  Release();
}

namespace {

void PrintFrames(const TaskState& task, const std::vector<StackFrame>& frames, std::ostream& out) {
  for (const StackFrame& frame : frames) {
    out << "  File \"" << frame.file() << "\", line " << frame.line() << ", in "
        << frame.function();
    if (!task.has_started()) out << ", not started";
    out << "\n";
  }
  if (task.is_running()) out << "  runs, since that await\n";
  const std::string waits_for = task.WaitsFor();
  if (!waits_for.empty()) out << "  waits for " << waits_for << "\n";
}

}  // namespace

void PrintStack(const TaskState& task, std::ostream& out) {
  const std::vector<StackFrame> frames = task.GetStack();
  if (frames.empty()) {
    out << "No stack for " << task.Repr() << "\n";
    return;
  }
  out << "Stack for " << task.Repr() << " (most recent call last):\n";
  PrintFrames(task, frames, out);
}

void DumpTask(const TaskState& task, std::ostream& out) {
  out << task.Repr() << "\n";
  PrintFrames(task, task.GetStack(), out);
  if (task.created_at().line() != 0) {
    out << "  created at " << weft::ToString(task.created_at()) << "\n";
  }
}

}  // namespace weft::internal
