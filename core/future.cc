// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/future.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft::internal {

void ThrowCannotAwait(TaskState* task, FutureState* state) {
  if (task == state) {
    throw RuntimeError(absl::StrCat("Task cannot await on itself: ", task->Repr()));
  }
  throw RuntimeError(absl::StrCat("Task ", task->Repr(), " got Future ", state->Repr(),
                                  " attached to a different loop"));
}

void ThrowEmptyFuture() {
  throw InvalidStateError(
      "This future is empty: default-constructed, moved from or awaited as an rvalue");
}

void ThrowNotSettable(const FutureState& state, const char* operation) {
  throw RuntimeError(absl::StrCat(state.kind(), " does not support ", operation, " operation"));
}

}  // namespace weft::internal
