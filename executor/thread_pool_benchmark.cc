// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What it costs to have another thread run something, beside what is run. A
// batch shows how many small jobs a second the pool can take; one at a time
// shows the round trip, which is two wakes of the kernel's.
//
//   tools/bazel run -c opt //executor:thread_pool_benchmark

#include <latch>

#include "benchmark/benchmark.h"
#include "weft/executor/thread_pool.h"

namespace weft {
namespace {

// From the first submission to the end of the last job, by threads that exist.
void BM_SubmitAndRun(benchmark::State& state) {
  constexpr int kBatch = 1'000;
  ThreadPoolOptions options;
  options.max_threads = static_cast<int>(state.range(0));
  ThreadPool pool(options);

  for (auto _ : state) {
    std::latch all_done(kBatch);
    for (int i = 0; i < kBatch; ++i) pool.Submit([&all_done] { all_done.count_down(); });
    all_done.wait();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(BM_SubmitAndRun)->ArgName("threads")->Arg(1)->Arg(2)->Arg(4)->Arg(16)->UseRealTime();

void BM_RoundTrip(benchmark::State& state) {
  ThreadPool pool;

  for (auto _ : state) {
    std::latch done(1);
    pool.Submit([&done] { done.count_down(); });
    done.wait();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_RoundTrip)->UseRealTime();

// A pool that is used once: what a program pays that has a single blocking call.
void BM_StartRunAndJoin(benchmark::State& state) {
  for (auto _ : state) {
    ThreadPool pool;
    pool.Submit([] {});
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_StartRunAndJoin)->UseRealTime();

}  // namespace
}  // namespace weft
