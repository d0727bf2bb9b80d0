// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CLOCK_H_
#define WEFT_CORE_CLOCK_H_

#include "absl/time/time.h"
#include "weft/core/time_point.h"

namespace weft {

class VirtualClock;

// Clock
//
// Where a loop gets the time from. Readings never go backwards.
//
// Threads: a `SteadyClock` may be read from any thread; any other belongs to
// the thread of its loop.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual TimePoint Now() const = 0;

  // This clock, if time in it is the loop's to move; else null.
  virtual VirtualClock* AsVirtual() { return nullptr; }

  // True for `SteadyClock` alone: the loop may then read the kernel's clock
  // without asking, and skip polls as it does on the real one.
  virtual bool IsSteady() const { return false; }
};

// SteadyClock
//
// The system's monotonic clock (CLOCK_MONOTONIC). It does not run while the
// machine is suspended on Linux, and is never set.
class SteadyClock final : public Clock {
 public:
  // A clock that lives as long as the program.
  static SteadyClock* Get();

  // The reading, without an object.
  static TimePoint Read();

  TimePoint Now() const override { return Read(); }
  bool IsSteady() const override { return true; }
};

// VirtualClock
//
// Time for tests: it stands still while callbacks run, and a loop that has
// nothing to do moves it to the next deadline instead of sleeping. An hour of
// `Sleep()` takes no time, and happens in the same order in every run.
//
//   VirtualClock clock;
//   RunOptions options;
//   options.environment.clock = &clock;
//   Run(Main(), options);
//
// A callback plays one that blocks by calling `Advance()`.
//
// Threads: belongs to the loop's thread.
class VirtualClock final : public Clock {
 public:
  VirtualClock() = default;
  explicit VirtualClock(TimePoint start) : now_(start) {}

  TimePoint Now() const override { return now_; }
  VirtualClock* AsVirtual() override { return this; }

  // Moves time on by `delta`; by nothing if `delta` is negative.
  void Advance(absl::Duration delta) {
    if (delta > absl::ZeroDuration()) now_ += delta;
  }

  // Moves time on to `moment`, unless that has passed.
  void AdvanceTo(TimePoint moment) {
    if (moment > now_) now_ = moment;
  }

 private:
  TimePoint now_;
};

}  // namespace weft

#endif  // WEFT_CORE_CLOCK_H_
