// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What waiting costs, above the loop: a call of a coroutine, a future that hands
// a value over, and what is built of them. The loop here is the least there is,
// so posts, switches and spawns are measured by //loop:loop_benchmark instead.
//
//   tools/bazel run -c opt //core:await_benchmark
//
// `allocs` is per operation and has to be 0 for all but cancellations, which
// throw, and gathers of vectors, which make one.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "weft/bench/allocations.h"
#include "weft/core/coro.h"
#include "weft/core/future.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

constexpr int kBatch = 1'000;

// Runs `operations(count)`, a coroutine, for as long as the benchmark wants.
template <class F>
void Measure(benchmark::State& state, F operations) {
  VirtualScheduler loop;
  loop.Run(operations(kBatch));  // Fills the free lists.
  bench::AllocationCount allocations(state);
  while (state.KeepRunningBatch(kBatch)) loop.Run(operations(kBatch));
  allocations.Report();
}

Coro<int> Return(int value) { co_return value; }
Coro<int> YieldOnce(int value) {
  co_await Yield();
  co_return value;
}
Coro<> SleepLong() { co_await Sleep(absl::Hours(1)); }

void BM_CallOfACoroutine(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; ++i) benchmark::DoNotOptimize(co_await Return(i));
  });
}
BENCHMARK(BM_CallOfACoroutine);

void BM_AwaitOfADoneFuture(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    Future<int> future = MakeFuture<int>(Scheduler::CurrentOrThrow());
    future.SetResult(1);
    for (int i = 0; i < count; ++i) benchmark::DoNotOptimize(co_await future);
  });
}
BENCHMARK(BM_AwaitOfADoneFuture);

// One task makes a future and waits, a callback completes it.
void BM_FutureHandedOver(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    Scheduler& loop = Scheduler::CurrentOrThrow();
    for (int i = 0; i < count; ++i) {
      Future<int> future = MakeFuture<int>(loop);
      loop.CallSoon([future]() mutable { future.SetResult(1); });
      benchmark::DoNotOptimize(co_await future);
    }
  });
}
BENCHMARK(BM_FutureHandedOver);

void BM_TaskAwaited(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; ++i) benchmark::DoNotOptimize(co_await CreateTask(Return(i)));
  });
}
BENCHMARK(BM_TaskAwaited);

// A timeout that is not needed, around a wait of one round.
void BM_TimeoutInTime(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; ++i) {
      benchmark::DoNotOptimize(co_await WithTimeout(absl::Seconds(1), YieldOnce(i)));
    }
  });
}
BENCHMARK(BM_TimeoutInTime);

void BM_TimeoutThatExpires(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; ++i) {
      Outcome<void> outcome =
          co_await NoThrow(WithTimeout(absl::Milliseconds(1), Sleep(absl::Hours(1))));
      benchmark::DoNotOptimize(outcome.has_exception());
    }
  });
}
BENCHMARK(BM_TimeoutThatExpires);

// Ten tasks that yield once: for each of them.
void BM_GatherOfTen(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; i += 10) {
      std::vector<Coro<int>> children;
      for (int child = 0; child < 10; ++child) children.push_back(YieldOnce(child));
      benchmark::DoNotOptimize(co_await Gather(std::move(children)));
    }
  });
}
BENCHMARK(BM_GatherOfTen);

void BM_GroupOfTen(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; i += 10) {
      auto body = [](TaskGroup& group) -> Coro<> {
        for (int child = 0; child < 10; ++child) group.CreateTask(YieldOnce(child));
        co_return;
      };
      co_await WithTaskGroup(body);
    }
  });
}
BENCHMARK(BM_GroupOfTen);

// A task that sleeps, cancelled and awaited: one throw.
void BM_CancelledTask(benchmark::State& state) {
  Measure(state, [](int count) -> Coro<> {
    for (int i = 0; i < count; ++i) {
      Task<> task = CreateTask(SleepLong());
      co_await Yield();
      task.Cancel();
      Outcome<void> outcome = co_await NoThrow(task);
      benchmark::DoNotOptimize(outcome.cancelled());
    }
  });
}
BENCHMARK(BM_CancelledTask);

}  // namespace
}  // namespace weft
