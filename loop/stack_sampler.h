// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_STACK_SAMPLER_H_
#define WEFT_LOOP_STACK_SAMPLER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace weft::internal {

// Takes the stack of another thread, which may be stuck in anything that a signal
// can interrupt: in a handler of a signal that is set aside for this.
//
// Threads: any; one stack is taken at a time.
class StackSampler {
 public:
  // Names the calling thread, for Take().
  static uint64_t CurrentThread();

  // Sets a handler for `signal`, which stays for the rest of the process's life: a
  // signal may come late. Errors: what sigaction(2) says; UNIMPLEMENTED where weft
  // does not know how.
  static absl::Status Prepare(int signal);

  // The stack of `thread`, the innermost frame first, a line for each.
  // REQUIRES: Prepare(signal). Errors: DEADLINE_EXCEEDED if the thread does not
  // answer within `patience`; NOT_FOUND if it is gone.
  static absl::StatusOr<std::string> Take(uint64_t thread, int signal, absl::Duration patience);
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_STACK_SAMPLER_H_
