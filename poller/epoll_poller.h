// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_EPOLL_POLLER_H_
#define WEFT_POLLER_EPOLL_POLLER_H_

#include <memory>

#include "absl/status/status.h"
#include "weft/poller/poller.h"

namespace weft {

// The poller over epoll(7): the default on Linux. In the registry as "epoll".
std::unique_ptr<Poller> MakeEpollPoller();

// Whether this kernel, and the sandbox we are in, have what it needs.
absl::Status ProbeEpoll();

}  // namespace weft

#endif  // WEFT_POLLER_EPOLL_POLLER_H_
