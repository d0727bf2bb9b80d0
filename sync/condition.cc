// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/condition.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/outcome.h"

namespace weft {

Coro<void> Condition::WaitWithout(Condition* condition, Lock* held) {
  if (held != nullptr && !held->Locked()) throw RuntimeError("cannot wait on un-acquired lock");
  // Either may be gone when the wait is over.
  internal::BackRef<Condition> self;
  internal::BackRef<Lock> lock;
  if (condition != nullptr) self.Bind(condition, condition->refs_);
  if (held != nullptr) {
    lock.Bind(held, held->guards_);
    held->Release();
  }
  internal::WaiterList nobodys;
  internal::ListWait wait(condition != nullptr ? &condition->waiters_ : &nobodys, "Condition.Wait");
  Outcome<void> ended = co_await wait;

  while (lock.get() != nullptr) {
    Outcome<Lock::Guard> acquired = co_await NoThrow(lock.get()->Acquire());
    if (acquired.has_value()) {
      (*acquired).Detach();  // The lock is the caller's again.
      break;
    }
    ended.SetCancelled(acquired.exception());
  }

  if (ended.has_value()) co_return;
  // It may have been notified before: that is for somebody else then.
  if (self.get() != nullptr) self.get()->waiters_.WakeFirst();
  std::rethrow_exception(ended.exception());
}

void Condition::CheckCanNotify() const {
  if (!Locked()) throw RuntimeError("cannot notify on un-acquired lock");
  waiters_.CheckThread();
}

void Condition::Notify(int64_t n) {
  CheckCanNotify();
  while (n-- > 0 && waiters_.WakeFirst() != nullptr) {
  }
}

void Condition::NotifyAll() {
  CheckCanNotify();
  waiters_.WakeAll();
}

std::string Condition::ToString() const {
  return absl::StrCat("<Condition [", Locked() ? "locked" : "unlocked", waiters_.Suffix(), "]>");
}

}  // namespace weft
