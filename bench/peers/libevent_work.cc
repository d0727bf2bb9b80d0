// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// libevent's part in compare.py. A post is an event made active.

#include <event2/event.h>
#include <event2/thread.h>
#include <sys/time.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "weft/bench/peers/posts.h"
#include "weft/bench/peers/work.h"

namespace weft::bench {
namespace {

timeval ToTimeval(int64_t nanoseconds) {
  return {static_cast<time_t>(nanoseconds / 1'000'000'000),
          static_cast<suseconds_t>(nanoseconds / 1000 % 1'000'000)};
}

event_base* MakeBase(bool is_precise = false) {
  event_config* config = event_config_new();
  if (is_precise) event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

struct Link {
  event* self;
  int64_t left;
};

void PostChain(int64_t count, Meter& meter) {
  event_base* base = MakeBase();
  Link link = {nullptr, count};
  link.self = event_new(
      base, -1, 0,
      [](evutil_socket_t, short, void* data) {
        auto* own = static_cast<Link*>(data);
        if (--own->left > 0) event_active(own->self, EV_TIMEOUT, 0);
      },
      &link);
  event_active(link.self, EV_TIMEOUT, 0);
  meter.Begin();
  event_base_dispatch(base);
  meter.End("ns", count);
  event_free(link.self);
  event_base_free(base);
}

void PostBatch(int64_t count, Meter& meter) {
  event_base* base = MakeBase();
  int64_t sum = 0;
  std::vector<event*> events;
  for (int64_t i = 0; i < kBatch; ++i) {
    events.push_back(event_new(
        base, -1, 0, [](evutil_socket_t, short, void* data) { ++*static_cast<int64_t*>(data); },
        &sum));
  }
  const int64_t batches = count / kBatch;
  meter.Begin();
  for (int64_t b = 0; b < batches; ++b) {
    for (event* each : events) event_active(each, EV_TIMEOUT, 0);
    event_base_loop(base, EVLOOP_NONBLOCK);
  }
  meter.End("ns", batches * kBatch);
  for (event* each : events) event_free(each);
  event_base_free(base);
}

int64_t fired = 0;

void Timers(int64_t count, Meter& meter) {
  event_base* base = MakeBase();
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  std::vector<event*> timers;
  for (int64_t i = 0; i < count; ++i) {
    timers.push_back(evtimer_new(base, [](evutil_socket_t, short, void*) { ++fired; }, nullptr));
  }
  const auto insert = [&](int64_t divisor) {
    for (size_t i = 0; i < timers.size(); ++i) {
      const timeval delay = ToTimeval(delays[i] / divisor);
      evtimer_add(timers[i], &delay);
    }
  };
  insert(1);
  for (event* timer : timers) evtimer_del(timer);

  meter.Begin();
  insert(1);
  meter.End("insert", count);

  meter.Begin();
  for (const int64_t i : order) evtimer_del(timers[static_cast<size_t>(i)]);
  meter.End("cancel", count);

  insert(1'000'000);
  for (const int64_t end = Now() + 1'000'000; Now() < end;) {
  }
  meter.Begin();
  while (fired < count) event_base_loop(base, EVLOOP_NONBLOCK);
  meter.End("fire", count);
  for (event* timer : timers) event_free(timer);
  event_base_free(base);
}

struct Late {
  event* timer;
  RandomWaits waits;
  int64_t due;
  int64_t left;
  std::vector<int64_t> late;

  void Arm() {
    // In whole microseconds.
    const int64_t wait = waits.Next() / 1000 * 1000;
    due = Now() + wait;
    const timeval delay = ToTimeval(wait);
    evtimer_add(timer, &delay);
  }
};

void Lateness(int64_t count, Meter& meter) {
  event_base* base = MakeBase(/*is_precise=*/true);
  Late late = {nullptr, {}, 0, count, {}};
  late.timer = evtimer_new(
      base,
      [](evutil_socket_t, short, void* data) {
        auto* self = static_cast<Late*>(data);
        self->late.push_back(Now() - self->due);
        if (--self->left > 0) self->Arm();
      },
      &late);
  late.Arm();
  event_base_dispatch(base);
  event_free(late.timer);
  event_base_free(base);
  meter.PrintLateness(std::move(late.late));
}

struct Inbox {
  event_base* base;
  event* wake;
  LockedInbox posts;
};

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  evthread_use_pthreads();
  Inbox inbox;
  inbox.base = MakeBase();
  const auto on_wake = [](evutil_socket_t, short, void* data) {
    auto* self = static_cast<Inbox*>(data);
    if (self->posts.Drain()) event_base_loopbreak(self->base);
  };
  inbox.wake = event_new(inbox.base, -1, EV_PERSIST, on_wake, &inbox);
  const auto post = [&inbox](int64_t* left) {
    if (inbox.posts.Add(left)) event_active(inbox.wake, EV_READ, 0);
  };
  MeasurePosts<kProducers>(count, meter, post,
                           [&inbox] { event_base_loop(inbox.base, EVLOOP_NO_EXIT_ON_EMPTY); });
  event_free(inbox.wake);
  event_base_free(inbox.base);
}

struct Player {
  event_base* base;
  event* wake;
  Player* other;
  int64_t left;
  bool is_first;
};

void PingPong(int64_t count, Meter& meter) {
  evthread_use_pthreads();
  Player players[2] = {};
  for (int i = 0; i < 2; ++i) {
    players[i].base = MakeBase();
    players[i].other = &players[1 - i];
    players[i].left = count;
    players[i].is_first = i == 0;
    players[i].wake = event_new(
        players[i].base, -1, EV_PERSIST,
        [](evutil_socket_t, short, void* data) {
          auto* self = static_cast<Player*>(data);
          const bool is_last = --self->left == 0;
          if (!self->is_first || !is_last) event_active(self->other->wake, EV_READ, 0);
          if (is_last) event_base_loopbreak(self->base);
        },
        &players[i]);
  }
  std::thread thread([&players] { event_base_loop(players[1].base, EVLOOP_NO_EXIT_ON_EMPTY); });
  meter.Begin();
  event_active(players[1].wake, EV_READ, 0);
  event_base_loop(players[0].base, EVLOOP_NO_EXIT_ON_EMPTY);
  meter.End("ns", count);
  thread.join();
  for (Player& player : players) {
    event_free(player.wake);
    event_base_free(player.base);
  }
}

void StartStop(int64_t count, Meter& meter) {
  event_base_free(MakeBase());
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) event_base_free(MakeBase());
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
