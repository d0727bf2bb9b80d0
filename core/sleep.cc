// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/sleep.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::internal {

SleepTimer::~SleepTimer() {
  // It is, or is queued, if the wait has ended before it was due, or if the frame is
  // destroyed in the midst of it.
  if (is_armed() || is_linked()) scheduler()->Disarm(this);
}

void SleepTimer::Start(TaskState* task, std::coroutine_handle<> handle, absl::Duration delay) {
  Begin(task, handle);
  scheduler()->Arm(this, scheduler()->Now() + delay);
}

std::string SleepTimer::Description() const {
  if (deadline() == TimePoint::InfiniteFuture()) return "<Sleep for ever>";
  return absl::StrCat("<Sleep for another ", absl::FormatDuration(deadline() - scheduler()->Now()),
                      ">");
}

void SleepAwaiter::StartTimer(std::coroutine_handle<> handle) {
  timer_ = new (storage_) SleepTimer;
  timer_->Start(task_, handle, delay_);
}

bool SleepAwaiter::End() {
  if (timer_ == nullptr) return task_->TakeCancellation();
  const bool cancelled = timer_->End();
  std::exchange(timer_, nullptr)->~SleepTimer();
  return cancelled;
}

void SleepAwaiter::EndOrThrow() {
  if (End()) std::rethrow_exception(task_->cancelled_error());
}

}  // namespace weft::internal
