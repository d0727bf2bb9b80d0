// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_SEMAPHORE_H_
#define WEFT_SYNC_SEMAPHORE_H_

#include <coroutine>
#include <cstdint>
#include <exception>
#include <limits>
#include <ostream>
#include <string>

#include "absl/base/optimization.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/sync/guard.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class Semaphore;

namespace internal {

class [[nodiscard]] SemaphoreAwaiter : public Waiter {
 public:
  explicit SemaphoreAwaiter(Semaphore* semaphore) : semaphore_(semaphore) {}
  SemaphoreAwaiter(SemaphoreAwaiter&& other) noexcept  // Before the await.
      : semaphore_(other.semaphore_) {}
  ~SemaphoreAwaiter() {
    if (ABSL_PREDICT_FALSE(is_linked())) GiveUp();  // The frame goes in the midst of the wait.
  }

  inline bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle);
  inline Guard<Semaphore> await_resume();
  inline Outcome<Guard<Semaphore>> await_outcome();
  std::string Description() const override;

 private:
  friend class weft::Semaphore;

  // True if the await is to throw. Else a unit is taken.
  inline bool Finish();
  inline Guard<Semaphore> MakeGuard() const;
  void GiveUp();

  Semaphore* semaphore_;  // Null once that is destroyed.
};

}  // namespace internal

// Semaphore
//
// A number of units, of which each task takes one: so many tasks at a time may
// do something.
//
//   Semaphore connections(10);
//   ...
//   Semaphore::Guard guard = co_await connections.Acquire();
//
// First come, first served. Release() hands the unit to the first who waits:
// it is his from then on. If he is cancelled before he runs it goes to the next.
// No newcomer passes those who wait.
//
// There may be more units in the end than there were at first; see
// BoundedSemaphore. Destroying a semaphore is safe at any time: guards that
// remain do nothing, and who still waits waits until it is cancelled.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Semaphore; `async with semaphore:` is a guard in a block.
class Semaphore {
 public:
  using Guard = internal::Guard<Semaphore>;

  // Errors: ValueError if `value` is negative.
  explicit Semaphore(int64_t value = 1) : Semaphore(value, std::numeric_limits<int64_t>::max()) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore();

  // Whether Acquire() would wait: no unit is free, or somebody is before you.
  bool Locked() const { return !CanTake(); }

  // How many units are free.
  int64_t Value() const { return value_; }

  // Awaitable of a guard, which gives the unit back: until there is a unit and
  // it is this task's turn; at once if so.
  internal::SemaphoreAwaiter Acquire() { return internal::SemaphoreAwaiter(this); }

  // The same without waiting: an empty guard if it would have to.
  Guard TryAcquire() {
    if (!CanTake()) return Guard();
    --value_;
    return MakeGuard();
  }

  // Gives a unit back, or adds one. Any task may, and any callback.
  // Errors: of a BoundedSemaphore, ValueError "BoundedSemaphore released too
  // many times".
  void Release() {
    if (ABSL_PREDICT_FALSE(value_ >= bound_)) ThrowReleasedTooOften();
    if (const internal::SemaphoreAwaiter* first = waiting_.front()) first->CheckThread();
    ReleaseGuarded();
  }

  // "<Semaphore [unlocked, value:3]>", "<Semaphore [locked, waiters:2]>".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Semaphore& semaphore) {
    return out << semaphore.ToString();
  }

 protected:
  Semaphore(int64_t value, int64_t bound);

 private:
  friend class internal::SemaphoreAwaiter;
  friend Guard;

  [[noreturn]] static void ThrowReleasedTooOften();

  bool CanTake() const { return value_ > 0 && woken_ == 0 && FirstWaiting() == nullptr; }

  Guard MakeGuard() { return Guard(this); }

  // The first who waits, or null. Those who were cancelled are put aside on the
  // way, so that each is passed over once.
  internal::SemaphoreAwaiter* FirstWaiting() const {
    while (internal::SemaphoreAwaiter* first = waiting_.front()) {
      if (first->is_waiting()) return first;
      first->Unlink();
      settled_.PushBack(first);
    }
    return nullptr;
  }

  // Hands a unit to the first who waits. False if nobody does.
  bool HandOver() {
    internal::SemaphoreAwaiter* first = FirstWaiting();
    if (first == nullptr) return false;
    --value_;
    ++woken_;
    first->Wake();
    first->Unlink();
    settled_.PushBack(first);
    return true;
  }

  void ReleaseGuarded() {
    if (ABSL_PREDICT_FALSE(value_ >= bound_)) return;
    ++value_;
    HandOver();
  }

  int64_t value_;
  int64_t bound_;
  int64_t woken_ = 0;  // How many have been handed a unit, and did not run yet.
  // In the order in which they came. Some were cancelled and did not run yet.
  mutable List<internal::SemaphoreAwaiter> waiting_;
  // Woken or cancelled, until they run.
  mutable List<internal::SemaphoreAwaiter> settled_;
  internal::BackRefs<Semaphore> guards_;
};

// BoundedSemaphore
//
// A semaphore that never has more units than at first: Release() of one too many
// is an error.
//
// Python: asyncio.BoundedSemaphore.
class BoundedSemaphore : public Semaphore {
 public:
  explicit BoundedSemaphore(int64_t value = 1) : Semaphore(value, value) {}
};

namespace internal {

bool SemaphoreAwaiter::await_ready() const { return semaphore_->CanTake(); }

template <class Promise>
void SemaphoreAwaiter::await_suspend(std::coroutine_handle<Promise> handle) {
  if (SemaphoreAwaiter* other = semaphore_->waiting_.front()) {
    WaiterList::CheckSameLoop(other, handle.promise().task);
  }
  semaphore_->waiting_.PushBack(this);
  Begin(handle);
}

bool SemaphoreAwaiter::Finish() {
  Unlink();
  const bool cancelled = End();
  if (ABSL_PREDICT_FALSE(semaphore_ == nullptr)) return cancelled;
  if (task() == nullptr) {
    --semaphore_->value_;  // It did not wait.
  } else {
    if (was_woken()) {
      --semaphore_->woken_;
      if (cancelled) ++semaphore_->value_;
    }
    // Units that came while it was on its way, and those it leaves.
    while (semaphore_->value_ > 0 && semaphore_->HandOver()) {
    }
  }
  return cancelled;
}

Guard<Semaphore> SemaphoreAwaiter::MakeGuard() const {
  return semaphore_ == nullptr ? Guard<Semaphore>() : semaphore_->MakeGuard();
}

Guard<Semaphore> SemaphoreAwaiter::await_resume() {
  if (ABSL_PREDICT_FALSE(Finish())) std::rethrow_exception(task()->cancelled_error());
  return MakeGuard();
}

Outcome<Guard<Semaphore>> SemaphoreAwaiter::await_outcome() {
  Outcome<Guard<Semaphore>> outcome;
  if (Finish()) {
    outcome.SetCancelled(task()->cancelled_error());
  } else {
    outcome.Emplace(MakeGuard());
  }
  return outcome;
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_SYNC_SEMAPHORE_H_
