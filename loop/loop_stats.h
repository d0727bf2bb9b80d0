// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_LOOP_STATS_H_
#define WEFT_LOOP_LOOP_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace weft {

// LagHistogram
//
// How often something was how late, in buckets that double: bucket i counts what
// was at most 2^i microseconds late, and more than the bucket before.
//
// Threads: a value.
class LagHistogram {
 public:
  static constexpr size_t kBuckets = 28;  // The last has no bound; it begins at 67 s.

  void Add(absl::Duration lag) {
    ++counts_[BucketOf((absl::ToInt64Nanoseconds(lag) + 999) / 1000)];
  }

  uint64_t count(size_t bucket) const { return counts_[bucket]; }
  // The most that counts for a bucket. REQUIRES: bucket < kBuckets.
  static absl::Duration UpperBound(size_t bucket);

  uint64_t total() const;
  // A bound that the share `quantile` of all did not pass: Quantile(0.99). Zero if
  // there are none.
  absl::Duration Quantile(double quantile) const;

  // What came since `earlier` was taken.
  LagHistogram Since(const LagHistogram& earlier) const;

 private:
  static size_t BucketOf(int64_t microseconds) {
    if (microseconds <= 1) return 0;
    const int bits = 64 - __builtin_clzll(static_cast<uint64_t>(microseconds - 1));
    return bits < static_cast<int>(kBuckets) ? static_cast<size_t>(bits) : kBuckets - 1;
  }

  std::array<uint64_t, kBuckets> counts_ = {};
};

// LoopStats
//
// What a loop has done since it was created, and how it is now. What is counted is
// counted always: it costs a few additions for each look at the kernel.
//
// Lag is by how much the loop was late for its timers: in each round with timers
// that are due, of the one that was due first. It is what a callback that blocks, or
// too much work, does to everybody. A loop without timers has none to show; a task
// that sleeps again and again makes some.
//
// Threads: a value. Another thread that wants one posts for it.
struct LoopStats {
  LoopStats() {}

  uint64_t rounds = 0;
  uint64_t polls = 0;      // Looks at the kernel: at most one a round.
  uint64_t callbacks = 0;  // Steps of tasks, callbacks, and what wakes tasks.
  uint64_t tasks_created = 0;

  LagHistogram lag;
  absl::Duration max_lag;

  // Asleep in the kernel with nothing to do, of `uptime`. In virtual time: zero.
  absl::Duration idle;
  absl::Duration uptime;  // Since it was created, in runs and between them.

  // Now.
  size_t ready = 0;   // The depth of the queue: what the next round will run.
  size_t timers = 0;  // Armed, those of tasks that sleep as well.
  size_t tasks = 0;   // Not done.
};

}  // namespace weft

#endif  // WEFT_LOOP_LOOP_STATS_H_
