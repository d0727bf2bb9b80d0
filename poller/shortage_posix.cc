// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/shortage_posix.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "weft/core/clock.h"

namespace weft::internal {

bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC;
}

int MillisecondsUntil(TimePoint deadline) {
  if (deadline == TimePoint::InfiniteFuture()) return -1;
  const TimePoint now = SteadyClock::Read();
  if (deadline <= now) return 0;
  const int64_t left = deadline.nanoseconds() - now.nanoseconds();
  return static_cast<int>(std::min<int64_t>((left - 1) / 1'000'000 + 1, INT_MAX));
}

int NapUntil(TimePoint deadline) {
  const int milliseconds = MillisecondsUntil(deadline);
  return milliseconds < 0 ? kNapMilliseconds : std::min(milliseconds, kNapMilliseconds);
}

bool Nap(int milliseconds) { return ::poll(nullptr, 0, milliseconds) == 0; }

}  // namespace weft::internal
