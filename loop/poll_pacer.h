// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_POLL_PACER_H_
#define WEFT_LOOP_POLL_PACER_H_

#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "weft/core/time_point.h"
#include "weft/loop/cycle_counter.h"

namespace weft::internal {

// Says when a loop that always has something ready must look at the kernel
// again: after 64 callbacks, or about 50 us, whichever comes first. Time is told
// by the processor's cycle counter, since reading the clock every round would
// cost more than the callbacks; how fast it counts is learnt from the clock
// readings that polls make anyway.
//
// As it is told of each poll and each round, it also counts them.
class PollPacer {
 public:
  explicit PollPacer(TimePoint now)
      : calibrated_at_(now.nanoseconds()), calibrated_cycles_(ReadCycleCounter()) {}

  // A poll was made, and the clock said `now` after it.
  void OnPoll(TimePoint now) {
    const uint64_t cycles = ReadCycleCounter();
    const int64_t elapsed = now.nanoseconds() - calibrated_at_;
    if (elapsed > kCalibrateEvery) Calibrate(now, cycles, elapsed);
    if (sleep_began_ != 0) asleep_ += cycles - std::exchange(sleep_began_, 0);
    must_poll_at_ = cycles + interval_;
    ++polls_;
    rounds_ += since_poll_ >> kRoundShift;
    callbacks_ += static_cast<uint32_t>(since_poll_);
    since_poll_ = 0;
  }

  // The poll that follows may sleep: what passes until OnPoll() is no work.
  void OnSleep() { sleep_began_ = ReadCycleCounter(); }

  // A round has run so many callbacks.
  void OnCallbacks(int count) {
    since_poll_ += (uint64_t{1} << kRoundShift) + static_cast<uint32_t>(count);
  }

  // The next round must poll, for a reason that the loop knows.
  void Demand() { must_poll_at_ = 0; }

  bool MustPoll() const {
    return static_cast<uint32_t>(since_poll_) >= kMaxCallbacks ||
           ReadCycleCounter() > must_poll_at_;
  }

  // -- Since the loop was made.

  uint64_t polls() const { return polls_; }
  uint64_t rounds() const { return rounds_ + (since_poll_ >> kRoundShift); }
  uint64_t callbacks() const { return callbacks_ + static_cast<uint32_t>(since_poll_); }
  absl::Duration asleep() const {
    const double per_nanosecond = static_cast<double>(interval_) / kInterval;
    return absl::Nanoseconds(static_cast<double>(asleep_) / per_nanosecond);
  }

 private:
  static constexpr uint32_t kMaxCallbacks = 64;
  static constexpr int kRoundShift = 32;
  static constexpr int64_t kInterval = 50'000;            // ns
  static constexpr int64_t kCalibrateEvery = 10'000'000;  // ns

  void Calibrate(TimePoint now, uint64_t cycles, int64_t elapsed) {
    const double per_nanosecond =
        static_cast<double>(cycles - calibrated_cycles_) / static_cast<double>(elapsed);
    interval_ = static_cast<uint64_t>(per_nanosecond * kInterval);
    calibrated_at_ = now.nanoseconds();
    calibrated_cycles_ = cycles;
  }

  // Since the last poll, in one word, so that a round adds once: the upper half
  // counts rounds, the lower half callbacks.
  uint64_t since_poll_ = 0;
  uint64_t must_poll_at_ = 0;      // In cycles; 0: at once.
  uint64_t interval_ = kInterval;  // In cycles; one a nanosecond until it is known better.
  int64_t calibrated_at_;
  uint64_t calibrated_cycles_;
  uint64_t sleep_began_ = 0;  // 0: it did not.
  uint64_t asleep_ = 0;       // In cycles.
  // Up to the last poll.
  uint64_t polls_ = 0;
  uint64_t rounds_ = 0;
  uint64_t callbacks_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_POLL_PACER_H_
