// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_NEXT_SIGNAL_H_
#define WEFT_LOOP_NEXT_SIGNAL_H_

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <deque>

#include "weft/core/coro.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/core/scheduler.h"
#include "weft/core/waiter.h"
#include "weft/loop/signal_watcher.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class SignalReceiver;

// SignalSet
//
// Some signals: `{SIGTERM, SIGINT}`. Errors: ValueError for a number that is none.
class SignalSet {
 public:
  // No initializer_list: gcc 12 cannot have one in an expression with co_await.
  template <std::same_as<int>... Signals>
  SignalSet(Signals... signals) {  // NOLINT(google-explicit-constructor)
    (Add(signals), ...);
  }

  void Add(int signal);
  bool Contains(int signal) const {
    return signal >= 1 && signal <= 64 && (bits_ >> (signal - 1) & 1) != 0;
  }
  bool empty() const { return bits_ == 0; }

 private:
  uint64_t bits_ = 0;
};

namespace internal {

class [[nodiscard]] NextSignalAwaiter final : public Waiter {
 public:
  explicit NextSignalAwaiter(SignalReceiver* receiver) : receiver_(receiver) {}
  NextSignalAwaiter(NextSignalAwaiter&& other) noexcept : receiver_(other.receiver_) {}

  inline bool await_ready();
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle);
  int await_resume() {
    Unlink();
    if (ABSL_PREDICT_FALSE(End())) {
      GiveBack();
      std::rethrow_exception(task()->cancelled_error());
    }
    return signal_;
  }
  Outcome<int> await_outcome() {
    Outcome<int> outcome;
    Unlink();
    if (End()) {
      GiveBack();
      outcome.SetCancelled(task()->cancelled_error());
    } else {
      outcome.Emplace(signal_);
    }
    return outcome;
  }

 private:
  friend class weft::SignalReceiver;
  void GiveBack();

  SignalReceiver* receiver_;
  int signal_ = 0;
};

}  // namespace internal

// SignalReceiver
//
// Receives signals of the process for tasks to await, instead of what else happens
// when they come, from its construction to its destruction:
//
//   SignalReceiver reload(SIGHUP);
//   while (true) {
//     co_await reload.Next();
//     ReadConfiguration();
//   }
//
// What comes while nobody awaits is kept. A handler of AddSignalHandler() for the same
// signal is called as well; every receiver gets every signal; of several tasks that
// await one receiver, one. Run()'s own handling of SIGINT rests while one receives it.
//
// Threads: the main thread, which is that of the loop.
// Python: none; what a handler that sets an Event is for.
class SignalReceiver final : private internal::SignalListener {
 public:
  // In the running loop. Errors: RuntimeError for a signal that cannot be caught, and
  // on another thread than the main one; ValueError if `signals` is empty.
  explicit SignalReceiver(SignalSet signals);
  template <std::same_as<int>... Signals>
    requires(sizeof...(Signals) > 1)
  explicit SignalReceiver(Signals... signals) : SignalReceiver(SignalSet(signals...)) {}
  SignalReceiver(const SignalReceiver&) = delete;
  SignalReceiver& operator=(const SignalReceiver&) = delete;
  ~SignalReceiver();

  // Awaitable of int: the oldest signal that was not yet received.
  internal::NextSignalAwaiter Next() { return internal::NextSignalAwaiter(this); }

  // The same without waiting; 0 if there is none.
  int TryNext();

 private:
  friend class internal::NextSignalAwaiter;

  void OnSignal(int signal) override;
  void Stop(int end);
  bool HandOver(int signal);

  internal::IntrusivePtr<internal::SchedulerCore> core_;
  const SignalSet signals_;
  std::deque<int> unreceived_;
  internal::WaiterList waiters_;
};

// Awaitable of int: which of `signals` comes first. From when it is awaited until it
// is over; by then they do again what they did before. One that may come again while
// it is being dealt with is for a SignalReceiver.
//
//   int signal = co_await NextSignal({SIGTERM, SIGINT});
//
// Errors: as SignalReceiver.
Coro<int> NextSignal(SignalSet signals);

namespace internal {

bool NextSignalAwaiter::await_ready() {
  signal_ = receiver_->TryNext();
  return signal_ != 0;
}

template <class Promise>
void NextSignalAwaiter::await_suspend(std::coroutine_handle<Promise> handle) {
  receiver_->waiters_.Wait(this, handle);
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_LOOP_NEXT_SIGNAL_H_
