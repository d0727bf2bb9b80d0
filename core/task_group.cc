// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task_group.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {
namespace internal {

void TaskGroupChild::OnDone(Runnable* runnable) {
  auto* child = static_cast<TaskGroupChild*>(runnable);
  child->group->OnChildDone(child);
}

}  // namespace internal

TaskGroup::~TaskGroup() {
  // Only if the frames are destroyed in the midst of it.
  while (internal::TaskGroupLink* child = children_.PopFront()) {
    delete static_cast<internal::TaskGroupChild*>(child);
  }
}

std::string TaskGroup::ToString() const {
  std::string text = "<TaskGroup";
  if (child_count_ > 0) absl::StrAppend(&text, " tasks=", child_count_);
  if (!errors_.empty()) absl::StrAppend(&text, " errors=", errors_.size());
  return absl::StrCat(text, aborting_ ? " cancelling>" : " entered>");
}

void TaskGroup::ThrowNotOpen() const {
  const bool is_finished = exiting_ && children_.empty();
  throw RuntimeError(
      absl::StrCat("TaskGroup ", ToString(), is_finished ? " is finished" : " is shutting down"));
}

std::string TaskGroup::ChildrenWait::Description() const {
  internal::DescribedList children;
  for (internal::TaskGroupLink* link = group_->children_.front(); link != nullptr;
       link = group_->children_.Next(link)) {
    children.Add(*static_cast<internal::TaskGroupChild*>(link)->task);
  }
  return absl::StrCat(group_->ToString(), children.text());
}

void TaskGroup::Add(internal::TaskState* task) {
  auto* child = new internal::TaskGroupChild(this, task);
  task->waiters().PushBack(child);
  children_.PushBack(child);
  ++child_count_;
}

void TaskGroup::Abort() {
  aborting_ = true;
  for (internal::TaskGroupLink* link = children_.front(); link != nullptr;
       link = children_.Next(link)) {
    static_cast<internal::TaskGroupChild*>(link)->task->Cancel(std::string());
  }
}

void TaskGroup::OnChildDone(internal::TaskGroupChild* child) {
  const internal::IntrusivePtr<internal::TaskState> task = std::move(child->task);
  delete child;
  --child_count_;
  if (children_.empty()) completed_.Wake();

  if (!task->has_error()) return;
  task->MarkRetrieved();
  errors_.push_back(task->error());
  if (base_error_ == nullptr && internal::IsKeyboardInterrupt(errors_.back()))
    base_error_ = errors_.back();
  if (aborting_ || parent_cancel_requested_) return;
  // The parent is taken out of whatever it waits for; the end of the group takes
  // the request back.
  Abort();
  parent_cancel_requested_ = true;
  parent_->Cancel(std::string());
}

void TaskGroup::BeginExit(const std::exception_ptr& error, bool is_cancellation) {
  exiting_ = true;
  if (error == nullptr) return;
  if (is_cancellation) {
    cancellation_ = error;
  } else {
    body_error_ = error;
    if (base_error_ == nullptr && internal::IsKeyboardInterrupt(error)) base_error_ = error;
  }
  if (!aborting_) Abort();
}

void TaskGroup::OnWaitOver(std::exception_ptr cancellation) {
  if (cancellation == nullptr || aborting_) return;
  cancellation_ = std::move(cancellation);
  Abort();
}

void TaskGroup::EndExit() {
  if (base_error_ != nullptr) std::rethrow_exception(base_error_);
  // If it was the only one, the body's cancellation was our own.
  if (parent_cancel_requested_ && parent_->Uncancel() == 0) cancellation_ = nullptr;
  if (cancellation_ != nullptr && errors_.empty()) std::rethrow_exception(cancellation_);
  if (body_error_ != nullptr) errors_.push_back(std::move(body_error_));
  if (errors_.empty()) return;
  // A request from outside is not lost behind the errors: it is made again.
  if (parent_->cancelling() > 0) {
    parent_->Uncancel();
    parent_->Cancel(std::string());
  }
  throw ExceptionGroup("unhandled errors in a TaskGroup", std::move(errors_));
}

Coro<> TaskGroup::Join() {
  if (CurrentTask().task_state() != parent_) {
    throw RuntimeError(
        absl::StrCat("TaskGroup ", ToString(), " can be joined only by the task that entered it"));
  }
  std::exception_ptr cancelled_by;
  while (has_children()) {
    std::exception_ptr cancellation = co_await ChildrenDone();
    if (cancellation == nullptr) continue;
    cancelled_by = cancellation;
    if (!aborting_) Abort();
  }
  if (cancelled_by != nullptr) std::rethrow_exception(cancelled_by);
  if (!errors_.empty()) throw CancelledError();
}

}  // namespace weft
