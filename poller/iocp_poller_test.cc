// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/iocp_poller.h"

#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Iocp, PollerConformanceTest, ::testing::Values(&MakeIocpPoller));

}  // namespace weft
