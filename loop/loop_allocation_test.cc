// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all allocations: callbacks that are over, or
// were cancelled, leave nothing behind.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/loop/event_loop.h"

namespace {
size_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void* operator new(size_t size, std::align_val_t alignment) {
  ++allocations;
  if (void* memory = std::aligned_alloc(static_cast<size_t>(alignment), size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

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

  const size_t before = allocations;
  for (int i = 0; i < 100; ++i) arm_and_cancel();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(captured.use_count(), 1);

  loop->CallLater(absl::Hours(11), [&] { loop->Stop(); });
  loop->RunForever();
  EXPECT_TRUE(fired);
  loop->Close();
}

}  // namespace
}  // namespace weft
