// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The lower bound: each piece of work by hand, for itself alone, with no error handled and
// nothing that a user would ask for. What a loop takes beyond this is for being a loop.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <latch>
#include <thread>
#include <vector>

#include "weft/bench/peers/work.h"

namespace weft::bench {
namespace {

// A ring of entries, as long as a power of two.
template <typename Entry>
class Ring {
 public:
  explicit Ring(size_t capacity) : entries_(capacity), mask_(capacity - 1) {}

  void Push(Entry entry) { entries_[tail_++ & mask_] = entry; }
  Entry Pop() { return entries_[head_++ & mask_]; }
  bool IsEmpty() const { return head_ == tail_; }

 private:
  std::vector<Entry> entries_;
  const size_t mask_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

// -- Callbacks: a function and 24 bytes, in the ring itself.

struct Callback {
  void (*function)(Callback&);
  void* a;
  int64_t* b;
  int64_t c;
};

Ring<Callback> ready(2048);

void RunCallbacks() {
  while (!ready.IsEmpty()) {
    Callback callback = ready.Pop();
    callback.function(callback);
  }
}

void OnLink(Callback& callback) {
  if (--*callback.b == 0) return;
  ready.Push({callback.function, callback.a, callback.b, callback.c + 1});
}

void PostChain(int64_t count, Meter& meter) {
  int64_t left = count;
  ready.Push({OnLink, nullptr, &left, 0});
  meter.Begin();
  RunCallbacks();
  meter.End("ns", count);
}

void PostBatch(int64_t count, Meter& meter) {
  const int64_t batches = count / kBatch;
  int64_t sum = 0;
  meter.Begin();
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 0; i < kBatch; ++i) {
      ready.Push({[](Callback& callback) { *callback.b += callback.c; }, nullptr, &sum, i});
    }
    RunCallbacks();
  }
  meter.End("ns", batches * kBatch);
}

// -- Coroutines: frames from a free list, handles in a ring.

Ring<std::coroutine_handle<>> resumable(2048);

void ResumeAll() {
  while (!resumable.IsEmpty()) resumable.Pop().resume();
}

struct FreeFrame {
  FreeFrame* next;
};
FreeFrame* free_frames = nullptr;  // All coroutines here have frames of one size or less.
constexpr size_t kFrame = 128;

struct Routine {
  struct promise_type {
    static void* operator new(size_t size) {
      if (free_frames == nullptr || size > kFrame)
        return std::malloc(size > kFrame ? size : kFrame);
      void* frame = free_frames;
      free_frames = free_frames->next;
      return frame;
    }
    static void operator delete(void* frame, size_t) {
      free_frames = ::new (frame) FreeFrame{free_frames};
    }
    Routine get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

struct Yielding {
  Yielding() {}
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> self) { resumable.Push(self); }
  void await_resume() {}
};

Routine YieldTimes(int64_t times) {
  for (int64_t i = 0; i < times; ++i) co_await Yielding();
}

template <int64_t kTasks>
void Switch(int64_t count, Meter& meter) {
  const int64_t steps = count / kTasks;
  std::vector<Routine> routines;
  for (int64_t i = 0; i < kTasks; ++i) {
    routines.push_back(YieldTimes(steps));
    resumable.Push(routines.back().handle);
  }
  meter.Begin();
  ResumeAll();
  meter.End("ns", steps * kTasks);
  for (Routine& routine : routines) routine.handle.destroy();
}

Routine DoNothing() { co_return; }

void Spawn(int64_t count, Meter& meter) {
  const auto run = [](int64_t batches) {
    static std::vector<Routine> routines;
    routines.reserve(kBatch);
    for (int64_t b = 0; b < batches; ++b) {
      for (int64_t i = 0; i < kBatch; ++i) {
        routines.push_back(DoNothing());
        resumable.Push(routines.back().handle);
      }
      ResumeAll();
      for (Routine& routine : routines) {
        if (!routine.handle.done()) std::abort();
        routine.handle.destroy();
      }
      routines.clear();
    }
  };
  run(2);
  const int64_t batches = count / kBatch;
  meter.Begin();
  run(batches);
  meter.End("ns", batches * kBatch);
}

// -- Timers: one ring of lists, a slot for each millisecond of two minutes.

struct Node {
  Node* next;
  Node* previous;
};

struct Timer : Node {
  int64_t due;
  void (*function)(Timer*);
};

constexpr int64_t kSlots = 131072;
constexpr int64_t kSlotNanoseconds = 1'000'000;

class Wheel {
 public:
  Wheel() : slots_(kSlots) {
    for (Node& slot : slots_) slot.next = slot.previous = &slot;
  }

  void Insert(Timer* timer) {
    Node& slot = slots_[static_cast<size_t>(timer->due / kSlotNanoseconds % kSlots)];
    timer->previous = slot.previous;
    timer->next = &slot;
    slot.previous->next = timer;
    slot.previous = timer;
  }
  static void Remove(Timer* timer) {
    timer->previous->next = timer->next;
    timer->next->previous = timer->previous;
  }
  void Fire(int64_t from, int64_t now) {
    for (int64_t slot = from / kSlotNanoseconds; slot <= now / kSlotNanoseconds; ++slot) {
      Node& head = slots_[static_cast<size_t>(slot % kSlots)];
      while (head.next != &head) {
        auto* timer = static_cast<Timer*>(head.next);
        Remove(timer);
        timer->function(timer);
      }
    }
  }

 private:
  std::vector<Node> slots_;
};

int64_t fired = 0;

void Timers(int64_t count, Meter& meter) {
  const std::vector<int64_t> delays = RandomDelays(count);
  const std::vector<int64_t> order = RandomOrder(count);
  Wheel wheel;
  std::vector<Timer> timers(static_cast<size_t>(count));
  const auto insert = [&](int64_t now, int64_t divisor) {
    for (int64_t i = 0; i < count; ++i) {
      Timer& timer = timers[static_cast<size_t>(i)];
      timer.due = now + delays[static_cast<size_t>(i)] / divisor;
      timer.function = [](Timer*) { ++fired; };
      wheel.Insert(&timer);
    }
  };
  insert(Now(), 1);
  for (Timer& timer : timers) Wheel::Remove(&timer);

  const int64_t now = Now();
  meter.Begin();
  insert(now, 1);
  meter.End("insert", count);

  meter.Begin();
  for (const int64_t i : order) Wheel::Remove(&timers[static_cast<size_t>(i)]);
  meter.End("cancel", count);

  const int64_t start = Now();
  insert(start, 1'000'000);
  while (Now() < start + 1'000'000) {
  }
  meter.Begin();
  wheel.Fire(start, Now());
  meter.End("fire", count);
  if (fired != count) std::abort();
}

void Lateness(int64_t count, Meter& meter) {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  epoll_event event = {EPOLLIN | EPOLLET, {}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
  std::vector<int64_t> late;
  RandomWaits waits;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t due = Now() + waits.Next();
    itimerspec spec = {};
    spec.it_value.tv_sec = due / 1'000'000'000;
    spec.it_value.tv_nsec = due % 1'000'000'000;
    ::timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, nullptr);
    ::epoll_wait(epoll, &event, 1, -1);
    late.push_back(Now() - due);
  }
  ::close(timer);
  ::close(epoll);
  meter.PrintLateness(std::move(late));
}

// -- Threads: a stack of posts without a lock, and one wake until it has been looked at.

struct Post {
  Post* next;
  int64_t* left;
};

template <int kProducers>
void Posts(int64_t count, Meter& meter) {
  const int64_t each = count / kProducers;
  int64_t left = each * kProducers;
  std::atomic<Post*> top = nullptr;
  const int wake = ::eventfd(0, EFD_CLOEXEC);
  std::latch start(kProducers + 1);
  std::vector<std::vector<Post>> posts(kProducers, std::vector<Post>(static_cast<size_t>(each)));
  std::vector<std::thread> threads;
  for (std::vector<Post>& own : posts) {
    threads.emplace_back([&, own = own.data()] {
      start.arrive_and_wait();
      for (int64_t i = 0; i < each; ++i) {
        Post* post = &own[i];
        post->left = &left;
        // Once it is on the stack, the post is the consumer's.
        Post* below = top.load(std::memory_order_relaxed);
        do {
          post->next = below;
        } while (!top.compare_exchange_weak(below, post, std::memory_order_release));
        if (below == nullptr) ::eventfd_write(wake, 1);
      }
    });
  }
  start.arrive_and_wait();
  meter.Begin();
  while (left > 0) {
    Post* taken = top.exchange(nullptr, std::memory_order_acquire);
    if (taken == nullptr) {
      eventfd_t value;
      ::eventfd_read(wake, &value);
      continue;
    }
    Post* in_order = nullptr;
    while (taken != nullptr) {
      Post* next = taken->next;
      taken->next = in_order;
      in_order = taken;
      taken = next;
    }
    for (; in_order != nullptr; in_order = in_order->next) --*in_order->left;
  }
  meter.End("ns", each * kProducers);
  for (std::thread& thread : threads) thread.join();
  ::close(wake);
}

// An eventfd in an epoll, as a loop has it.
class Wakeable {
 public:
  Wakeable() {
    epoll_event event = {EPOLLIN | EPOLLET, {}};
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  }
  ~Wakeable() {
    ::close(epoll_);
    ::close(wake_);
  }
  void Wake() { ::eventfd_write(wake_, 1); }
  void Wait() {
    epoll_event event;
    ::epoll_wait(epoll_, &event, 1, -1);
  }

 private:
  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

void PingPong(int64_t count, Meter& meter) {
  Wakeable here;
  Wakeable there;
  std::thread thread([&here, &there, count] {
    for (int64_t i = 0; i < count; ++i) {
      there.Wait();
      here.Wake();
    }
  });
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) {
    there.Wake();
    here.Wait();
  }
  meter.End("ns", count);
  thread.join();
}

void StartStop(int64_t count, Meter& meter) {
  {
    Wakeable first;
  }
  meter.Begin();
  for (int64_t i = 0; i < count; ++i) Wakeable another;
  meter.End("ns", count);
}

// A task that sleeps is its frame, with the timer in it.
struct Sleeping {
  explicit Sleeping(Wheel* wheel) : sleepers(wheel) {}
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    timer.due = 3'600'000'000'000;
    continuation = self;
    sleepers->Insert(&timer);
  }
  void await_resume() {}

  Wheel* sleepers;
  Timer timer = {};
  std::coroutine_handle<> continuation = {};
};

Routine SleepLong(Wheel* wheel) { co_await Sleeping(wheel); }

void SleepingTasks(int64_t count, Meter& meter) {
  Wheel wheel;
  std::vector<Routine> sleeping;
  sleeping.reserve(static_cast<size_t>(count));
  const int64_t before = AllocatedBytes();
  for (int64_t i = 0; i < count; ++i) {
    sleeping.push_back(SleepLong(&wheel));
    sleeping.back().handle.resume();
  }
  meter.Print("bytes", static_cast<double>(AllocatedBytes() - before) / static_cast<double>(count));
  for (const Routine& routine : sleeping) routine.handle.destroy();
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
