// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all allocations.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"
#include "weft/testing/allocation_counter.h"
#include "weft/timer/timer_wheel.h"

namespace weft {
namespace {

TEST(TimerWheelAllocationTest, UnusedWheelAllocatesNothing) {
  const int64_t before = AllocationsSoFar();
  {
    TimerWheel wheel{TimePoint()};
    ReadyQueue due;
    wheel.Advance(TimePoint() + absl::Hours(1), &due);
  }
  EXPECT_EQ(AllocationsSoFar(), before);
}

TEST(TimerWheelAllocationTest, SteadyStateAllocatesNothing) {
  std::deque<Timer> timers;
  for (int i = 0; i < 1000; ++i) timers.emplace_back([](Runnable*) {});
  std::mt19937_64 random(1);
  TimePoint now;
  ReadyQueue due;
  TimerWheel wheel(now);
  // Timers fire or are cancelled, and are armed again: half of them within the
  // current slot, and in no order.
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      Timer* timer = &timers[random() % timers.size()];
      wheel.Disarm(timer);
      const absl::Duration reach = i % 2 == 0 ? absl::Milliseconds(2) : absl::Seconds(20);
      wheel.Arm(timer, now + reach * static_cast<int64_t>(1 + random() % 100) / 100);
      now += absl::Microseconds(1);
      wheel.Advance(now, &due);
      due.Clear();
    }
  };
  run(200'000);

  const int64_t before = AllocationsSoFar();
  run(200'000);
  EXPECT_EQ(AllocationsSoFar(), before);
  for (Timer& timer : timers) wheel.Disarm(&timer);
}

// Timers of one slot that overlap and are cancelled while time stands still.
TEST(TimerWheelAllocationTest, CancelledNearTimersLeaveNothingBehind) {
  Timer lasting([](Runnable*) {}), odd([](Runnable*) {}), even([](Runnable*) {});
  TimerWheel wheel{TimePoint()};
  wheel.Arm(&lasting, TimePoint());
  const auto run = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      wheel.Disarm(i % 2 == 0 ? &even : &odd);
      wheel.Arm(i % 2 == 0 ? &even : &odd, TimePoint::FromNanoseconds(i));
    }
  };
  run(0, 1000);

  const int64_t before = AllocationsSoFar();
  run(1000, 1'000'000);
  EXPECT_EQ(AllocationsSoFar(), before);
  for (Timer* timer : {&lasting, &odd, &even}) wheel.Disarm(timer);
}

}  // namespace
}  // namespace weft
