// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_CONDITION_H_
#define WEFT_SYNC_CONDITION_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/core/closure.h"
#include "weft/core/coro.h"
#include "weft/sync/guard.h"
#include "weft/sync/lock.h"
#include "weft/sync/waiter_list.h"

namespace weft {

// Condition
//
// A lock, and tasks that wait, without it, to be told that what it protects has
// changed.
//
//   Condition changed;
//   ...
//   Lock::Guard guard = co_await changed.Acquire();
//   co_await changed.WaitFor([&] { return !jobs.empty(); });   // a consumer
//   ...
//   Lock::Guard guard = co_await changed.Acquire();
//   jobs.push_back(job);
//   changed.Notify();                                          // a producer
//
// Wait() gives the lock back and has it again when it ends, however it ends: also
// if it is cancelled, and cancelled again while it waits for the lock. So the
// guard of the caller stays right. A notification to somebody who is cancelled
// goes on to the next; for this reason, among others, Wait() may end though
// nothing has changed: look again, or use WaitFor().
//
// A condition may be destroyed while tasks wait: those wait on until they are
// cancelled. Those that were notified before go on; a WaitFor() whose predicate
// does not hold then waits on as well.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Condition of 3.13.
class Condition {
 public:
  // With a lock of its own.
  Condition() : lock_(&own_lock_) {}
  // With `lock`, which several conditions may share and which outlives them.
  explicit Condition(Lock& lock) : lock_(&lock) {}
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // The lock's.
  internal::LockAwaiter Acquire() { return lock_->Acquire(); }
  Lock::Guard TryAcquire() { return lock_->TryAcquire(); }
  void Release() { lock_->Release(); }
  bool Locked() const { return lock_->Locked(); }

  // Waits to be notified. Errors: RuntimeError "cannot wait on un-acquired lock".
  Coro<void> Wait() { return WaitWithout(this, lock_); }

  // Waits until `predicate()` holds, and returns what it returned. It is called
  // with the lock held: at first, and after each notification.
  template <class F>
  auto WaitFor(F&& predicate) {
    WEFT_CHECK_CLOSURE(F);
    return WaitForValue(this, internal::KeepClosure(std::forward<F>(predicate)));
  }

  // Wakes the `n` who have waited longest, or all if there are fewer. They go on
  // one after the other, when the caller has given the lock back.
  // Errors: RuntimeError "cannot notify on un-acquired lock".
  void Notify(int64_t n = 1);
  void NotifyAll();

  // "<Condition [locked, waiters:2]>".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Condition& condition) {
    return out << condition.ToString();
  }

 private:
  template <class F, class T = std::decay_t<std::invoke_result_t<F&>>>
  static Coro<T> WaitForValue(Condition* condition, F predicate) {
    // Either may be gone after a wait.
    internal::BackRef<Condition> self(condition, condition->refs_);
    internal::BackRef<Lock> lock(condition->lock_, condition->lock_->guards_);
    while (true) {
      T value = predicate();
      if (value) co_return value;
      co_await WaitWithout(self.get(), lock.get());
    }
  }

  // Waits without `lock`, which is null if it is gone. `condition`: null if that is
  // gone, and then nobody ends the wait but a cancellation.
  static Coro<void> WaitWithout(Condition* condition, Lock* lock);

  void CheckCanNotify() const;

  Lock own_lock_;  // Unused, if one was given.
  Lock* lock_;
  internal::WaiterList waiters_;
  internal::BackRefs<Condition> refs_;
};

}  // namespace weft

#endif  // WEFT_SYNC_CONDITION_H_
