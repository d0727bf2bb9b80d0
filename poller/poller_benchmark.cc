// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a poller adds to the system calls that it has to make. Each case has its
// lower bound beside it: the same calls by hand. `calls` counts the system calls
// that an item needs by design, for comparison with `strace -c`.
//
//   tools/bazel run -c opt //poller:poller_benchmark
//
// The default poller is measured, or that of WEFT_POLLER.

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/core/clock.h"
#include "weft/poller/poller.h"
#include "weft/poller/poller_registry.h"

namespace weft {
namespace {

struct Op final : Operation {
  Op() : Operation([](Runnable* self) { static_cast<Op*>(self)->has_run = true; }) {}
  bool has_run = false;
};

// A poller, and the loop around it.
struct Loop {
  Loop() : poller(std::move(MakePoller()).value()) {}
  ~Loop() {
    poller->CancelAll();
    while (poller->HasPending()) Round(TimePoint::InfiniteFuture());
    Round(TimePoint::InfinitePast());
  }

  void Round(TimePoint deadline) {
    poller->Collect(&done);
    poller->Wait(deadline, &done).IgnoreError();
    while (Runnable* next = done.PopFront()) next->Run();
  }

  void RunUntilDone(Op* op) {
    while (!op->has_run) Round(TimePoint::InfiniteFuture());
    op->has_run = false;
  }

  std::unique_ptr<Poller> poller;
  ReadyQueue done;
};

struct UnixPair {
  UnixPair() { benchmark::DoNotOptimize(::socketpair(AF_UNIX, kType, 0, fds)); }
  ~UnixPair() {
    ::close(fds[0]);
    ::close(fds[1]);
  }
  static constexpr int kType = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  int fds[2];
};

struct TcpPair {
  TcpPair() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* native = reinterpret_cast<sockaddr*>(&address);
    benchmark::DoNotOptimize(::bind(listener, native, size));
    benchmark::DoNotOptimize(::listen(listener, 1));
    benchmark::DoNotOptimize(::getsockname(listener, native, &size));
    fds[0] = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    benchmark::DoNotOptimize(::connect(fds[0], native, size));
    ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
    fds[1] = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    ::close(listener);
  }
  ~TcpPair() {
    ::close(fds[0]);
    ::close(fds[1]);
  }
  int fds[2];
};

// --- Operations that are done at once ---

void BM_SendAndRecvInline(benchmark::State& state) {
  Loop loop;
  UnixPair pair;
  char buffer[64] = {};
  Op send, recv;
  for (auto _ : state) {
    send.PrepareSend(pair.fds[0], buffer, sizeof(buffer));
    loop.poller->Start(&send);
    recv.PrepareRecv(pair.fds[1], buffer, sizeof(buffer));
    loop.poller->Start(&recv);
  }
  state.counters["calls"] = 2;
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_SendAndRecvInline);

void BM_SendAndRecvByHand(benchmark::State& state) {
  UnixPair pair;
  char buffer[64] = {};
  for (auto _ : state) {
    benchmark::DoNotOptimize(::send(pair.fds[0], buffer, sizeof(buffer), MSG_NOSIGNAL));
    benchmark::DoNotOptimize(::recv(pair.fds[1], buffer, sizeof(buffer), 0));
  }
  state.counters["calls"] = 2;
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_SendAndRecvByHand);

// --- A request: wait, receive, answer ---

// `connections` ping-pong in one round each; both sides on this thread, so an item
// is two messages.
void BM_PingPong(benchmark::State& state) {
  const int connections = static_cast<int>(state.range(0));
  Loop loop;
  SlabPool pool;
  std::vector<std::unique_ptr<TcpPair>> pairs;
  std::vector<std::unique_ptr<Op>> recvs;
  char message[64] = {};
  for (int i = 0; i < connections; ++i) {
    pairs.push_back(std::make_unique<TcpPair>());
    recvs.push_back(std::make_unique<Op>());
  }

  for (auto _ : state) {
    for (int side = 0; side < 2; ++side) {
      for (int i = 0; i < connections; ++i) {
        Op* recv = recvs[i].get();
        recv->PrepareRecvLent(pairs[i]->fds[side]);
        Slab slab;
        if (loop.poller->Start(recv) == StartResult::kDone) {
          loop.poller->FetchLent(recv, &pool, &slab);
        }
        Op send;
        send.PrepareSend(pairs[i]->fds[1 - side], message, sizeof(message));
        loop.poller->Start(&send);
      }
      for (int i = 0; i < connections; ++i) {
        loop.RunUntilDone(recvs[i].get());
        Slab slab;
        loop.poller->FetchLent(recvs[i].get(), &pool, &slab);
      }
    }
  }
  state.counters["calls"] = 4 + 2.0 / connections;
  state.SetItemsProcessed(state.iterations() * connections);
}
BENCHMARK(BM_PingPong)->ArgName("connections")->Arg(1)->Arg(64);

void BM_PingPongByHand(benchmark::State& state) {
  const int connections = static_cast<int>(state.range(0));
  std::vector<std::unique_ptr<TcpPair>> pairs;
  std::vector<epoll_event> events(256);
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < connections; ++i) {
    pairs.push_back(std::make_unique<TcpPair>());
    for (const int fd : pairs.back()->fds) {
      epoll_event event = {};
      event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
      event.data.fd = fd;
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
  }
  static char buffer[64 * 1024];
  ::epoll_wait(epoll, events.data(), 256, 0);

  for (auto _ : state) {
    for (int side = 0; side < 2; ++side) {
      for (auto& pair : pairs) {
        benchmark::DoNotOptimize(::send(pair->fds[1 - side], buffer, 64, MSG_NOSIGNAL));
      }
      for (int left = connections; left > 0;) {
        const int count = ::epoll_wait(epoll, events.data(), 256, -1);
        for (int i = 0; i < count; ++i) {
          left -= ::recv(events[i].data.fd, buffer, sizeof(buffer), 0) > 0;
        }
      }
    }
  }
  ::close(epoll);
  state.counters["calls"] = 4 + 2.0 / connections;
  state.SetItemsProcessed(state.iterations() * connections);
}
BENCHMARK(BM_PingPongByHand)->ArgName("connections")->Arg(1)->Arg(64);

// --- Watching, as AddReader does ---

void BM_WatchThatStaysReady(benchmark::State& state) {
  Loop loop;
  UnixPair pair;
  benchmark::DoNotOptimize(::send(pair.fds[1], "x", 1, 0));
  Op wait;
  wait.PrepareWaitReadable(pair.fds[0]);
  loop.poller->Start(&wait);
  for (auto _ : state) {
    loop.RunUntilDone(&wait);
    wait.PrepareWaitReadable(pair.fds[0], kWaitAgain);
    loop.poller->Start(&wait);
  }
  loop.poller->Cancel(&wait);
  loop.RunUntilDone(&wait);
  state.counters["calls"] = 1;
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WatchThatStaysReady);

// --- Waiting ---

// Looking for events while so many handles are idle: it should not matter how
// many.
void BM_LookWithIdleHandles(benchmark::State& state) {
  const int idle = static_cast<int>(state.range(0));
  Loop loop;
  std::vector<std::unique_ptr<UnixPair>> pairs;
  std::vector<std::unique_ptr<Op>> recvs;
  char byte;
  for (int i = 0; i < idle; ++i) {
    pairs.push_back(std::make_unique<UnixPair>());
    recvs.push_back(std::make_unique<Op>());
    recvs.back()->PrepareRecv(pairs.back()->fds[0], &byte, 1);
    loop.poller->Start(recvs.back().get());
  }
  loop.Round(TimePoint::InfinitePast());

  for (auto _ : state) loop.Round(TimePoint::InfinitePast());

  loop.poller->CancelAll();
  loop.Round(TimePoint::InfinitePast());
  state.counters["calls"] = 1;
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_LookWithIdleHandles)->ArgName("idle")->Arg(1)->Arg(100)->Arg(5'000);

// A wake of oneself: what a post from another thread costs both sides, without
// their sleeping.
void BM_WakeAndWait(benchmark::State& state) {
  Loop loop;
  const std::shared_ptr<Waker> waker = loop.poller->MakeWaker();
  waker->Wake();
  loop.Round(TimePoint::InfiniteFuture());
  for (auto _ : state) {
    waker->Wake();
    loop.Round(TimePoint::InfiniteFuture());
  }
  state.counters["calls"] = 2;
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WakeAndWait);

// Two threads that wake each other; both sleep in between.
void BM_WakeRoundTrip(benchmark::State& state) {
  Loop loop;
  const std::shared_ptr<Waker> mine = loop.poller->MakeWaker();
  std::atomic<Waker*> theirs{nullptr};
  std::atomic<int64_t> asked{0}, answered{0};
  std::thread peer([&] {
    Loop other;
    const std::shared_ptr<Waker> waker = other.poller->MakeWaker();
    theirs.store(waker.get());
    int64_t done = 0;
    while (done >= 0) {
      while (asked.load() == done) other.Round(TimePoint::InfiniteFuture());
      done = asked.load();
      answered.store(done);
      mine->Wake();
    }
  });
  while (theirs.load() == nullptr) std::this_thread::yield();

  int64_t round = 0;
  for (auto _ : state) {
    asked.store(++round);
    theirs.load()->Wake();
    while (answered.load() != round) loop.Round(TimePoint::InfiniteFuture());
  }
  asked.store(-1);
  theirs.load()->Wake();
  peer.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WakeRoundTrip)->UseRealTime();

void BM_WakeRoundTripByHand(benchmark::State& state) {
  struct Side {
    Side() : event(::eventfd(0, EFD_NONBLOCK)), epoll(::epoll_create1(0)) {
      epoll_event in = {};
      in.events = EPOLLIN | EPOLLET;
      ::epoll_ctl(epoll, EPOLL_CTL_ADD, event, &in);
    }
    ~Side() {
      ::close(event);
      ::close(epoll);
    }
    void Wake() { ::eventfd_write(event, 1); }
    void Wait() {
      epoll_event out;
      ::epoll_wait(epoll, &out, 1, -1);
    }
    int event, epoll;
  };
  Side here, there;
  std::atomic<bool> stop{false};
  std::thread peer([&] {
    while (!stop.load()) {
      there.Wait();
      here.Wake();
    }
  });
  for (auto _ : state) {
    there.Wake();
    here.Wait();
  }
  stop.store(true);
  there.Wake();
  peer.join();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_WakeRoundTripByHand)->UseRealTime();

// How late a sleep of 100 us ends, in nanoseconds.
void BM_Lateness(benchmark::State& state) {
  Loop loop;
  double late = 0;
  for (auto _ : state) {
    const TimePoint deadline = SteadyClock::Read() + absl::Microseconds(100);
    while (SteadyClock::Read() < deadline) loop.Round(deadline);
    late += absl::ToDoubleNanoseconds(SteadyClock::Read() - deadline);
  }
  state.counters["late_ns"] = late / static_cast<double>(state.iterations());
}
BENCHMARK(BM_Lateness)->UseRealTime();

// --- Being there ---

// A poller that is never used, and one that sleeps once.
void BM_MakeAndDestroy(benchmark::State& state) {
  for (auto _ : state) {
    const std::unique_ptr<Poller> poller = std::move(MakePoller()).value();
    const std::shared_ptr<Waker> waker = poller->MakeWaker();
    ReadyQueue done;
    if (state.range(0) != 0) {
      waker->Wake();
      poller->Wait(TimePoint::InfiniteFuture(), &done).IgnoreError();
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_MakeAndDestroy)->ArgName("used")->Arg(0)->Arg(1);

}  // namespace
}  // namespace weft
