// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// libuv's part in compare.py. Its nearest to a post from the loop's own thread is an idle
// handle: one that runs in each turn of the loop.

#include <uv.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "weft/bench/peers/posts.h"
#include "weft/bench/peers/work.h"

namespace weft::bench {
namespace {

// A loop of one's own, closed with all its handles at the end: they are declared before it.
class Loop {
 public:
  Loop() { uv_loop_init(&loop_); }
  ~Loop() {
    uv_walk(
        &loop_,
        [](uv_handle_t* handle, void*) {
          if (!uv_is_closing(handle)) uv_close(handle, nullptr);
        },
        nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }
  uv_loop_t* get() { return &loop_; }

 private:
  uv_loop_t loop_;
};

void PostChain(int64_t count, Meter& meter) {
  uv_idle_t idle;
  Loop loop;
  uv_idle_init(loop.get(), &idle);
  int64_t left = count;
  idle.data = &left;
  uv_idle_start(&idle, [](uv_idle_t* handle) {
    if (--*static_cast<int64_t*>(handle->data) == 0) uv_idle_stop(handle);
  });
  meter.Begin();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  meter.End("ns", count);
}

void PostBatch(int64_t count, Meter& meter) {
  const int64_t batches = count / kBatch;
  int64_t sum = 0;
  std::vector<uv_idle_t> idles(kBatch);
  Loop loop;
  for (uv_idle_t& idle : idles) {
    uv_idle_init(loop.get(), &idle);
    idle.data = &sum;
    uv_idle_start(&idle, [](uv_idle_t* handle) { ++*static_cast<int64_t*>(handle->data); });
  }
  meter.Begin();
  for (int64_t b = 0; b < batches; ++b) uv_run(loop.get(), UV_RUN_NOWAIT);
  meter.End("ns", batches * kBatch);
}

int64_t fired = 0;

void Timers(int64_t count, Meter& meter) {
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  std::vector<uv_timer_t> timers(static_cast<size_t>(count));
  Loop loop;
  for (uv_timer_t& timer : timers) uv_timer_init(loop.get(), &timer);
  const auto insert = [&](int64_t divisor) {
    for (size_t i = 0; i < timers.size(); ++i) {
      const auto milliseconds = static_cast<uint64_t>(delays[i] / divisor / 1'000'000);
      uv_timer_start(&timers[i], [](uv_timer_t*) { ++fired; }, milliseconds, 0);
    }
  };
  insert(1);
  for (uv_timer_t& timer : timers) uv_timer_stop(&timer);

  meter.Begin();
  insert(1);
  meter.End("insert", count);

  meter.Begin();
  for (const int64_t i : order) uv_timer_stop(&timers[static_cast<size_t>(i)]);
  meter.End("cancel", count);

  uv_update_time(loop.get());
  insert(1'000'000);
  for (const int64_t end = Now() + 1'000'000; Now() < end;) {
  }
  meter.Begin();
  while (fired < count) uv_run(loop.get(), UV_RUN_NOWAIT);
  meter.End("fire", count);
}

struct Late {
  uv_timer_t timer;
  RandomWaits waits;
  int64_t due;
  int64_t left;
  std::vector<int64_t> late;

  // A loop of milliseconds, rounded up: never early.
  void Arm() {
    const int64_t wait = waits.Next();
    due = Now() + wait;
    uv_update_time(timer.loop);
    uv_timer_start(&timer, &Late::OnTimer, static_cast<uint64_t>((wait + 999'999) / 1'000'000), 0);
  }
  static void OnTimer(uv_timer_t* handle) {
    auto* self = static_cast<Late*>(handle->data);
    self->late.push_back(Now() - self->due);
    if (--self->left > 0) self->Arm();
  }
};

void Lateness(int64_t count, Meter& meter) {
  Late late = {{}, {}, 0, count, {}};
  Loop loop;
  uv_timer_init(loop.get(), &late.timer);
  late.timer.data = &late;
  late.Arm();
  uv_run(loop.get(), UV_RUN_DEFAULT);
  meter.PrintLateness(std::move(late.late));
}

struct Inbox {
  uv_async_t async;
  LockedInbox posts;
};

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  Inbox inbox;
  Loop loop;
  inbox.async.data = &inbox;
  uv_async_init(loop.get(), &inbox.async, [](uv_async_t* handle) {
    if (static_cast<Inbox*>(handle->data)->posts.Drain()) uv_stop(handle->loop);
  });
  const auto post = [&inbox](int64_t* left) {
    if (inbox.posts.Add(left)) uv_async_send(&inbox.async);
  };
  MeasurePosts<kProducers>(count, meter, post, [&loop] { uv_run(loop.get(), UV_RUN_DEFAULT); });
}

struct Player {
  uv_async_t async;
  Player* other;
  int64_t left;
  bool is_first;
};

void PingPong(int64_t count, Meter& meter) {
  Player players[2] = {};
  Loop loops[2];
  for (int i = 0; i < 2; ++i) {
    players[i].other = &players[1 - i];
    players[i].left = count;
    players[i].is_first = i == 0;
    players[i].async.data = &players[i];
    uv_async_init(loops[i].get(), &players[i].async, [](uv_async_t* handle) {
      auto* self = static_cast<Player*>(handle->data);
      const bool is_last = --self->left == 0;
      if (!self->is_first || !is_last) uv_async_send(&self->other->async);
      if (is_last) uv_stop(handle->loop);
    });
  }
  std::thread thread([&loops] { uv_run(loops[1].get(), UV_RUN_DEFAULT); });
  meter.Begin();
  uv_async_send(&players[1].async);
  uv_run(loops[0].get(), UV_RUN_DEFAULT);
  meter.End("ns", count);
  thread.join();
}

void StartStop(int64_t count, Meter& meter) {
  {
    Loop first;
  }
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) Loop another;
  meter.End("ns", count);
}

int Main(int argc, char** argv) {
  return WorkMain(argc, argv,
                  {{"post_chain", PostChain},
                   {"post_batch", PostBatch},
                   {"timers", Timers},
                   {"lateness", Lateness},
                   {"posts_1", Posts<1>},
                   {"posts_4", Posts<4>},
                   {"ping_pong", PingPong},
                   {"start_stop", StartStop}});
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::Main(argc, argv); }
