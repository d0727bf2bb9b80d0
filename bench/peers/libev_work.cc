// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// libev's part in compare.py. It has no closures: its watchers are structures of the caller's,
// so a post is a watcher that is fed.

#include <ev.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "weft/bench/peers/posts.h"
#include "weft/bench/peers/work.h"

namespace weft::bench {
namespace {

using Loop = struct ev_loop;

struct Link {
  ev_prepare watcher;  // The first member: what it is given back as.
  int64_t left;
};

void PostChain(int64_t count, Meter& meter) {
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  Link link = {{}, count};
  ev_prepare_init(&link.watcher, [](Loop* l, ev_prepare* watcher, int) {
    if (--reinterpret_cast<Link*>(watcher)->left > 0) ev_feed_event(l, watcher, EV_CUSTOM);
  });
  ev_feed_event(loop, &link.watcher, EV_CUSTOM);
  meter.Begin();
  ev_run(loop, EVRUN_NOWAIT);
  while (link.left > 0) ev_run(loop, EVRUN_NOWAIT);
  meter.End("ns", count);
  ev_loop_destroy(loop);
}

void PostBatch(int64_t count, Meter& meter) {
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  std::vector<Link> links(kBatch);
  for (Link& link : links) {
    ev_prepare_init(&link.watcher, [](Loop*, ev_prepare* watcher, int) {
      ++reinterpret_cast<Link*>(watcher)->left;
    });
  }
  const int64_t batches = count / kBatch;
  meter.Begin();
  for (int64_t b = 0; b < batches; ++b) {
    for (Link& link : links) ev_feed_event(loop, &link.watcher, EV_CUSTOM);
    ev_run(loop, EVRUN_NOWAIT);
  }
  meter.End("ns", batches * kBatch);
  ev_loop_destroy(loop);
}

int64_t fired = 0;

void Timers(int64_t count, Meter& meter) {
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  std::vector<ev_timer> timers(static_cast<size_t>(count));
  const auto insert = [&](double divisor) {
    for (size_t i = 0; i < timers.size(); ++i) {
      ev_timer_init(
          &timers[i], [](Loop*, ev_timer*, int) { ++fired; },
          static_cast<double>(delays[i]) / divisor / 1e9, 0);
      ev_timer_start(loop, &timers[i]);
    }
  };
  insert(1);
  for (ev_timer& timer : timers) ev_timer_stop(loop, &timer);

  meter.Begin();
  insert(1);
  meter.End("insert", count);

  meter.Begin();
  for (const int64_t i : order) ev_timer_stop(loop, &timers[static_cast<size_t>(i)]);
  meter.End("cancel", count);

  ev_now_update(loop);
  insert(1e6);
  for (const int64_t end = Now() + 1'000'000; Now() < end;) {
  }
  meter.Begin();
  while (fired < count) ev_run(loop, EVRUN_NOWAIT);
  meter.End("fire", count);
  ev_loop_destroy(loop);
}

struct Late {
  ev_timer timer;
  RandomWaits waits;
  int64_t due;
  int64_t left;
  std::vector<int64_t> late;
};

void Arm(Loop* loop, Late* late) {
  const int64_t wait = late->waits.Next();
  late->due = Now() + wait;
  ev_now_update(loop);
  ev_timer_set(&late->timer, static_cast<double>(wait) / 1e9, 0);
  ev_timer_start(loop, &late->timer);
}

void Lateness(int64_t count, Meter& meter) {
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  Late late = {{}, {}, 0, count, {}};
  ev_init(&late.timer, [](Loop* l, ev_timer* timer, int) {
    auto* self = reinterpret_cast<Late*>(timer);
    self->late.push_back(Now() - self->due);
    if (--self->left > 0) Arm(l, self);
  });
  Arm(loop, &late);
  ev_run(loop, 0);
  ev_loop_destroy(loop);
  meter.PrintLateness(std::move(late.late));
}

struct Inbox {
  ev_async async;
  LockedInbox posts;
};

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  Loop* loop = ev_loop_new(EVBACKEND_EPOLL);
  Inbox inbox;
  ev_async_init(&inbox.async, [](Loop* l, ev_async* async, int) {
    if (reinterpret_cast<Inbox*>(async)->posts.Drain()) ev_break(l, EVBREAK_ALL);
  });
  ev_async_start(loop, &inbox.async);
  const auto post = [&inbox, loop](int64_t* left) {
    if (inbox.posts.Add(left)) ev_async_send(loop, &inbox.async);
  };
  MeasurePosts<kProducers>(count, meter, post, [loop] { ev_run(loop, 0); });
  ev_loop_destroy(loop);
}

struct Player {
  ev_async async;
  Loop* loop;
  Player* other;
  int64_t left;
};

void PingPong(int64_t count, Meter& meter) {
  Player players[2] = {};
  for (int i = 0; i < 2; ++i) {
    players[i].loop = ev_loop_new(EVBACKEND_EPOLL);
    players[i].other = &players[1 - i];
    players[i].left = count;
    ev_async_init(&players[i].async, [](Loop* loop, ev_async* async, int) {
      auto* self = reinterpret_cast<Player*>(async);
      // The first asks as often as there are answers to come.
      const bool is_first = self < self->other;
      const bool is_last = --self->left == 0;
      if (!is_first || !is_last) ev_async_send(self->other->loop, &self->other->async);
      if (is_last) ev_break(loop, EVBREAK_ALL);
    });
    ev_async_start(players[i].loop, &players[i].async);
  }
  std::thread thread([&players] { ev_run(players[1].loop, 0); });
  meter.Begin();
  ev_async_send(players[1].loop, &players[1].async);
  ev_run(players[0].loop, 0);
  meter.End("ns", count);
  thread.join();
  for (Player& player : players) ev_loop_destroy(player.loop);
}

void StartStop(int64_t count, Meter& meter) {
  ev_loop_destroy(ev_loop_new(EVBACKEND_EPOLL));
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) ev_loop_destroy(ev_loop_new(EVBACKEND_EPOLL));
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
