// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/builtin_pollers.h"
#include "weft/poller/epoll_poller.h"
#include "weft/poller/io_uring_poller.h"
#include "weft/poller/poll_poller.h"

namespace weft::internal {

std::vector<PollerBackend> BuiltinPollers() {
  return {{.name = "epoll", .make = &MakeEpollPoller, .probe = &ProbeEpoll, .priority = 100},
          {.name = "io_uring", .make = &MakeIoUringPoller, .probe = &ProbeIoUring, .priority = 50},
          {.name = "poll", .make = &MakePollPoller, .probe = nullptr, .priority = 10}};
}

}  // namespace weft::internal
