// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Real-time signals, of which none is lost.

#include <signal.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

TEST(SignalLinuxTest, ABurstOfRealTimeSignalsIsCountedInFull) {
  const std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  loop->RunOnce(absl::ZeroDuration());
  int count = 0;
  ASSERT_TRUE(loop->AddSignalHandler(SIGRTMIN + 1, [&count] { ++count; }).ok());
  constexpr int kBurst = 1000;  // More than the ring holds.
  for (int i = 0; i < kBurst; ++i) ASSERT_EQ(::kill(::getpid(), SIGRTMIN + 1), 0);
  loop->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(count, kBurst);

  ::raise(SIGRTMIN + 1);
  loop->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(count, kBurst + 1);
  loop->Close();
}

}  // namespace
}  // namespace weft
