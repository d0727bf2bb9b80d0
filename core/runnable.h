// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_RUNNABLE_H_
#define WEFT_CORE_RUNNABLE_H_

#include "weft/core/intrusive_list.h"

namespace weft {

// Runnable
//
// One callback that the loop will run at most once: the unit everything else
// turns into. A timer that fires, an operation that completes, a future that
// resolves and a post from another thread all end as a `Runnable` in the loop's
// `ReadyQueue`.
//
// A runnable is a member of what it wakes (a task, a coroutine's awaiter, a
// test), so scheduling allocates nothing. It is in one queue at a time, and
// leaves it when cancelled or destroyed.
//
//   struct Beep final : Runnable {
//     Beep() : Runnable([](Runnable* self) { static_cast<Beep*>(self)->Ring(); }) {}
//     void Ring();
//   };
//
// Threads: belongs to the loop's thread. Only `Inbox` takes one from another.
// Python: what an `asyncio.Handle` stands for; `Cancel()` keeps its meaning.
class Runnable : public ListNode {
 public:
  using RunFn = void (*)(Runnable*);

  // `run` is called on the loop's thread and must not throw: whoever wraps
  // user code hands its exceptions to `Scheduler::HandleException()`.
  explicit Runnable(RunFn run) : run_(run) {}

  // Calls the callback now. The runnable has already left its queue, so the
  // callback may queue it again, or destroy it.
  void Run() { run_(this); }

  // Makes sure the callback does not run, unless it is queued again. Safe at
  // any time, also from a callback of the same round.
  void Cancel() { Unlink(); }

  // Replaces what `Run()` does, from the next time on.
  void set_run(RunFn run) { run_ = run; }
  RunFn run_fn() const { return run_; }

 private:
  RunFn run_;
};

// ReadyQueue
//
// What runs next, first in, first out. There is no priority.
using ReadyQueue = List<Runnable>;

}  // namespace weft

#endif  // WEFT_CORE_RUNNABLE_H_
