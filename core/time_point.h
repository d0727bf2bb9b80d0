// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TIME_POINT_H_
#define WEFT_CORE_TIME_POINT_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <ostream>

#include "absl/time/time.h"

namespace weft {

// TimePoint
//
// A moment on a loop's clock: nanoseconds since some arbitrary start, the same
// for all readings of one clock. Differences mean something, the number itself
// does not; it is no date (that is `absl::Time`).
//
// Arithmetic saturates: a moment too far away is `InfiniteFuture()`, which a
// timer never reaches, and nothing wraps around.
//
//   TimePoint deadline = loop.Time() + absl::Milliseconds(20);
//   absl::Duration left = deadline - loop.Time();
//
// Python: the float that `loop.time()` returns, in a type of its own.
class TimePoint {
 public:
  constexpr TimePoint() = default;  // The clock's start.

  static constexpr TimePoint FromNanoseconds(int64_t nanoseconds) { return TimePoint(nanoseconds); }
  static constexpr TimePoint InfiniteFuture() {
    return TimePoint(std::numeric_limits<int64_t>::max());
  }
  static constexpr TimePoint InfinitePast() {
    return TimePoint(std::numeric_limits<int64_t>::min());
  }

  constexpr int64_t nanoseconds() const { return nanoseconds_; }

  friend constexpr auto operator<=>(TimePoint, TimePoint) = default;

  friend TimePoint operator+(TimePoint point, absl::Duration delta) {
    return point.Plus(ToNanoseconds(delta));
  }
  friend TimePoint operator+(absl::Duration delta, TimePoint point) { return point + delta; }
  friend TimePoint operator-(TimePoint point, absl::Duration delta) { return point + -delta; }
  TimePoint& operator+=(absl::Duration delta) { return *this = *this + delta; }
  TimePoint& operator-=(absl::Duration delta) { return *this = *this - delta; }

  // Infinite if either is and they differ.
  friend absl::Duration operator-(TimePoint a, TimePoint b) {
    if (a == b) return absl::ZeroDuration();
    if (a == InfiniteFuture() || b == InfinitePast()) return absl::InfiniteDuration();
    if (b == InfiniteFuture() || a == InfinitePast()) return -absl::InfiniteDuration();
    return absl::Nanoseconds(a.nanoseconds_) - absl::Nanoseconds(b.nanoseconds_);
  }

  friend std::ostream& operator<<(std::ostream& out, TimePoint point) {
    if (point == InfiniteFuture()) return out << "infinite future";
    if (point == InfinitePast()) return out << "infinite past";
    return out << absl::FormatDuration(absl::Nanoseconds(point.nanoseconds_));
  }

 private:
  explicit constexpr TimePoint(int64_t nanoseconds) : nanoseconds_(nanoseconds) {}

  // Rounds up, so that a deadline made of it is never early; saturates.
  static int64_t ToNanoseconds(absl::Duration delta) {
    const int64_t whole = absl::ToInt64Nanoseconds(delta);
    if (whole < std::numeric_limits<int64_t>::max() && absl::Nanoseconds(whole) < delta) {
      return whole + 1;
    }
    return whole;
  }

  TimePoint Plus(int64_t delta) const {
    if (*this == InfiniteFuture() || *this == InfinitePast()) return *this;
    if (delta > 0 && nanoseconds_ > std::numeric_limits<int64_t>::max() - delta) {
      return InfiniteFuture();
    }
    if (delta < 0 && nanoseconds_ < std::numeric_limits<int64_t>::min() - delta) {
      return InfinitePast();
    }
    return TimePoint(nanoseconds_ + delta);
  }

  int64_t nanoseconds_ = 0;
};

}  // namespace weft

#endif  // WEFT_CORE_TIME_POINT_H_
