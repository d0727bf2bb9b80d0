// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Where nobody has tried it yet.

#include "weft/loop/stack_sampler.h"

namespace weft::internal {

uint64_t StackSampler::CurrentThread() { return 0; }

absl::Status StackSampler::Prepare(int) {
  return absl::UnimplementedError("stacks of other threads are not taken on this platform");
}

absl::StatusOr<std::string> StackSampler::Take(uint64_t, int, absl::Duration) {
  return absl::UnimplementedError("stacks of other threads are not taken on this platform");
}

}  // namespace weft::internal
