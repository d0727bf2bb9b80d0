// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_EXIT_DESCRIPTOR_POSIX_H_
#define WEFT_PROCESS_EXIT_DESCRIPTOR_POSIX_H_

#include <sys/types.h>

#include <optional>

#include "absl/status/status.h"

namespace weft::internal {

// A descriptor that is readable from the end of a child process on, so that any poller can
// wait for it: a pidfd on Linux, a kqueue elsewhere. Close it with close(2).
//
// Until the child has been reaped its number is its own, and no other's.
//
// Threads: any.

// Whether this kernel, and whoever restricts us, let us have one.
absl::Status ProbeExitDescriptor();

// One for `pid`, a child that nobody has reaped; close-on-exec. Or a negated errno.
int OpenExitDescriptor(pid_t pid);

// Sends a signal to the child. 0, or a negated errno: -ESRCH if it was reaped.
int SendToChild(int descriptor, pid_t pid, int signal);

// Takes the status of a child whose descriptor is readable: its exit code, or the number
// of the signal that ended it, negated. None if somebody else has taken it.
std::optional<int> ReapChild(int descriptor, pid_t pid);

}  // namespace weft::internal

#endif  // WEFT_PROCESS_EXIT_DESCRIPTOR_POSIX_H_
