// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket_awaiter.h"

#include "weft/core/errors.h"

namespace weft::internal {

bool SocketOperation::CheckUsable(TaskState* task) {
  task_ = task;
  if (ABSL_PREDICT_FALSE(!socket_ || !socket_->is_open())) {
    result = -EBADF;
    return false;
  }
  if (ABSL_PREDICT_FALSE(socket_->core() != task->scheduler())) {
    is_misused_ = true;
    return false;
  }
  return true;
}

bool SocketOperation::SpendBudget() {
  int& budget = task_->scheduler()->inline_budget;
  if (budget <= 0) return false;
  --budget;
  return true;
}

bool SocketOperation::StartFor(std::coroutine_handle<> handle) {
  if (poller().Start(this) == StartResult::kPending) {
    Suspend(handle);
    return true;
  }
  if (ABSL_PREDICT_TRUE(SpendBudget())) return false;
  Yield(handle);
  return true;
}

Cancellable::Step SocketOperation::BeginCancel(const std::exception_ptr&) {
  // Over, and in the queue: the task sees when it resumes.
  if (state != State::kPending) {
    is_cancelling_ = true;
    return {nullptr, CancelAnswer::kRefused};
  }
  poller().Cancel(this);
  is_cancelling_ = true;
  if (state == State::kPending) {
    // The request is kept with the task until it is known how this ends.
    return {nullptr, CancelAnswer::kRefused};
  }
  // It ended on the spot. Nobody has to be told by way of the poller's queue.
  Unlink();
  task_->Wake();
  return {nullptr, CancelAnswer::kAccepted};
}

bool SocketOperation::EndedByCancel(bool stays) {
  if (ABSL_PREDICT_TRUE(!is_suspended_)) return false;
  if (is_cancelling_ && result == -ECANCELED) {
    task_->TakeCancellation();
    return true;
  }
  if (stays && result >= 0) return false;
  return task_->TakeCancellation();
}

void SocketOperation::ThrowOtherLoop() {
  throw RuntimeError("the socket belongs to a different event loop");
}

}  // namespace weft::internal
