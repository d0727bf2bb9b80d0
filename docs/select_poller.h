// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_DOCS_SELECT_POLLER_H_
#define WEFT_DOCS_SELECT_POLLER_H_

#include <memory>

#include "weft/poller/poller.h"

namespace weft {

// The backend that docs/backends.md shows: over select(2). To learn from; who needs such
// a one takes "poll".
std::unique_ptr<Poller> MakeSelectPoller();

}  // namespace weft

#endif  // WEFT_DOCS_SELECT_POLLER_H_
