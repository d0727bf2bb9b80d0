// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_BARRIER_H_
#define WEFT_SYNC_BARRIER_H_

#include <coroutine>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "weft/core/coro.h"
#include "weft/core/outcome.h"
#include "weft/sync/guard.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class Barrier;

namespace internal {

// The last to arrive goes through without a coroutine; the others may be woken
// without need and have to look again, which takes one.
class [[nodiscard]] BarrierAwaiter {
 public:
  explicit BarrierAwaiter(Barrier* barrier) : barrier_(barrier) {}
  BarrierAwaiter(BarrierAwaiter&& other) noexcept
      : barrier_(other.barrier_) {}  // Before the await.

  inline bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle);
  int await_resume();
  Outcome<int> await_outcome();

 private:
  Barrier* barrier_;
  std::optional<CoroAwaiter<int>> slow_;
};

}  // namespace internal

// Barrier
//
// Lets tasks go on together when so many have come.
//
//   Barrier barrier(3);
//   ...
//   int index = co_await barrier.Wait();     // in each of three tasks
//   if (index == 0) Report();
//
// The last to come goes on at once, the others in the next round. Then the
// barrier fills again; who comes while it empties waits until it is empty.
//
//              the last comes              all have gone
//   filling ------------------> draining ----------------> filling
//      |   Reset()                              all have gone
//      +--------------------> resetting ----------------> filling
//      |   Abort()                          Reset()
//      +--------------------> broken ---------------> filling, or resetting
//
// Who waits when it is reset or aborted, and who comes when it is broken, is
// thrown a BrokenBarrierError. A task that is cancelled while it waits does not
// count any more. A barrier may be destroyed while tasks wait: those wait on
// until they are cancelled.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Barrier. Reset() and Abort() never wait, so they are plain
// functions. As there, the index is how many were waiting at the arrival: after
// a cancellation two tasks may have the same.
class Barrier {
 public:
  // Errors: ValueError if `parties` is less than one.
  explicit Barrier(int parties);
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Awaitable of int, in the order of arrival from zero: until the others are
  // there. Errors: BrokenBarrierError.
  internal::BarrierAwaiter Wait() { return internal::BarrierAwaiter(this); }

  // Fails those who wait; when they are gone, and at once if there are none,
  // the barrier is as new.
  void Reset();

  // Fails those who wait, and all who come until Reset().
  void Abort();

  int Parties() const { return parties_; }
  // How many wait for the others.
  int NWaiting() const { return state_ == State::kFilling ? count_ : 0; }
  bool Broken() const { return state_ == State::kBroken; }

  // "<Barrier [filling, waiters:2/3]>", "<Barrier [broken]>".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Barrier& barrier) {
    return out << barrier.ToString();
  }

 private:
  friend class internal::BarrierAwaiter;

  enum class State : unsigned char { kFilling, kDraining, kResetting, kBroken };
  class Visit;

  static Coro<int> WaitSlowly(Barrier* self);

  bool CanPass() const {
    return (state_ == State::kFilling && count_ + 1 == parties_) || state_ == State::kBroken;
  }
  // REQUIRES: CanPass().
  int Pass();
  void Leave();

  int parties_;
  int count_ = 0;  // Who is inside: waits for the others, or is about to go on.
  State state_ = State::kFilling;
  internal::WaiterList waiters_;  // For any change of the state.
  internal::BackRefs<Barrier> refs_;
};

namespace internal {

bool BarrierAwaiter::await_ready() const { return barrier_->CanPass(); }

template <class Promise>
void BarrierAwaiter::await_suspend(std::coroutine_handle<Promise> handle) {
  slow_.emplace(Barrier::WaitSlowly(barrier_).operator co_await());
  slow_->await_suspend(handle);
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_SYNC_BARRIER_H_
