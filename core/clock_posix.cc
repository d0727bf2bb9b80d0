// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <time.h>

#include "weft/core/clock.h"

namespace weft {

SteadyClock* SteadyClock::Get() {
  static SteadyClock clock;
  return &clock;
}

TimePoint SteadyClock::Read() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return TimePoint::FromNanoseconds(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

}  // namespace weft
