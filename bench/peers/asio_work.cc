// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Asio's part in compare.py: handlers, and its coroutines for what has to do with tasks.

#include <boost/asio.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "weft/bench/peers/posts.h"
#include "weft/bench/peers/work.h"

namespace weft::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Timer = asio::steady_timer;

// For one thread, with its lock: posts from others are allowed.
constexpr int kOneThread = 1;

// 24 bytes of captures.
struct Link {
  asio::io_context* context;
  int64_t* left;
  int64_t number;

  void operator()() const {
    if (--*left > 0) asio::post(*context, Link{context, left, number + 1});
  }
};

void PostChain(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  int64_t left = count;
  asio::post(context, Link{&context, &left, 0});
  meter.Begin();
  context.run();
  meter.End("ns", count);
}

void PostBatch(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  int64_t sum = 0;
  const auto run = [&](int64_t batches) {
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < kBatch; ++i) {
        asio::post(context, [&sum, i, extra = int64_t{1}] { sum += i + extra; });
      }
      context.restart();
      context.poll();
    }
  };
  run(2);
  const int64_t batches = count / kBatch;
  meter.Begin();
  run(batches);
  meter.End("ns", batches * kBatch);
}

asio::awaitable<void> YieldTimes(int64_t times) {
  for (int64_t i = 0; i < times; ++i) co_await asio::post(asio::use_awaitable);
}

template <int64_t kTasks>
void Switch(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  const int64_t steps = count / kTasks;
  for (int64_t i = 0; i < kTasks; ++i) asio::co_spawn(context, YieldTimes(steps), asio::detached);
  meter.Begin();
  context.run();
  meter.End("ns", steps * kTasks);
}

asio::awaitable<void> DoNothing() { co_return; }

void Spawn(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  int64_t done = 0;
  const auto run = [&](int64_t batches) {
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < kBatch; ++i) {
        asio::co_spawn(context, DoNothing(), [&done](std::exception_ptr) { ++done; });
      }
      context.restart();
      context.poll();
    }
  };
  run(2);
  const int64_t batches = count / kBatch;
  meter.Begin();
  run(batches);
  meter.End("ns", batches * kBatch);
  if (done != (batches + 2) * kBatch) std::terminate();
}

void Timers(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  int64_t fired = 0;
  std::vector<Timer> timers;
  timers.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) timers.emplace_back(context);
  const auto insert = [&](Timer::time_point now, int64_t divisor) {
    for (size_t i = 0; i < timers.size(); ++i) {
      timers[i].expires_at(now + std::chrono::nanoseconds(delays[i] / divisor));
      timers[i].async_wait([&fired](error_code error) {
        if (!error) ++fired;
      });
    }
  };
  insert(Timer::clock_type::now(), 1);
  for (Timer& timer : timers) timer.cancel();
  context.poll();
  context.restart();

  const Timer::time_point now = Timer::clock_type::now();
  meter.Begin();
  insert(now, 1);
  meter.End("insert", count);

  // With what it does for those that were cancelled: their handlers run.
  meter.Begin();
  for (const int64_t i : order) timers[static_cast<size_t>(i)].cancel();
  context.poll();
  meter.End("cancel", count);
  context.restart();

  insert(Timer::clock_type::now(), 1'000'000);
  for (const int64_t end = Now() + 1'000'000; Now() < end;) {
  }
  meter.Begin();
  while (fired < count) {
    context.restart();
    context.poll();
  }
  meter.End("fire", count);
}

void Lateness(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  std::vector<int64_t> late;
  const auto run = [&](int64_t times) -> asio::awaitable<void> {
    Timer timer(context);
    RandomWaits waits;
    for (int64_t i = 0; i < times; ++i) {
      const int64_t wait = waits.Next();
      const int64_t due = Now() + wait;
      timer.expires_after(std::chrono::nanoseconds(wait));
      co_await timer.async_wait(asio::use_awaitable);
      late.push_back(Now() - due);
    }
  };
  asio::co_spawn(context, run(count), asio::detached);
  context.run();
  meter.PrintLateness(std::move(late));
}

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  asio::io_context context;
  std::optional work(asio::make_work_guard(context));
  const auto post = [&context, &work](int64_t* left) {
    asio::post(context, [left, &work] {
      if (--*left == 0) work.reset();
    });
  };
  MeasurePosts<kProducers>(count, meter, post, [&context] { context.run(); });
}

void PingPong(int64_t count, Meter& meter) {
  asio::io_context here;
  asio::io_context there;
  std::optional here_work(asio::make_work_guard(here));
  std::optional there_work(asio::make_work_guard(there));
  std::thread thread([&there] { there.run(); });
  struct Ping {
    asio::io_context* here;
    asio::io_context* there;
    decltype(here_work)* work;
    int64_t left;
    void operator()() {
      if (left-- == 0) return work->reset();
      asio::post(*there, [this] { asio::post(*here, [this] { (*this)(); }); });
    }
  };
  Ping ping{&here, &there, &here_work, count};
  asio::post(here, [&ping] { ping(); });
  meter.Begin();
  here.run();
  meter.End("ns", count);
  asio::post(there, [&there_work] { there_work.reset(); });
  thread.join();
}

void StartStop(int64_t count, Meter& meter) {
  {
    asio::io_context first(kOneThread);
  }
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) asio::io_context another(kOneThread);
  meter.End("ns", count);
}

void SleepingTasks(int64_t count, Meter& meter) {
  asio::io_context context(kOneThread);
  const auto sleep_long = [](asio::io_context& own) -> asio::awaitable<void> {
    Timer timer(own, std::chrono::hours(1));
    co_await timer.async_wait(asio::use_awaitable);
  };
  const int64_t before = AllocatedBytes();
  for (int64_t i = 0; i < count; ++i) {
    asio::co_spawn(context, sleep_long(context), asio::detached);
  }
  context.poll();
  meter.Print("bytes", static_cast<double>(AllocatedBytes() - before) / static_cast<double>(count));
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
