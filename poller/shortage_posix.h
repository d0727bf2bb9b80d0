// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SHORTAGE_POSIX_H_
#define WEFT_POLLER_SHORTAGE_POSIX_H_

#include "weft/core/time_point.h"

// What a poller does while the system has no descriptors left, or no memory, for those
// that it sleeps by. That passes; so it is no reason to end a server that is at work. It
// sleeps by a call that needs none, in naps, since nobody can wake it, and tries again
// after each.

namespace weft::internal {

// How late a wake may be that comes during a nap.
inline constexpr int kNapMilliseconds = 10;

// Whether the error (positive, of errno) says that something has run out.
bool IsShortage(int error);

// So many milliseconds that `deadline` has passed when they have: rounded up, so late
// and never early. -1 for ever.
int MillisecondsUntil(TimePoint deadline);

// The same, but no longer than a nap.
int NapUntil(TimePoint deadline);

// Sleeps for so long. False if a signal came.
bool Nap(int milliseconds);

}  // namespace weft::internal

#endif  // WEFT_POLLER_SHORTAGE_POSIX_H_
