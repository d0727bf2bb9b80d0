// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <windows.h>

#include <cstdint>

#include "weft/core/clock.h"

namespace weft {

SteadyClock* SteadyClock::Get() {
  static SteadyClock clock;
  return &clock;
}

TimePoint SteadyClock::Read() {
  // Fixed at boot, and never zero; neither call can fail.
  static const int64_t ticks_per_second = [] {
    LARGE_INTEGER frequency;
    ::QueryPerformanceFrequency(&frequency);
    return frequency.QuadPart;
  }();
  LARGE_INTEGER ticks;
  ::QueryPerformanceCounter(&ticks);
  // In two parts: the product of all ticks would overflow within days.
  const int64_t seconds = ticks.QuadPart / ticks_per_second;
  const int64_t rest = ticks.QuadPart % ticks_per_second;
  return TimePoint::FromNanoseconds(seconds * 1'000'000'000 +
                                    rest * 1'000'000'000 / ticks_per_second);
}

}  // namespace weft
