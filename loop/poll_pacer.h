// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_POLL_PACER_H_
#define WEFT_LOOP_POLL_PACER_H_

#include <cstdint>

#include "weft/core/time_point.h"
#include "weft/loop/cycle_counter.h"

namespace weft::internal {

// Says when a loop that always has something ready must look at the kernel
// again: after 64 callbacks, or about 50 us, whichever comes first. Time is told
// by the processor's cycle counter, since reading the clock every round would
// cost more than the callbacks; how fast it counts is learnt from the clock
// readings that polls make anyway.
class PollPacer {
 public:
  // A poll was made, and the clock said `now` after it.
  void OnPoll(TimePoint now) {
    const uint64_t cycles = ReadCycleCounter();
    const int64_t elapsed = now.nanoseconds() - calibrated_at_;
    if (elapsed > kCalibrateEvery) Calibrate(now, cycles, elapsed);
    poll_cycles_ = cycles;
    callbacks_ = 0;
  }

  void OnCallbacks(int count) { callbacks_ += count; }

  bool MustPoll() const {
    return callbacks_ >= kMaxCallbacks || ReadCycleCounter() - poll_cycles_ > interval_;
  }

 private:
  static constexpr int kMaxCallbacks = 64;
  static constexpr int64_t kInterval = 50'000;            // ns
  static constexpr int64_t kCalibrateEvery = 10'000'000;  // ns

  void Calibrate(TimePoint now, uint64_t cycles, int64_t elapsed) {
    if (calibrated_at_ != 0) {
      const double per_nanosecond =
          static_cast<double>(cycles - calibrated_cycles_) / static_cast<double>(elapsed);
      interval_ = static_cast<uint64_t>(per_nanosecond * kInterval);
    }
    calibrated_at_ = now.nanoseconds();
    calibrated_cycles_ = cycles;
  }

  int callbacks_ = 0;
  uint64_t poll_cycles_ = 0;
  uint64_t interval_ = kInterval;  // In cycles; one a nanosecond until it is known better.
  int64_t calibrated_at_ = 0;      // 0: never.
  uint64_t calibrated_cycles_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_POLL_PACER_H_
