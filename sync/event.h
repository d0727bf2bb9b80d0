// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_EVENT_H_
#define WEFT_SYNC_EVENT_H_

#include <coroutine>
#include <ostream>
#include <string>

#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class Event;

namespace internal {

class [[nodiscard]] EventAwaiter : public Waiter {
 public:
  explicit EventAwaiter(Event* event) : event_(event) {}
  EventAwaiter(EventAwaiter&& other) noexcept : event_(other.event_) {}  // Before the await.

  inline bool await_ready() const;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle);
  void await_resume() {
    Unlink();
    EndOrThrow();
  }
  Outcome<void> await_outcome() {
    Unlink();
    return EndAsOutcome();
  }
  std::string Description() const override;

 private:
  Event* event_;
};

}  // namespace internal

// Event
//
// Something that happens, and tasks that wait for it.
//
//   Event ready;
//   ...
//   co_await ready.Wait();      // in some tasks
//   ready.Set();                // in another, or in a callback
//
// Set() releases all who wait then, in the order in which they came, even if
// Clear() follows at once; from then on Wait() does not suspend. An event that is
// destroyed releases nobody: who still waits waits until it is cancelled. Right
// after Set() it may be destroyed.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Event.
class Event {
 public:
  Event() {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool IsSet() const { return set_; }

  // Nothing, if it is set.
  void Set() {
    if (set_) return;
    waiters_.CheckThread();
    set_ = true;
    waiters_.WakeAll();
  }

  void Clear() { set_ = false; }

  // Awaitable of void: until the event is set; at once if it is.
  internal::EventAwaiter Wait() { return internal::EventAwaiter(this); }

  // "<Event [unset, waiters:2]>".
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const Event& event) {
    return out << event.ToString();
  }

 private:
  friend class internal::EventAwaiter;

  bool set_ = false;
  internal::WaiterList waiters_;
};

namespace internal {

bool EventAwaiter::await_ready() const { return event_->IsSet(); }

template <class Promise>
void EventAwaiter::await_suspend(std::coroutine_handle<Promise> handle) {
  event_->waiters_.Wait(this, handle);
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_SYNC_EVENT_H_
