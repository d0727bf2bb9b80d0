// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_IO_URING_POLLER_H_
#define WEFT_POLLER_IO_URING_POLLER_H_

#include <memory>

#include "absl/status/status.h"
#include "weft/poller/poller.h"
#include "weft/poller/uring_buffers_linux.h"
#include "weft/poller/uring_linux.h"

namespace weft {

// The poller over io_uring(7): Linux 6.1 or later, where it is allowed. In the
// registry as "io_uring"; taken where it is asked for.
std::unique_ptr<Poller> MakeIoUringPoller();

// Whether this kernel, and the sandbox we are in, have what it needs; if not, why,
// and who forbids it.
absl::Status ProbeIoUring();

namespace internal {

// For tests: small rings, or an older kernel.
struct IoUringPollerOptions {
  IoUringPollerOptions() {}

  UringOptions ring;
  UringBufferOptions buffers;
};

std::unique_ptr<Poller> MakeIoUringPollerWith(const IoUringPollerOptions& options);

}  // namespace internal

}  // namespace weft

#endif  // WEFT_POLLER_IO_URING_POLLER_H_
