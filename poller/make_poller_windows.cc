// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/builtin_pollers.h"
#include "weft/poller/iocp_poller.h"

namespace weft::internal {

std::vector<PollerBackend> BuiltinPollers() {
  return {{.name = "iocp", .make = &MakeIocpPoller, .probe = nullptr, .priority = 100}};
}

}  // namespace weft::internal
