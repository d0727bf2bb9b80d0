// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_INBOX_H_
#define WEFT_CORE_INBOX_H_

#include <atomic>

#include "absl/base/attributes.h"
#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "weft/core/runnable.h"

namespace weft {

// Inbox
//
// Where other threads leave runnables for the loop: many may push, the loop's
// thread takes everything out at once. Nobody ever waits for anybody, and
// pushing allocates nothing, for a runnable brings its own link.
//
//   // Any thread.
//   switch (inbox.Push(post)) {
//     case Inbox::PushResult::kWasEmpty: WakeIfAsleep(); break;
//     case Inbox::PushResult::kQueued: break;  // Who found it empty wakes.
//     case Inbox::PushResult::kClosed: throw RuntimeError("Event loop is closed");
//   }
//
//   // The loop's thread.
//   inbox.DrainTo(&ready);
//
// Runnables are drained in the order in which they were pushed: one thread's
// own order always, that of two threads where one push happens before the
// other. After `Close()` nothing gets in: each push is either handed over, by a
// drain or by `Close()`, or refused, whatever the threads do at the same time.
//
// From a push until it is handed over a runnable belongs to the inbox: it may
// not be cancelled, queued elsewhere or destroyed, and `is_linked()` says
// nothing. To take a post back, mark it, and let it find the mark when it runs.
//
// Threads: `Push()` and `empty()` from any, the others from the loop's only. A
// push happens before the run of what was pushed.
//
// Why no wake is lost, although a loop that does not sleep is not woken:
//
//   poster:  Push();  if (sleeping) wake    loop:  sleeping = true;  empty()?
//
// A push and `empty()` are sequentially consistent, and the owner of `sleeping`
// makes both its uses so. Then there is one order of all four, and in it the
// poster reads `sleeping` after the loop set it, or the loop looks after the
// push, and does not sleep. With weaker orders each could miss the other.
class Inbox {
 public:
  enum class PushResult {
    kWasEmpty,  // Taken; nothing had been pushed since the last drain.
    kQueued,    // Taken, behind others.
    kClosed,    // Refused: the runnable is as it was, and still the caller's.
  };

  Inbox() = default;
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // REQUIRES: closed, or empty, and no thread is pushing.
  ~Inbox() { ABSL_HARDENING_ASSERT(IsNothing(head_.load(std::memory_order_relaxed))); }

  // Leaves `runnable` for the loop. Any thread.
  // REQUIRES: `runnable` is in no queue.
  PushResult Push(Runnable* runnable);

  // Appends what has been pushed to `ready`, the oldest first, and says whether
  // there was anything. One load if there was not. What is pushed meanwhile
  // waits for the next call.
  bool DrainTo(ReadyQueue* ready);

  // Refuses every later push, and appends what had not been drained to `rest`.
  // Does nothing if already closed.
  void Close(ReadyQueue* rest);

  // True if there is nothing to drain. For any thread but the loop's, this may
  // have changed by the time it is known.
  bool empty() const { return IsNothing(head_.load(std::memory_order_seq_cst)); }
  // What DrainTo() would find, without a place in that order. For the loop's thread.
  bool looks_empty() const { return IsNothing(head_.load(std::memory_order_relaxed)); }

 private:
  // A stack of what was pushed, the newest on top, linked by `next_` with null
  // at the bottom (Treiber, 1986). Draining takes the whole stack in one
  // exchange and turns it over.
  //
  // Memory order. A pusher's writes to its runnable are released by its
  // exchange of the head. A drain acquires the head, and with it the writes of
  // *every* pusher below: the head is only changed by read-modify-writes, so
  // each belongs to the release sequence of all those before it. A pusher
  // itself only copies the pointer that it finds and never follows it, so it
  // needs no acquire; and for the same reason a head that was drained and
  // pushed again in between (ABA) does no harm: it is the top of the stack,
  // and that is all that is asked. What a push has beyond release is for the
  // argument about sleeping, above. `DrainTo()` may look with a relaxed load: a
  // push that happens before it is seen, by coherence.
  //
  // An exchange by the loop cannot fail, and that is what makes closing exact:
  // what was under the mark was accepted, and no later push can exchange it.
  bool IsNothing(const ListNode* head) const { return head == nullptr || head == &closed_; }

  // Not to be inlined: the loop looks in vain most of the time.
  ABSL_ATTRIBUTE_NOINLINE static void AppendTurned(ListNode* newest, ReadyQueue* queue) {
    ReadyQueue in_order;
    while (newest != nullptr) {
      ListNode* const older = newest->next_;
      newest->next_ = nullptr;
      in_order.PushFront(static_cast<Runnable*>(newest));
      newest = older;
    }
    queue->Splice(&in_order);
  }

  std::atomic<ListNode*> head_ = nullptr;
  ListNode closed_;  // Its address, as the head, is the mark CLOSED.
};

inline Inbox::PushResult Inbox::Push(Runnable* runnable) {
  ListNode* const node = runnable;
  ABSL_ASSERT(!node->is_linked());
  ListNode* head = head_.load(std::memory_order_relaxed);
  do {
    if (ABSL_PREDICT_FALSE(head == &closed_)) {
      node->next_ = nullptr;
      return PushResult::kClosed;
    }
    node->next_ = head;
  } while (!head_.compare_exchange_weak(head, node, std::memory_order_seq_cst,
                                        std::memory_order_relaxed));
  return head == nullptr ? PushResult::kWasEmpty : PushResult::kQueued;
}

inline bool Inbox::DrainTo(ReadyQueue* ready) {
  // Only this thread closes, so the mark cannot appear between load and exchange.
  if (looks_empty()) return false;
  AppendTurned(head_.exchange(nullptr, std::memory_order_acquire), ready);
  return true;
}

inline void Inbox::Close(ReadyQueue* rest) {
  ListNode* const newest = head_.exchange(&closed_, std::memory_order_acquire);
  if (!IsNothing(newest)) AppendTurned(newest, rest);
}

}  // namespace weft

#endif  // WEFT_CORE_INBOX_H_
