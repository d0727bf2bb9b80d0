// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_KQUEUE_POLLER_H_
#define WEFT_POLLER_KQUEUE_POLLER_H_

#include <memory>

#include "weft/poller/poller.h"

namespace weft {

// The poller over kqueue(2): the default on macOS and the BSDs. In the registry as
// "kqueue".
std::unique_ptr<Poller> MakeKqueuePoller();

}  // namespace weft

#endif  // WEFT_POLLER_KQUEUE_POLLER_H_
