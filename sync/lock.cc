// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/lock.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {

void Lock::ThrowNotAcquired() { throw RuntimeError("Lock is not acquired."); }

std::string Lock::ToString() const {
  return absl::StrCat("<Lock [", locked_ ? "locked" : "unlocked",
                      internal::WaitersSuffix(waiters_.CountSlowly()), "]>");
}

}  // namespace weft
