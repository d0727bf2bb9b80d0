// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"

namespace weft::internal {

TaskState::TaskState(SchedulerCore* scheduler, const SourceLocation& created_at)
    : FutureState(scheduler, created_at),
      Runnable(&RunFirstStep),
      name_(++scheduler->tasks_created << 1 | 1) {}

TaskState::~TaskState() {
  if ((name_ & 1) == 0) delete reinterpret_cast<std::string*>(name_);
}

void TaskState::Start(CoroPromise& root, void* outcome) {
  root.task = this;
  root.outcome = outcome;
  leaf_ = root.handle();
  SchedulerCore* core = scheduler();
  const ContextRef* context = core->context();
  if (context != nullptr && *context) context_ = *context;
  AddRef();  // The loop's, until End() or DestroyFrames().
  core->tasks.PushBack(this);
  Wake();
}

void TaskState::RunFirstStep(Runnable* runnable) {
  auto* task = static_cast<TaskState*>(runnable);
  task->set_run(&RunStep);
  if (ABSL_PREDICT_FALSE((task->flags_ & kMustCancel) != 0)) return task->End();
  RunStep(runnable);
}

void TaskState::RunStep(Runnable* runnable) {
  auto* task = static_cast<TaskState*>(runnable);
  SchedulerCore* core = task->scheduler();
  core->current_task = task;
  core->current_context = &task->context_;
  core->inline_budget = Scheduler::kInlineBudget;
  task->waiting_on_ = nullptr;
  do {
    task->progress_ = Progress::kGoesOn;
    task->leaf_.resume();
  } while (task->progress_ == Progress::kGoesOn);
  core->current_task = nullptr;
  core->current_context = nullptr;
  if (task->progress_ == Progress::kEnds) return task->End();
  if (ABSL_PREDICT_FALSE((task->flags_ & kMustCancel) != 0)) task->CancelWait();
}

// The task was asked to end while it ran, and waits now.
void TaskState::CancelWait() {
  if (waiting_on_ == nullptr) return;  // It is queued, and will see for itself.
  flags_ = (flags_ & ~kMustCancel) | kBeingAsked;
  const std::exception_ptr error = cancel_error_;
  ContinueCancel(1, RequestCancel(waiting_on_, error));
}

// The order matters: what the frame's end does (a parameter's destructor that
// releases a lock) comes before those who wait for this task.
void TaskState::End() {
  SchedulerCore* core = scheduler();
  core->current_context = &context_;
  std::exchange(leaf_, nullptr).destroy();
  core->current_context = nullptr;
  TaskLink::Unlink();
  if (OutcomeIsCancellation()) {
    std::exception_ptr error = this->error();
    ResetOutcome();
    FinishCancelled(std::move(error));
  } else if (OutcomeIsError()) {
    // It is the task's, and leaves the run all the same.
    if (ABSL_PREDICT_FALSE(IsKeyboardInterrupt(error()))) core->owner->Interrupt();
    Finish(/*has_error=*/true);
  } else if ((flags_ & kMustCancel) != 0) {
    flags_ &= ~kMustCancel;
    ResetOutcome();
    FinishCancelled(nullptr);
  } else {
    Finish(/*has_error=*/false);
  }
  Release();
}

Cancellable::Step TaskState::BeginCancel(const std::exception_ptr& error) {
  if (done() || leaf_ == nullptr) return {nullptr, CancelAnswer::kRefused};
  ++cancels_;
  if (waiting_on_ == nullptr || !waiting_on_->WasCancelled()) cancel_error_ = error;
  if ((flags_ & kBeingAsked) != 0) return {nullptr, CancelAnswer::kRing};
  if (waiting_on_ == nullptr) {
    flags_ |= kMustCancel;
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

std::vector<StackFrame> TaskState::GetStack() const {
  std::vector<StackFrame> frames;
  if (leaf_ == nullptr || progress_ == Progress::kEnds) return frames;
  CoroPromise* promise =
      &std::coroutine_handle<CoroPromise>::from_address(leaf_.address()).promise();
  while (true) {
    frames.push_back({promise->awaiting_at});
    if (promise->awaiter == nullptr) break;
    promise = promise->awaiter->parent;
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::string TaskState::Repr() const {
  const std::string base = FutureState::Repr();
  std::string state = base.substr(6, base.size() - 7);  // Without "<Task " and ">".
  std::string rest;
  if (const size_t space = state.find(' '); space != std::string::npos) {
    rest = state.substr(space);
    state.resize(space);
  }
  if (!done() && cancels_ > 0) state = "cancelling";
  std::string text = absl::StrCat("<Task ", state, " name='", name(), "'");
  const std::vector<StackFrame> stack = GetStack();
  if (!stack.empty() && stack.back().line() != 0) {
    absl::StrAppend(&text, " at ", ToString(stack.back().location));
  } else if (created_at().line() != 0) {
    absl::StrAppend(&text, " created at ", ToString(created_at()));
  }
  return absl::StrCat(text, rest, ">");
}

void TaskState::DestroyFrames() {
  if (leaf_ == nullptr) return;
  Runnable::Unlink();
  TaskLink::Unlink();
  waiting_on_ = nullptr;
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

void PrintStack(const TaskState& task, std::ostream& out) {
  const std::vector<StackFrame> frames = task.GetStack();
  if (frames.empty()) {
    out << "No stack for " << task.Repr() << "\n";
    return;
  }
  out << "Stack for " << task.Repr() << " (most recent call last):\n";
  for (const StackFrame& frame : frames) {
    if (frame.line() == 0) {
      out << "  not started\n";
      continue;
    }
    out << "  File \"" << frame.file() << "\", line " << frame.line() << ", in "
        << frame.location.function_name() << "\n";
  }
}

}  // namespace weft::internal
