// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_KQUEUE_WAKER_H_
#define WEFT_POLLER_KQUEUE_WAKER_H_

#include <atomic>

#include "weft/poller/waker.h"

namespace weft::internal {

// KqueueWaker
//
// Wakes who sleeps at a kqueue(2), by a user event of that. So it owns the kqueue:
// as it may outlive the poller, whose descriptor would come back for something else.
// A wake before it is opened is remembered.
class KqueueWaker final : public Waker {
 public:
  KqueueWaker() = default;
  KqueueWaker(const KqueueWaker&) = delete;
  KqueueWaker& operator=(const KqueueWaker&) = delete;
  ~KqueueWaker() override;

  void Wake() noexcept override;

  // The kqueue, opened now if it was not; or a negated errno. If there was a wake
  // already, it has an event. To be called by the poller's thread only, as the next
  // ones.
  int Open();

  // The same, or a negative number if it is not open.
  int fd() const { return fd_.load(std::memory_order_relaxed); }

  // To be called when an event of EVFILT_USER was fetched: makes what happened before
  // the wakes visible.
  void Acquire() { wakes_.load(std::memory_order_acquire); }

 private:
  static constexpr int kUnopened = -1;
  static constexpr int kWokenUnopened = -2;

  std::atomic<int> fd_{kUnopened};
  // Only for the order: a race detector does not see it in kevent.
  std::atomic<unsigned> wakes_{0};
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_KQUEUE_WAKER_H_
