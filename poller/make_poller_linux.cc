// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/builtin_pollers.h"
#include "weft/poller/epoll_poller.h"

namespace weft::internal {

std::vector<PollerBackend> BuiltinPollers() {
  return {{.name = "epoll", .make = &MakeEpollPoller, .probe = &ProbeEpoll, .priority = 100}};
}

}  // namespace weft::internal
