// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all allocations: callbacks that are over, or
// were cancelled, leave nothing behind.

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/loop/event_loop.h"
#include "weft/testing/allocation_counter.h"

namespace weft {
namespace {

// TIM 27
TEST(LoopAllocationTest, AMillionCancelledTimersAreNotKept) {
  VirtualClock clock;
  LoopOptions options;
  options.environment.clock = &clock;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create(options);
  bool fired = false;
  loop->CallLater(absl::Hours(10), [&] { fired = true; });
  auto captured = std::make_shared<int>();
  std::vector<TimerHandle> handles(10'000);
  const auto arm_and_cancel = [&] {
    for (size_t i = 0; i < handles.size(); ++i) {
      handles[i] = loop->CallLater(absl::Milliseconds(i % 977 * 100), [captured] {});
    }
    for (TimerHandle& handle : handles) handle.Cancel();
  };
  arm_and_cancel();

  const int64_t before = AllocationsSoFar();
  for (int i = 0; i < 100; ++i) arm_and_cancel();
  EXPECT_EQ(AllocationsSoFar(), before);
  EXPECT_EQ(captured.use_count(), 1);

  loop->CallLater(absl::Hours(11), [&] { loop->Stop(); });
  loop->RunForever();
  EXPECT_TRUE(fired);
  loop->Close();
}

}  // namespace
}  // namespace weft
