// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_BENCH_ALLOCATIONS_H_
#define WEFT_BENCH_ALLOCATIONS_H_

#include <cstdint>

#include "benchmark/benchmark.h"
#include "weft/testing/allocation_counter.h"

namespace weft::bench {

// AllocationCount
//
// Reports what a benchmark allocates, in its counter "allocs": per iteration, so
// an iteration should be one operation. Made after the warm-up, since the steady
// state is what is asked for:
//
//   WarmUp();
//   AllocationCount allocations(state);
//   while (state.KeepRunningBatch(1000)) { ... }
//   allocations.Report();
class AllocationCount {
 public:
  explicit AllocationCount(benchmark::State& state) : state_(state), begin_(AllocationsSoFar()) {}

  // `operations`: of each iteration.
  void Report(int64_t operations = 1) {
    state_.counters["allocs"] = static_cast<double>(AllocationsSoFar() - begin_ - excepted_) /
                                static_cast<double>(state_.iterations() * operations);
    state_.SetItemsProcessed(state_.iterations() * operations);
  }

  // Between them nothing is counted, as between PauseTiming() and ResumeTiming().
  void Pause() { paused_at_ = AllocationsSoFar(); }
  void Resume() { excepted_ += AllocationsSoFar() - paused_at_; }

 private:
  benchmark::State& state_;
  int64_t begin_;
  int64_t paused_at_ = 0;
  int64_t excepted_ = 0;
};

}  // namespace weft::bench

#endif  // WEFT_BENCH_ALLOCATIONS_H_
