// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/queue.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft::internal {

void QueueState::ThrowTaskDoneTooOften() { throw ValueError("task_done() called too many times"); }
void QueueState::ThrowEmpty() { throw QueueEmpty(); }
void QueueState::ThrowFull() { throw QueueFull(); }
void QueueState::ThrowShutDown() { throw QueueShutDown(); }

std::string QueueState::Text(const char* name, size_t size) const {
  std::string text = absl::StrCat("<", name, " maxsize=", max_size_, " size=", size);
  if (const size_t n = getters_.CountSlowly()) absl::StrAppend(&text, " getters=", n);
  if (const size_t n = putters_.CountSlowly()) absl::StrAppend(&text, " putters=", n);
  if (unfinished_ > 0) absl::StrAppend(&text, " tasks=", unfinished_);
  if (shut_down_) absl::StrAppend(&text, " shutdown");
  return text + ">";
}

}  // namespace weft::internal
