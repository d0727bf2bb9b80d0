// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/test_poller.h"

#include <iostream>

#include "gtest/gtest.h"
#include "weft/poller/poller_registry.h"

namespace weft {
namespace {

class TestPoller final : public ::testing::Environment {
 public:
  void SetUp() override {
    const absl::Status status = CheckTestPoller();
    if (status.ok()) return;
    if (absl::IsUnavailable(status)) {
      std::cout << kPollerSkipped << status.message() << std::endl;
      GTEST_SKIP() << status.message();
    }
    FAIL() << status.message();
  }
};

// Owned by GoogleTest.
[[maybe_unused]] ::testing::Environment* const added =
    ::testing::AddGlobalTestEnvironment(new TestPoller);

}  // namespace

absl::Status CheckTestPoller() { return MakePoller().status(); }

bool TestPollerCompletes() { return ResolvePollerName("") == "io_uring"; }

}  // namespace weft
