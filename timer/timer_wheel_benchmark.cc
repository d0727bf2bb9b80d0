// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What timers cost a server. Most are timeouts of requests that succeed: armed,
// then cancelled, in a wheel that is as full as a busy server's. Then what one
// costs that does fire, down to its callback.
//
//   tools/bazel run -c opt //timer:timer_wheel_benchmark -- --benchmark_filter=Cancel
//
// Deadlines are random, for it is their order in memory that makes a large
// wheel slow, and the same in every run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"
#include "weft/timer/timer_wheel.h"

namespace weft {
namespace {

const TimePoint kStart = TimePoint::FromNanoseconds(3'600'000'000'000);

constexpr size_t kBatch = 1000;

int64_t ran = 0;

// Timers, and for each a deadline that is spread over `span`.
struct Load {
  Load(size_t count, absl::Duration span) {
    std::mt19937_64 random(1);
    const auto range = static_cast<uint64_t>(absl::ToInt64Nanoseconds(span));
    for (size_t i = 0; i < count; ++i) {
      timers.push_back(std::make_unique<Timer>([](Runnable*) { ++ran; }));
      after.push_back(static_cast<int64_t>(1 + random() % range));
    }
  }

  void ArmAll(TimerWheel* wheel, TimePoint now) {
    for (size_t i = 0; i < timers.size(); ++i) Arm(wheel, i, now);
  }
  void Arm(TimerWheel* wheel, size_t i, TimePoint now) {
    wheel->Arm(timers[i].get(), TimePoint::FromNanoseconds(now.nanoseconds() + after[i]));
  }

  std::vector<std::unique_ptr<Timer>> timers;
  std::vector<int64_t> after;
};

// A timeout that does not fire, with `armed` others waiting.
void BM_ArmThenCancel(benchmark::State& state) {
  Load others(static_cast<size_t>(state.range(0)), absl::Minutes(1));
  TimerWheel wheel(kStart);
  others.ArmAll(&wheel, kStart);
  Load load(kBatch, absl::Minutes(1));

  size_t i = 0;
  for (auto _ : state) {
    load.Arm(&wheel, i, kStart);
    wheel.Disarm(load.timers[i].get());
    if (++i == kBatch) i = 0;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ArmThenCancel)->ArgName("armed")->Arg(0)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

// Filling a wheel up to `armed`.
void BM_Arm(benchmark::State& state) {
  Load load(static_cast<size_t>(state.range(0)), absl::Minutes(1));
  TimerWheel wheel(kStart);

  for (auto _ : state) {
    load.ArmAll(&wheel, kStart);
    state.PauseTiming();
    for (auto& timer : load.timers) wheel.Disarm(timer.get());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Arm)->ArgName("armed")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

// Cancelling all of `armed` timers, in the order of arming or in any.
void BM_Cancel(benchmark::State& state) {
  Load load(static_cast<size_t>(state.range(0)), absl::Minutes(1));
  TimerWheel wheel(kStart);
  std::vector<Timer*> order;
  for (auto& timer : load.timers) order.push_back(timer.get());
  if (state.range(1) != 0) std::shuffle(order.begin(), order.end(), std::mt19937_64(2));

  for (auto _ : state) {
    state.PauseTiming();
    load.ArmAll(&wheel, kStart);
    state.ResumeTiming();
    for (Timer* timer : order) wheel.Disarm(timer);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Cancel)
    ->ArgNames({"armed", "shuffled"})
    ->ArgsProduct({{1'000, 100'000, 1'000'000}, {0, 1}});

// Firing `armed` timers that are due within `span` milliseconds, by a loop that
// looks every `step` microseconds (0: when the next is due): wheel, queue and
// callback.
void BM_Fire(benchmark::State& state) {
  Load load(static_cast<size_t>(state.range(0)), absl::Milliseconds(state.range(1)));
  const absl::Duration step = absl::Microseconds(state.range(2));
  TimePoint now = kStart;
  TimerWheel wheel(now);
  ReadyQueue ready;

  for (auto _ : state) {
    state.PauseTiming();
    load.ArmAll(&wheel, now);
    state.ResumeTiming();
    while (!wheel.empty()) {
      now = step == absl::ZeroDuration() ? wheel.NextWake() : now + step;
      wheel.Advance(now, &ready);
      while (Runnable* next = ready.PopFront()) next->Run();
    }
  }
  benchmark::DoNotOptimize(ran);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Fire)
    ->ArgNames({"armed", "span", "step"})
    ->ArgsProduct({{1'000, 100'000, 1'000'000}, {1'000, 60'000}, {0, 1'000}})
    ->Args({1'000'000, 1, 1'000})            // All in one slot.
    ->Args({1'000'000, 1, 10})               // The same, a hundred rounds.
    ->Args({1'000'000, 60'000, 60'000'000})  // All in one round.
    ->Unit(benchmark::kMillisecond);

// Sleeps shorter than a slot: `armed` of them, then one round that fires them.
void BM_ArmAndFireNear(benchmark::State& state) {
  Load load(static_cast<size_t>(state.range(0)), absl::Microseconds(1));
  TimePoint now = kStart;
  TimerWheel wheel(now);
  ReadyQueue ready;

  for (auto _ : state) {
    load.ArmAll(&wheel, now);
    now += absl::Microseconds(1);
    wheel.Advance(now, &ready);
    while (Runnable* next = ready.PopFront()) next->Run();
  }
  benchmark::DoNotOptimize(ran);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_ArmAndFireNear)->ArgName("armed")->Arg(1)->Arg(1'000)->Arg(100'000);

void BM_NextWake(benchmark::State& state) {
  Load load(static_cast<size_t>(state.range(0)), absl::Minutes(1));
  TimerWheel wheel(kStart);
  load.ArmAll(&wheel, kStart);

  for (auto _ : state) benchmark::DoNotOptimize(wheel.NextWake());
}
BENCHMARK(BM_NextWake)->ArgName("armed")->Arg(1)->Arg(100'000);

// What a loop pays that starts and ends without a timer.
void BM_Construct(benchmark::State& state) {
  for (auto _ : state) {
    TimerWheel wheel(kStart);
    benchmark::DoNotOptimize(&wheel);
  }
}
BENCHMARK(BM_Construct);

}  // namespace
}  // namespace weft
