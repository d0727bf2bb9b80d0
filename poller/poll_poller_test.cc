// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What every poller promises.

#include "weft/poller/poll_poller.h"

#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Poll, PollerConformanceTest, ::testing::Values(&MakePollPoller));

}  // namespace weft
