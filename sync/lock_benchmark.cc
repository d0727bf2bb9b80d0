// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a lock costs: when it is free, which it mostly is, and when each of many
// tasks has to wait for the one before. A turn is a release, a wake and a switch
// of tasks.
//
//   bazel run -c opt //sync:lock_benchmark

#include "benchmark/benchmark.h"
#include "weft/core/sleep.h"
#include "weft/sync/lock.h"
#include "weft/sync/semaphore.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

constexpr int kTurns = 1000;

// Nobody else wants it: no suspension, no frame.
template <class Primitive>
void BM_AcquireFree(benchmark::State& state) {
  TestLoop loop;
  Primitive primitive;
  auto acquire = [&]() -> Coro<void> {
    for (int i = 0; i < kTurns; ++i) {
      auto guard = co_await primitive.Acquire();
      benchmark::DoNotOptimize(guard);
    }
  };
  for (auto _ : state) {
    Spawn(acquire);
    loop.RunUntilIdle();
  }
  state.SetItemsProcessed(state.iterations() * kTurns);
}
BENCHMARK(BM_AcquireFree<Lock>);
BENCHMARK(BM_AcquireFree<Semaphore>);

// `tasks` tasks in turn, each of which holds it for a round.
template <class Primitive>
void BM_AcquireInTurn(benchmark::State& state) {
  TestLoop loop;
  Primitive primitive;
  const int turns = kTurns / static_cast<int>(state.range(0)) + 1;
  auto acquire = [&]() -> Coro<void> {
    for (int i = 0; i < turns; ++i) {
      auto guard = co_await primitive.Acquire();
      co_await Yield();
    }
  };
  for (auto _ : state) {
    for (int i = 0; i < state.range(0); ++i) Spawn(acquire);
    loop.RunUntilIdle();
  }
  state.SetItemsProcessed(state.iterations() * turns * state.range(0));
}
BENCHMARK(BM_AcquireInTurn<Lock>)->ArgName("tasks")->Arg(2)->Arg(1000);
BENCHMARK(BM_AcquireInTurn<Semaphore>)->ArgName("tasks")->Arg(2)->Arg(1000);

}  // namespace
}  // namespace weft
