// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_WAITER_LIST_H_
#define WEFT_SYNC_WAITER_LIST_H_

#include <coroutine>
#include <cstddef>
#include <string>

#include "absl/base/optimization.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/outcome.h"
#include "weft/core/task_state.h"
#include "weft/core/waiter.h"

namespace weft::internal {

[[noreturn]] void ThrowOtherLoop();

// ", waiters:2", for ToString(); empty for none.
std::string WaitersSuffix(size_t count);

// Those who wait for one thing, first come, first served. Whoever is woken
// leaves the list at once and needs it no more; whoever was cancelled leaves it
// when it resumes, or when it would be its turn. So each waiter is looked at
// once, whatever happens in a round.
//
// It may be destroyed while somebody waits: those wait on, until they are
// cancelled.
class WaiterList {
 public:
  // Suspends the coroutine of `handle`, at the end of the list.
  // Errors: RuntimeError if tasks of another loop wait here.
  template <class Promise>
  void Wait(Waiter* waiter, std::coroutine_handle<Promise> handle) {
    if (Waiter* other = list_.front()) CheckSameLoop(other, handle.promise().task);
    list_.PushBack(waiter);
    waiter->Begin(handle);
  }

  // Wakes the first that waits, and returns it; null if nobody does.
  Waiter* WakeFirst() {
    while (Waiter* waiter = list_.PopFront()) {
      if (waiter->Wake()) return waiter;
    }
    return nullptr;
  }

  void WakeAll() {
    while (WakeFirst() != nullptr) {
    }
  }

  // Whether anybody waits. Those at the head who were cancelled are dropped.
  bool has_waiting() {
    while (Waiter* waiter = list_.front()) {
      if (waiter->is_waiting()) return true;
      waiter->Unlink();
    }
    return false;
  }

  // In debug mode: RuntimeError if another thread is running the loop of those who
  // wait. For whoever is about to change something.
  void CheckThread() const {
    if (const Waiter* waiter = list_.front()) waiter->CheckThread();
  }

  // O(n): for ToString().
  size_t CountSlowly() const { return list_.CountSlowly(); }
  // ", waiters:2"; empty if nobody waits.
  std::string Suffix() const { return WaitersSuffix(CountSlowly()); }

  static void CheckSameLoop(const Waiter* waiter, const TaskState* task) {
    if (ABSL_PREDICT_FALSE(waiter->task()->scheduler() != task->scheduler())) ThrowOtherLoop();
  }

 private:
  List<Waiter> list_;
};

// One wait in a list, for coroutines that look again at what they wait for. It
// says how it ended, and throws nothing. `what` is a literal: "Queue.Get".
class [[nodiscard]] ListWait : public Waiter {
 public:
  ListWait(WaiterList* list, const char* what) : list_(list), what_(what) {}

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    list_->Wait(this, handle);
  }
  Outcome<void> await_resume() {
    Unlink();
    return EndAsOutcome();
  }
  Outcome<Outcome<void>> await_outcome() {
    Outcome<Outcome<void>> outcome;
    outcome.Emplace(await_resume());
    return outcome;
  }

  std::string Description() const override;

 private:
  WaiterList* list_;
  const char* what_;
};

}  // namespace weft::internal

#endif  // WEFT_SYNC_WAITER_LIST_H_
