// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What the loop adds to the work that it is there for: a callback, a turn of a
// task, a task that comes and goes, a timer, a word from another thread. All of
// it on a real loop, with the polls that it makes meanwhile. `allocs` counts the
// calls of operator new per operation once the free lists are filled: it is to
// be 0 wherever something is done again and again.
//
//   tools/bazel run -c opt //loop:loop_benchmark

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "weft/bench/allocations.h"
#include "weft/core/clock.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"

namespace weft {
namespace {

using bench::AllocationCount;

constexpr int64_t kBatch = 1000;

std::unique_ptr<EventLoop> MakeLoop(Clock* clock = nullptr) {
  LoopOptions options;
  options.environment.clock = clock;
  return std::move(EventLoop::Create(options)).value();
}

// --- Callbacks ---

// 24 bytes of captures, as a callback has that knows what it is about.
struct Link {
  EventLoop* loop;
  benchmark::State* state;
  int64_t* left;

  void operator()() const {
    if (--*left == 0) {
      if (!state->KeepRunningBatch(kBatch)) return loop->Stop();
      *left = kBatch;
    }
    loop->CallSoon(Link(*this));
  }
};

// Each callback posts the next: a round for every one of them.
void BM_PostChain(benchmark::State& state) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->CallSoon([&loop] { loop->Stop(); });
  loop->RunForever();
  int64_t left = 1;
  loop->CallSoon(Link{loop.get(), &state, &left});

  AllocationCount allocations(state);
  loop->RunForever();
  allocations.Report();
  loop->Close();
}
BENCHMARK(BM_PostChain);

Coro<> PostBatches(benchmark::State& state) {
  EventLoop& loop = GetRunningLoop();
  int64_t sum = 0;
  for (int i = 0; i < kBatch; ++i) loop.CallSoon([] {});
  co_await Yield();

  AllocationCount allocations(state);
  while (state.KeepRunningBatch(kBatch)) {
    for (int64_t i = 0; i < kBatch; ++i) {
      loop.CallSoon([&sum, i, extra = int64_t{1}] { sum += i + extra; });
    }
    co_await Yield();
  }
  benchmark::DoNotOptimize(sum);
  allocations.Report();
}

// A thousand at a time, all in one round.
void BM_PostBatch(benchmark::State& state) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(PostBatches(state));
  loop->Close();
}
BENCHMARK(BM_PostBatch);

// --- Tasks ---

Coro<> YieldUntil(const bool* done) {
  while (!*done) co_await Sleep(absl::ZeroDuration());
}

Coro<> YieldWithOthers(benchmark::State& state) {
  const int64_t tasks = state.range(0);
  bool done = false;
  std::vector<Task<>> others;
  for (int64_t i = 1; i < tasks; ++i) others.push_back(CreateTask(YieldUntil(&done)));
  co_await Yield();

  AllocationCount allocations(state);
  while (state.KeepRunningBatch(kBatch * tasks)) {
    for (int64_t i = 0; i < kBatch; ++i) co_await Sleep(absl::ZeroDuration());
  }
  allocations.Report();
  done = true;
  for (Task<>& other : others) co_await std::move(other);
}

// Sleep(0) in each of `tasks` tasks: the time of one step of one of them.
void BM_Switch(benchmark::State& state) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(YieldWithOthers(state));
  loop->Close();
}
BENCHMARK(BM_Switch)->ArgName("tasks")->Arg(2)->Arg(1'000);

Coro<> DoNothing() { co_return; }

Coro<> SpawnBatches(benchmark::State& state) {
  std::vector<Task<>> tasks;
  tasks.reserve(kBatch);
  const auto spawn_and_join = [&tasks]() -> Coro<> {
    for (int64_t i = 0; i < kBatch; ++i) tasks.push_back(CreateTask(DoNothing()));
    for (Task<>& task : tasks) co_await std::move(task);
    tasks.clear();
  };
  co_await spawn_and_join();

  AllocationCount allocations(state);
  while (state.KeepRunningBatch(kBatch)) co_await spawn_and_join();
  allocations.Report();
}

// A task that returns at once: created, run, awaited, gone; a thousand at a time.
void BM_SpawnAndJoin(benchmark::State& state) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(SpawnBatches(state));
  loop->Close();
}
BENCHMARK(BM_SpawnAndJoin);

// --- Timers ---

// A clock that stands where it is put.
class SetClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(absl::Duration delta) { now_ += delta; }

 private:
  TimePoint now_ = TimePoint::FromNanoseconds(3'600'000'000'000);
};

constexpr absl::Duration kSpan = absl::Minutes(1);

// Random delays up to a minute, the same in every run: it is their order in
// memory that makes many timers slow.
std::vector<absl::Duration> MakeDelays(int64_t count) {
  std::mt19937_64 random(1);
  const auto span = static_cast<uint64_t>(absl::ToInt64Nanoseconds(kSpan));
  std::vector<absl::Duration> delays;
  for (int64_t i = 0; i < count; ++i) {
    delays.push_back(absl::Nanoseconds(static_cast<int64_t>(1 + random() % span)));
  }
  return delays;
}

int64_t fired = 0;

// `timers` armed timers and their handles; the loop's time stands still.
struct Timers {
  explicit Timers(benchmark::State& state)
      : count(state.range(0)), loop(MakeLoop(&clock)), delays(MakeDelays(count)) {
    handles.reserve(static_cast<size_t>(count));
    // Slots are kept by the process, so one filling is enough for all benchmarks.
    static int64_t most = 0;
    if (count <= most) return;
    most = count;
    ArmAll();
    CancelAll();
  }
  ~Timers() { loop->Close(); }

  void ArmAll() {
    const TimePoint now = clock.Now();
    for (const absl::Duration delay : delays) {
      handles.push_back(loop->CallAt(now + delay, [] { ++fired; }));
    }
  }
  void CancelAll() {
    for (TimerHandle& handle : handles) handle.Cancel();
    handles.clear();
  }

  int64_t count;
  SetClock clock;
  std::unique_ptr<EventLoop> loop;
  std::vector<absl::Duration> delays;
  std::vector<TimerHandle> handles;
};

// CallAt() until there are so many.
void BM_CallAt(benchmark::State& state) {
  Timers timers(state);
  AllocationCount allocations(state);
  for (auto _ : state) {
    timers.ArmAll();
    state.PauseTiming();
    timers.CancelAll();
    state.ResumeTiming();
  }
  allocations.Report(timers.count);
}
BENCHMARK(BM_CallAt)->ArgName("timers")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

// Cancelling all of them, in any order.
void BM_CancelTimer(benchmark::State& state) {
  Timers timers(state);
  AllocationCount allocations(state);
  for (auto _ : state) {
    state.PauseTiming();
    allocations.Pause();
    timers.ArmAll();
    std::shuffle(timers.handles.begin(), timers.handles.end(), std::mt19937_64(2));
    allocations.Resume();
    state.ResumeTiming();
    timers.CancelAll();
  }
  allocations.Report(timers.count);
}
BENCHMARK(BM_CancelTimer)->ArgName("timers")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

// All of them fire, a hundred a round, and run their callbacks.
void BM_FireTimer(benchmark::State& state) {
  Timers timers(state);
  const absl::Duration step = kSpan * 100 / timers.count;
  AllocationCount allocations(state);
  for (auto _ : state) {
    state.PauseTiming();
    allocations.Pause();
    timers.ArmAll();
    const int64_t all = fired + timers.count;
    allocations.Resume();
    state.ResumeTiming();
    while (fired < all) {
      timers.clock.Advance(step);
      timers.loop->RunOnce(absl::ZeroDuration());
    }
    state.PauseTiming();
    timers.handles.clear();
    state.ResumeTiming();
  }
  allocations.Report(timers.count);
}
BENCHMARK(BM_FireTimer)->ArgName("timers")->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

// A timeout that is not needed: CallLater(), which reads the clock, and Cancel().
void BM_CallLaterAndCancel(benchmark::State& state) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  AllocationCount allocations(state);
  for (auto _ : state) {
    loop->CallLater(absl::Seconds(30), [] { ++fired; }).Cancel();
  }
  allocations.Report();
  loop->Close();
}
BENCHMARK(BM_CallLaterAndCancel);

// --- Other threads ---

constexpr int kPosts = 100'000;  // Of each producer.

// From the first post to the last callback; the loop runs meanwhile, and sleeps
// whenever it is faster.
void BM_PostFromThreads(benchmark::State& state) {
  const int producers = static_cast<int>(state.range(0));
  std::unique_ptr<EventLoop> loop = MakeLoop();
  int64_t left = 0;
  const auto post_and_run = [&] {
    left = int64_t{producers} * kPosts;
    std::latch start(producers + 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < producers; ++i) {
      threads.emplace_back([&left, &start, ref = loop->Ref(), loop = loop.get()] {
        start.arrive_and_wait();
        for (int n = 0; n < kPosts; ++n) {
          ref.Post([&left, loop] {
            if (--left == 0) loop->Stop();
          });
        }
      });
    }
    start.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    loop->RunForever();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    for (std::thread& thread : threads) thread.join();
    return elapsed.count();
  };
  post_and_run();

  AllocationCount allocations(state);
  for (auto _ : state) state.SetIterationTime(post_and_run());
  allocations.Report(int64_t{producers} * kPosts);
  loop->Close();
}
BENCHMARK(BM_PostFromThreads)->ArgName("producers")->Arg(1)->Arg(4)->UseManualTime();

// A post to a loop on another thread, and one back; both sleep in between.
void BM_RoundTrip(benchmark::State& state) {
  std::unique_ptr<EventLoop> here = MakeLoop();
  std::unique_ptr<EventLoop> there = MakeLoop();
  std::thread thread([&there] { there->RunForever(); });
  const LoopRef here_ref = here->Ref();
  const LoopRef there_ref = there->Ref();

  struct Ping {
    const LoopRef& here;
    const LoopRef& there;
    benchmark::State& state;
    void operator()() const {
      if (!state.KeepRunning()) return GetRunningLoop().Stop();
      there.Post([ping = this] { ping->here.Post(std::ref(*ping)); });
    }
  };
  const Ping ping{here_ref, there_ref, state};
  AllocationCount allocations(state);
  here->CallSoon(std::ref(ping));
  here->RunForever();
  allocations.Report();

  there_ref.Post([&there] { there->Stop(); });
  thread.join();
  there->Close();
  here->Close();
}
BENCHMARK(BM_RoundTrip)->UseRealTime();

Coro<> AskThread(benchmark::State& state) {
  co_await ToThread([] {});
  AllocationCount allocations(state);
  while (state.KeepRunning()) co_await ToThread([] {});
  allocations.Report();
}

// A job in the default pool, and its result.
void BM_ToThread(benchmark::State& state) { Run(AskThread(state)); }
BENCHMARK(BM_ToThread)->UseRealTime();

// --- Being there ---

// A loop that nobody uses.
void BM_CreateAndClose(benchmark::State& state) {
  MakeLoop()->Close();
  AllocationCount allocations(state);
  for (auto _ : state) MakeLoop()->Close();
  allocations.Report();
}
BENCHMARK(BM_CreateAndClose);

// A program that does nothing.
void BM_Run(benchmark::State& state) {
  Run(DoNothing());
  AllocationCount allocations(state);
  for (auto _ : state) Run(DoNothing());
  allocations.Report();
}
BENCHMARK(BM_Run);

}  // namespace
}  // namespace weft
