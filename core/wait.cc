// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/wait.h"

#include <cstddef>
#include <memory>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/scheduler.h"

namespace weft::internal {

void MultiWait::Reserve(size_t count) {
  if (count == 0) throw ValueError("Set of Tasks/Futures is empty.");
  entries_ = std::make_unique<Entry[]>(count);
}

void MultiWait::Add(TaskState* task, FutureState* state) {
  if (state->scheduler() != task->scheduler()) ThrowCannotAwait(task, state);
  Entry& entry = entries_[count_++];
  entry.owner = this;
  entry.state = state;
}

void MultiWait::Start() {
  SchedulerCore* core = task()->scheduler();
  if (timeout_ < absl::InfiniteDuration()) core->owner->Arm(this, core->owner->Now() + timeout_);
  for (size_t i = 0; i < count_; ++i) {
    Entry& entry = entries_[i];
    if (!entry.state->Mark()) {
      entry.state = nullptr;
      continue;
    }
    ++missing_;
    // What is done already counts a round later all the same.
    (entry.state->done() ? core->ready : entry.state->waiters()).PushBack(&entry);
  }
  for (size_t i = 0; i < count_; ++i) {
    if (entries_[i].state != nullptr) entries_[i].state->Unmark();
  }
}

void MultiWait::OnDone(Runnable* runnable) {
  const auto* entry = static_cast<Entry*>(runnable);
  MultiWait* wait = entry->owner;
  FutureState* state = entry->state;
  bool decides = --wait->missing_ == 0 || wait->return_when_ == kFirstCompleted;
  if (wait->return_when_ == kFirstException && state->has_error()) {
    state->MarkRetrieved();
    decides = true;
  }
  if (!decides) return;
  wait->StopTimer();
  wait->Wake();
}

void MultiWait::OnTimeout(Runnable* runnable) { static_cast<MultiWait*>(runnable)->Wake(); }

std::string MultiWait::Description() const {
  DescribedList futures;
  size_t total = 0;
  for (size_t i = 0; i < count_; ++i) {
    if (entries_[i].state == nullptr) continue;
    ++total;
    futures.Add(*entries_[i].state);
  }
  return absl::StrCat("<Wait ", total - missing_, " of ", total, " done>", futures.text());
}

void MultiWait::StopTimer() {
  if (is_armed()) {
    task()->scheduler()->owner->Disarm(this);
  } else {
    Unlink();
  }
}

void MultiWait::Cleanup() {
  StopTimer();
  for (size_t i = 0; i < count_; ++i) entries_[i].Unlink();
}

}  // namespace weft::internal
