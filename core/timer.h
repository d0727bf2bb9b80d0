// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_TIMER_H_
#define WEFT_CORE_TIMER_H_

#include <cstdint>

#include "absl/base/macros.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"

namespace weft {

namespace internal {
class NearTimers;
}  // namespace internal

// Timer
//
// A runnable that is due at a moment: what a timer queue (`TimerWheel`) holds.
// It is a member of what it wakes, and whoever owns it disarms it before it
// goes away:
//
//   scheduler->Arm(&timer, deadline);   // ... not needed any more:
//   scheduler->Disarm(&timer);
//
//            Arm()               due                  the loop runs it
//   idle ------------> armed ------------> queued ------------------> idle
//     ^                  |                   |
//     +------------------+---- Disarm() -----+
//
// Threads: belongs to the loop's thread.
class Timer : public Runnable {
 public:
  explicit Timer(RunFn run) : Runnable(run) {}
  ~Timer() { ABSL_HARDENING_ASSERT(place_ == kNowhere && "a timer must be disarmed first"); }

  // When it is due, or was when it was last armed.
  TimePoint deadline() const { return deadline_; }

  // True from `Arm()` until it is queued, as it is due, or disarmed.
  bool is_armed() const { return place_ != kNowhere; }

  // The wheel has to know: `TimerWheel::Disarm()`.
  void Cancel() = delete;

 private:
  friend class TimerWheel;
  friend class internal::NearTimers;

  static constexpr uintptr_t kNowhere = 0;

  TimePoint deadline_;
  uint64_t sequence_ = 0;       // The order of arming, among equal deadlines.
  uintptr_t place_ = kNowhere;  // The wheel's business: where in it this is.
};

}  // namespace weft

#endif  // WEFT_CORE_TIMER_H_
