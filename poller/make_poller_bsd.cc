// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/builtin_pollers.h"
#include "weft/poller/kqueue_poller.h"
#include "weft/poller/poll_poller.h"

namespace weft::internal {

std::vector<PollerBackend> BuiltinPollers() {
  return {{.name = "kqueue", .make = &MakeKqueuePoller, .probe = nullptr, .priority = 100},
          {.name = "poll", .make = &MakePollPoller, .probe = nullptr, .priority = 10}};
}

}  // namespace weft::internal
