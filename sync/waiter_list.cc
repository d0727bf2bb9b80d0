// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/waiter_list.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft::internal {

std::string WaitersSuffix(size_t count) {
  return count == 0 ? std::string() : absl::StrCat(", waiters:", count);
}

std::string ListWait::Description() const { return absl::StrCat("<", what_, ">"); }

void ThrowOtherLoop() { throw RuntimeError("tasks of a different event loop wait here"); }

}  // namespace weft::internal
