// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/timeout.h"

#include <exception>
#include <string>
#include <utility>

#include "weft/core/errors.h"
#include "weft/core/scheduler.h"

namespace weft {
namespace internal {

std::exception_ptr MakeTimeoutError(std::exception_ptr cause) {
  return std::make_exception_ptr(TimeoutError(std::move(cause)));
}

}  // namespace internal

void Timeout::Enter(internal::TaskState* task, const internal::TimeLimit& limit) {
  state_ = State::kActive;
  task_ = task;
  cancelling_before_ = task->cancelling();
  const TimePoint now = task->scheduler()->owner->Now();
  when_ = limit.is_delay_ ? now + limit.delay_ : limit.when_;
  StartTimer(now);
}

void Timeout::Reschedule(TimePoint when) {
  switch (state_) {
    case State::kActive:
      break;
    case State::kCreated:
      throw RuntimeError("Timeout has not been entered");
    case State::kExpiring:
      throw RuntimeError("Cannot change state of expiring Timeout");
    case State::kExpired:
      throw RuntimeError("Cannot change state of expired Timeout");
    case State::kFinished:
      throw RuntimeError("Cannot change state of finished Timeout");
  }
  StopTimer();
  when_ = when;
  StartTimer(task_->scheduler()->owner->Now());
}

// What is past does not go through the timers: it is one round sooner.
void Timeout::StartTimer(TimePoint now) {
  if (when_ == TimePoint::InfiniteFuture()) return;
  internal::SchedulerCore* core = task_->scheduler();
  if (when_ > now) {
    core->owner->Arm(this, when_);
  } else {
    core->ready.PushBack(this);
  }
}

void Timeout::StopTimer() {
  if (is_armed()) {
    task_->scheduler()->owner->Disarm(this);
  } else {
    Unlink();
  }
}

void Timeout::OnDue(Runnable* runnable) {
  auto* timeout = static_cast<Timeout*>(runnable);
  timeout->task_->Cancel(std::string());
  timeout->state_ = State::kExpiring;
}

}  // namespace weft
