// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/loop_stats.h"

namespace weft {

absl::Duration LagHistogram::UpperBound(size_t bucket) {
  if (bucket + 1 >= kBuckets) return absl::InfiniteDuration();
  return absl::Microseconds(int64_t{1} << bucket);
}

uint64_t LagHistogram::total() const {
  uint64_t total = 0;
  for (const uint64_t count : counts_) total += count;
  return total;
}

absl::Duration LagHistogram::Quantile(double quantile) const {
  const double wanted = quantile * static_cast<double>(total());
  uint64_t passed = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    passed += counts_[i];
    if (passed > 0 && static_cast<double>(passed) >= wanted) return UpperBound(i);
  }
  return absl::ZeroDuration();
}

LagHistogram LagHistogram::Since(const LagHistogram& earlier) const {
  LagHistogram since;
  for (size_t i = 0; i < kBuckets; ++i) since.counts_[i] = counts_[i] - earlier.counts_[i];
  return since;
}

}  // namespace weft
