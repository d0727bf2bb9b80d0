// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_CYCLE_COUNTER_H_
#define WEFT_LOOP_CYCLE_COUNTER_H_

#include <cstdint>

#include "weft/core/clock.h"

namespace weft::internal {

// A counter that goes up at a constant rate, as cheap to read as the processor
// allows; where it has none, nanoseconds. By processor, not by system: the
// instruction is the same on all of them.
inline uint64_t ReadCycleCounter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t count;
  asm volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<uint64_t>(SteadyClock::Read().nanoseconds());
#endif
}

}  // namespace weft::internal

#endif  // WEFT_LOOP_CYCLE_COUNTER_H_
