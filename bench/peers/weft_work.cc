// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// weft's part in compare.py, by its public interface only.

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "weft/bench/peers/posts.h"
#include "weft/bench/peers/work.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"

namespace weft::bench {
namespace {

std::unique_ptr<EventLoop> MakeLoop() { return std::move(EventLoop::Create()).value(); }

// 24 bytes of captures.
struct Link {
  EventLoop* loop;
  int64_t* left;
  int64_t number;

  void operator()() const {
    if (--*left == 0) return loop->Stop();
    loop->CallSoon(Link{loop, left, number + 1});
  }
};

void PostChain(int64_t count, Meter& meter) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  for (int64_t left : {int64_t{100}, count}) {
    loop->CallSoon(Link{loop.get(), &left, 0});
    if (left == count) meter.Begin();
    loop->RunForever();
  }
  meter.End("ns", count);
  loop->Close();
}

void PostBatch(int64_t count, Meter& meter) {
  const auto post = [](int64_t batches) -> Coro<int64_t> {
    EventLoop& loop = GetRunningLoop();
    int64_t sum = 0;
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < kBatch; ++i) {
        loop.CallSoon([&sum, i, extra = int64_t{1}] { sum += i + extra; });
      }
      co_await Yield();
    }
    co_return sum;
  };
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(post(2));
  const int64_t batches = count / kBatch;
  meter.Begin();
  loop->RunUntilComplete(post(batches));
  meter.End("ns", batches * kBatch);
  loop->Close();
}

Coro<> YieldTimes(int64_t times) {
  for (int64_t i = 0; i < times; ++i) co_await Sleep(absl::ZeroDuration());
}

template <int64_t kTasks>
void Switch(int64_t count, Meter& meter) {
  const auto run = [](int64_t steps) -> Coro<> {
    std::vector<Task<>> tasks;
    for (int64_t i = 0; i < kTasks; ++i) tasks.push_back(CreateTask(YieldTimes(steps)));
    for (Task<>& task : tasks) co_await std::move(task);
  };
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(run(2));
  const int64_t steps = count / kTasks;
  meter.Begin();
  loop->RunUntilComplete(run(steps));
  meter.End("ns", steps * kTasks);
  loop->Close();
}

Coro<> DoNothing() { co_return; }

void Spawn(int64_t count, Meter& meter) {
  const auto run = [](int64_t batches) -> Coro<> {
    std::vector<Task<>> tasks;
    tasks.reserve(kBatch);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < kBatch; ++i) tasks.push_back(CreateTask(DoNothing()));
      for (Task<>& task : tasks) co_await std::move(task);
      tasks.clear();
    }
  };
  std::unique_ptr<EventLoop> loop = MakeLoop();
  loop->RunUntilComplete(run(2));
  const int64_t batches = count / kBatch;
  meter.Begin();
  loop->RunUntilComplete(run(batches));
  meter.End("ns", batches * kBatch);
  loop->Close();
}

void Timers(int64_t count, Meter& meter) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  int64_t fired = 0;
  std::vector<TimerHandle> timers;
  timers.reserve(static_cast<size_t>(count));
  const auto insert = [&](TimePoint now, int64_t divisor) {
    for (const int64_t delay : delays) {
      timers.push_back(
          loop->CallAt(now + absl::Nanoseconds(delay / divisor), [&loop, &fired, count] {
            if (++fired == count) loop->Stop();
          }));
    }
  };
  // The first filling brings the memory, which is kept.
  insert(loop->Time(), 1);
  timers.clear();
  loop->Close();
  loop = MakeLoop();

  const TimePoint now = loop->Time();
  meter.Begin();
  insert(now, 1);
  meter.End("insert", count);

  meter.Begin();
  for (const int64_t i : order) timers[static_cast<size_t>(i)].Cancel();
  meter.End("cancel", count);
  timers.clear();

  // All are due by the time that they have been set.
  insert(loop->Time(), 1'000'000);
  for (const int64_t end = Now() + 1'000'000; Now() < end;) {
  }
  meter.Begin();
  loop->RunForever();
  meter.End("fire", count);
  timers.clear();
  loop->Close();
}

void Lateness(int64_t count, Meter& meter) {
  const auto run = [](int64_t times) -> Coro<std::vector<int64_t>> {
    std::vector<int64_t> late;
    late.reserve(static_cast<size_t>(times));
    RandomWaits waits;
    for (int64_t i = 0; i < times; ++i) {
      const int64_t wait = waits.Next();
      const int64_t due = Now() + wait;
      co_await Sleep(absl::Nanoseconds(wait));
      late.push_back(Now() - due);
    }
    co_return late;
  };
  meter.PrintLateness(Run(run(count)));
}

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  std::unique_ptr<EventLoop> loop = MakeLoop();
  const auto post = [ref = loop->Ref(), loop = loop.get()](int64_t* left) {
    ref.Post([left, loop] {
      if (--*left == 0) loop->Stop();
    });
  };
  MeasurePosts<kProducers>(count, meter, post, [&loop] { loop->RunForever(); });
  loop->Close();
}

void PingPong(int64_t count, Meter& meter) {
  std::unique_ptr<EventLoop> here = MakeLoop();
  std::unique_ptr<EventLoop> there = MakeLoop();
  std::thread thread([&there] { there->RunForever(); });
  struct Ping {
    LoopRef here;
    LoopRef there;
    int64_t left;
    void operator()() {
      if (left-- == 0) return GetRunningLoop().Stop();
      there.Post([this] { here.Post(std::ref(*this)); });
    }
  };
  Ping ping{here->Ref(), there->Ref(), count};
  here->CallSoon(std::ref(ping));
  meter.Begin();
  here->RunForever();
  meter.End("ns", count);
  ping.there.Post([&there] { there->Stop(); });
  thread.join();
  there->Close();
  here->Close();
}

void StartStop(int64_t count, Meter& meter) {
  MakeLoop()->Close();
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) MakeLoop()->Close();
  meter.End("ns", count);
}

Coro<> SleepLong() { co_await Sleep(absl::Hours(1)); }

void SleepingTasks(int64_t count, Meter& meter) {
  const auto run = [&meter](int64_t tasks) -> Coro<> {
    std::vector<Task<>> all;
    all.reserve(static_cast<size_t>(tasks));
    const int64_t before = AllocatedBytes();
    for (int64_t i = 0; i < tasks; ++i) all.push_back(CreateTask(SleepLong()));
    co_await Yield();
    co_await Yield();
    meter.Print("bytes",
                static_cast<double>(AllocatedBytes() - before) / static_cast<double>(tasks));
  };
  Run(run(count));
}

int Main(int argc, char** argv) {
  return WorkMain(argc, argv,
                  {{"post_chain", PostChain},
                   {"post_batch", PostBatch},
                   {"switch_2", Switch<2>},
                   {"switch_1000", Switch<1000>},
                   {"spawn", Spawn},
                   {"timers", Timers},
                   {"lateness", Lateness},
                   {"posts_1", Posts<1>},
                   {"posts_4", Posts<4>},
                   {"ping_pong", PingPong},
                   {"start_stop", StartStop},
                   {"sleeping_tasks", SleepingTasks}});
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::Main(argc, argv); }
