// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_LOCK_H_
#define WEFT_SYNC_LOCK_H_

#include <coroutine>
#include <cstddef>
#include <exception>
#include <ostream>
#include <string>

#include "absl/base/optimization.h"
#include "weft/core/cancellable.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/sync/guard.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class Lock;

namespace internal {

class [[nodiscard]] LockAwaiter : public Waiter {
 public:
  explicit LockAwaiter(Lock* lock) : lock_(lock) {}
  LockAwaiter(LockAwaiter&& other) noexcept : lock_(other.lock_) {}  // Before the await.

  inline bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle);
  inline Guard<Lock> await_resume();
  inline Outcome<Guard<Lock>> await_outcome();
  std::string Description() const override;

  Step BeginCancel(const std::exception_ptr& error) override;

 private:
  friend class weft::Lock;

  // True if the await is to throw. Else the lock is taken.
  inline bool Finish();
  void PassOn();
  inline Guard<Lock> MakeGuard() const;

  Lock* lock_;  // Null once that is destroyed.
};

}  // namespace internal

// Lock
//
// Lets one task at a time pass. A task holds it across awaits; that is what it is
// for, as between awaits no other task runs anyway.
//
//   Lock lock;
//   ...
//   {
//     Lock::Guard guard = co_await lock.Acquire();
//     co_await connection.Send(request);
//     reply = co_await connection.Receive();
//   }
//
// Strictly first come, first served. Release() does not hand the lock over: it
// wakes the first who waits, `Locked()` is false until that one runs, and who
// comes meanwhile goes behind it. A waiter that is cancelled, even after it was
// woken, leaves the lock to the next.
//
// It has no owner: any task, or a callback, may call Release(). Destroying it is
// safe at any time: guards that remain do nothing, and who still waits waits
// until it is cancelled.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Lock; `async with lock:` is a guard in a block.
class Lock {
 public:
  using Guard = internal::Guard<Lock>;

  Lock() {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    while (internal::LockAwaiter* waiter = waiters_.PopFront()) waiter->lock_ = nullptr;
  }

  bool Locked() const { return locked_; }

  // Awaitable of a guard: until the lock is free and it is this task's turn; at
  // once if both hold. A guard that is not kept releases the lock at once.
  internal::LockAwaiter Acquire() { return internal::LockAwaiter(this); }

  // The same without waiting: an empty guard if it would have to.
  Guard TryAcquire() {
    if (!IsFree()) return Guard();
    locked_ = true;
    return MakeGuard();
  }

  // For who has no guard, or has detached it.
  // Errors: RuntimeError "Lock is not acquired."
  void Release() {
    if (ABSL_PREDICT_FALSE(!locked_)) ThrowNotAcquired();
    if (const internal::LockAwaiter* first = waiters_.front()) first->CheckThread();
    ReleaseGuarded();
  }

  // "<Lock [locked, waiters:2]>".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Lock& lock) {
    return out << lock.ToString();
  }

 private:
  friend class internal::LockAwaiter;
  friend class Condition;
  friend Guard;

  [[noreturn]] static void ThrowNotAcquired();

  // Whether a newcomer may take it: nobody has it, or is on the way to it.
  bool IsFree() const { return !locked_ && (waiters_.empty() || claims_ == 0); }

  Guard MakeGuard() { return Guard(this); }

  // If the first is awake already, it will take the lock when it runs, or, if it
  // was cancelled, come here again.
  void WakeFirst() {
    if (internal::LockAwaiter* first = waiters_.front()) first->Wake();
  }

  void ReleaseGuarded() {
    if (!locked_) return;
    locked_ = false;
    WakeFirst();
  }

  bool locked_ = false;
  // Waiters that are not cancelled: a newcomer goes behind them. Too many while a loop
  // destroys their frames; it starts anew when nobody waits.
  size_t claims_ = 0;
  List<internal::LockAwaiter> waiters_;  // Each until its task resumes.
  internal::BackRefs<Lock> guards_;
};

namespace internal {

bool LockAwaiter::await_ready() const { return lock_->IsFree(); }

template <class Promise>
void LockAwaiter::await_suspend(std::coroutine_handle<Promise> handle) {
  if (LockAwaiter* other = lock_->waiters_.front()) {
    WaiterList::CheckSameLoop(other, handle.promise().task);
  } else {
    lock_->claims_ = 0;
  }
  lock_->waiters_.PushBack(this);
  ++lock_->claims_;
  Begin(handle);
}

bool LockAwaiter::Finish() {
  Unlink();
  const bool cancelled = End();
  if (ABSL_PREDICT_FALSE(lock_ == nullptr)) return cancelled;
  if (was_woken()) --lock_->claims_;
  if (ABSL_PREDICT_TRUE(!cancelled)) {
    lock_->locked_ = true;
  } else {
    PassOn();
  }
  return cancelled;
}

Guard<Lock> LockAwaiter::MakeGuard() const {
  return lock_ == nullptr ? Guard<Lock>() : lock_->MakeGuard();
}

Guard<Lock> LockAwaiter::await_resume() {
  if (ABSL_PREDICT_FALSE(Finish())) std::rethrow_exception(task()->cancelled_error());
  return MakeGuard();
}

Outcome<Guard<Lock>> LockAwaiter::await_outcome() {
  Outcome<Guard<Lock>> outcome;
  if (Finish()) {
    outcome.SetCancelled(task()->cancelled_error());
  } else {
    outcome.Emplace(MakeGuard());
  }
  return outcome;
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_SYNC_LOCK_H_
