// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/lock.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {

namespace internal {

Cancellable::Step LockAwaiter::BeginCancel(const std::exception_ptr& error) {
  if (is_waiting() && lock_ != nullptr) --lock_->claims_;
  return Waiter::BeginCancel(error);
}

// The task was cancelled; if the lock is free, it may have been woken for it.
void LockAwaiter::PassOn() {
  if (!lock_->locked_) lock_->WakeFirst();
}

}  // namespace internal

void Lock::ThrowNotAcquired() { throw RuntimeError("Lock is not acquired."); }

std::string Lock::ToString() const {
  return absl::StrCat("<Lock [", locked_ ? "locked" : "unlocked",
                      internal::WaitersSuffix(waiters_.CountSlowly()), "]>");
}

std::string internal::LockAwaiter::Description() const {
  return lock_ == nullptr ? "<Lock destroyed>" : lock_->ToString();
}

}  // namespace weft
