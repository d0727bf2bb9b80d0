// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_EVENTFD_WAKER_LINUX_H_
#define WEFT_POLLER_EVENTFD_WAKER_LINUX_H_

#include <atomic>

#include "weft/poller/waker.h"

namespace weft::internal {

// EventfdWaker
//
// A waker over an eventfd(2), which the poller opens when it first sleeps. A wake
// before that is remembered.
//
// The poller watches the descriptor edge-triggered and never reads it: each
// write is a change, whatever the counter stands at. That saves a system call a
// wake.
class EventfdWaker final : public Waker {
 public:
  EventfdWaker() = default;
  EventfdWaker(const EventfdWaker&) = delete;
  EventfdWaker& operator=(const EventfdWaker&) = delete;
  ~EventfdWaker() override;

  void Wake() noexcept override;

  // The descriptor, opened now if it was not; or a negated errno. If there was a
  // wake already, it is readable. To be called by the poller's thread only.
  int Open();

  // To be called by the poller when the descriptor was reported: makes what
  // happened before the wakes visible.
  void Acquire() { wakes_.load(std::memory_order_acquire); }

 private:
  static constexpr int kUnopened = -1;
  static constexpr int kWokenUnopened = -2;

  std::atomic<int> fd_{kUnopened};
  // Only for the order: a race detector does not see it in write and epoll_wait.
  std::atomic<unsigned> wakes_{0};
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_EVENTFD_WAKER_LINUX_H_
