// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What only POSIX can tell: that a signal has ended a program.

#include <signal.h>

#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/loop/run.h"

namespace weft {
namespace {

Coro<void> Stuck() {
  for (int i = 0; i < 3; ++i) ::raise(SIGINT);
  co_return;
}

TEST(RunInterruptDeathTest, AThirdSigintEndsAProgramThatIsStuck) {
  EXPECT_EXIT(weft::Run(Stuck()), ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace weft
