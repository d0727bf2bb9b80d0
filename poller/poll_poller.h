// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_POLL_POLLER_H_
#define WEFT_POLLER_POLL_POLLER_H_

#include <memory>

#include "weft/poller/poller.h"

namespace weft {

// The poller over poll(2), which every POSIX system has: where there is nothing
// better, or nothing better is allowed. A poll takes time in proportion to all
// handles that somebody waits on, and deadlines are met to the millisecond. In the
// registry as "poll".
std::unique_ptr<Poller> MakePollPoller();

}  // namespace weft

#endif  // WEFT_POLLER_POLL_POLLER_H_
