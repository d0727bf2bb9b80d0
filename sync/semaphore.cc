// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/semaphore.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {

Semaphore::Semaphore(int64_t value, int64_t bound) : value_(value), bound_(bound) {
  if (value < 0) throw ValueError("Semaphore initial value must be >= 0");
}

Semaphore::~Semaphore() {
  for (auto* list : {&waiting_, &settled_}) {
    while (internal::SemaphoreAwaiter* waiter = list->PopFront()) waiter->semaphore_ = nullptr;
  }
}

void Semaphore::ThrowReleasedTooOften() {
  throw ValueError("BoundedSemaphore released too many times");
}

std::string Semaphore::ToString() const {
  const bool bounded = bound_ != std::numeric_limits<int64_t>::max();
  const std::string state = Locked() ? "locked" : absl::StrCat("unlocked, value:", value_);
  return absl::StrCat(bounded ? "<BoundedSemaphore [" : "<Semaphore [", state,
                      internal::WaitersSuffix(waiting_.CountSlowly() + woken_), "]>");
}

namespace internal {

void SemaphoreAwaiter::GiveUp() {
  if (!was_woken()) return;
  --semaphore_->woken_;
  ++semaphore_->value_;
}

}  // namespace internal
std::string internal::SemaphoreAwaiter::Description() const {
  return semaphore_ == nullptr ? "<Semaphore destroyed>" : semaphore_->ToString();
}

}  // namespace weft
