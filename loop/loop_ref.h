// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_LOOP_REF_H_
#define WEFT_LOOP_LOOP_REF_H_

#include <atomic>
#include <memory>
#include <utility>

#include "weft/core/callback.h"
#include "weft/core/inbox.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/poller/waker.h"

namespace weft {

namespace internal {

class LoopShared;

// Of the loop that is running on this thread, or null. Unlike a loop's address, that of
// what a LoopRef holds does not come back for another loop.
extern constinit thread_local LoopShared* running_shared;

// What a loop shares with other threads: where they leave posts, and how they
// wake it. Outlives the loop.
//
// A wake is a system call, so it is made only if the loop has said that it
// sleeps, and by the first who finds that it does: however many post, one call
// until the loop has looked. The order is the loop's guarantee: it sets
// `sleeping`, looks into the inbox once more, and only then sleeps, while a
// poster pushes first and then looks at `sleeping`. All four are sequentially
// consistent, so one of the two sees the other.
class LoopShared {
 public:
  LoopShared(Scheduler* scheduler, std::shared_ptr<Waker> waker)
      : scheduler_(scheduler), waker_(std::move(waker)) {}

  // Any thread. Queues the callback; its closure is destroyed here if the loop
  // is closed. Errors: RuntimeError "Event loop is closed".
  Handle Post(CallbackSlot* slot);

  // True on the thread that is running the loop now.
  bool IsRunningHere() const { return running_shared == this; }

  // -- The loop's own.

  // Says that the loop is about to sleep; false if it must not, for something
  // was posted.
  bool BeginSleep() {
    sleeping_.store(true, std::memory_order_seq_cst);
    return inbox_.empty();
  }
  void EndSleep() { sleeping_.store(false, std::memory_order_relaxed); }

  // Wakes the loop if it sleeps. Any thread, and signal handlers.
  void WakeIfAsleep() {
    if (sleeping_.load(std::memory_order_seq_cst) &&
        sleeping_.exchange(false, std::memory_order_acq_rel)) {
      waker_->Wake();
    }
  }
  // Wakes it whether it says that it sleeps or not.
  void Wake() { waker_->Wake(); }

  Inbox& inbox() { return inbox_; }

 private:
  static constexpr size_t kCacheLine = 64;

  Scheduler* const scheduler_;  // Not to be touched unless IsRunningHere().
  const std::shared_ptr<Waker> waker_;
  // Posters change these two, and so the cache lines they are in: not those of the others,
  // nor of what lies behind.
  char apart_[kCacheLine];
  std::atomic<bool> sleeping_{false};
  Inbox inbox_;
  char apart_behind_[kCacheLine];
};

}  // namespace internal

// LoopRef
//
// A reference to a loop that other threads may hold: it outlives the loop, and
// everything posted to it runs once on the loop's thread or is refused.
//
//   std::thread worker([ref = loop.Ref()] { ref.Post([] { ... }); });
//
// Threads: any; copies count atomically.
// Python: what people pass loops to threads for, call_soon_threadsafe(); but it
// is safe at the end of the loop.
class LoopRef {
 public:
  LoopRef() = default;  // Refers to no loop.
  explicit LoopRef(std::shared_ptr<internal::LoopShared> shared) : shared_(std::move(shared)) {}

  explicit operator bool() const { return shared_ != nullptr; }
  friend bool operator==(const LoopRef& a, const LoopRef& b) = default;

  // Has `callable` run on the loop's thread, in the next round; on the loop's
  // own thread this is CallSoon(). The posts of one thread run in their order. It
  // sees copies of the context variables of this thread.
  // REQUIRES: *this. Errors: RuntimeError "Event loop is closed"; the callable is
  // destroyed on this thread then.
  template <internal::PlainCallback F>
  void Post(F&& callable, const SourceLocation& location = SourceLocation::current()) const {
    shared_->Post(internal::CallbackSlot::Make(std::forward<F>(callable), location));
  }

  // True on the thread that is running the loop now.
  bool IsRunningHere() const { return shared_->IsRunningHere(); }

  const std::shared_ptr<internal::LoopShared>& shared() const { return shared_; }

 private:
  std::shared_ptr<internal::LoopShared> shared_;
};

}  // namespace weft

#endif  // WEFT_LOOP_LOOP_REF_H_
