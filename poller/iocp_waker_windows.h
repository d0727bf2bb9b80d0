// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_IOCP_WAKER_WINDOWS_H_
#define WEFT_POLLER_IOCP_WAKER_WINDOWS_H_

#include <atomic>

#include "weft/poller/waker.h"

namespace weft::internal {

// IocpWaker
//
// A waker that posts to a completion port, which it owns: so a late wake finds the port,
// though nobody looks at it any more. The port is made when the poller first needs it; a
// wake before that is remembered. A packet without an OVERLAPPED is a wake.
//
// One packet is under way at a time: it would take memory that nobody swaps out.
class IocpWaker final : public Waker {
 public:
  IocpWaker() = default;
  IocpWaker(const IocpWaker&) = delete;
  IocpWaker& operator=(const IocpWaker&) = delete;
  ~IocpWaker() override;

  void Wake() noexcept override;

  // The port (a HANDLE), made now if it was not; null if there is no memory. To be called
  // by the poller's thread only.
  void* Open();

  // To be called by the poller when it has taken a wake's packet: makes what happened
  // before the wakes visible, and lets others come.
  void Acquire() { is_posted_.exchange(false, std::memory_order_seq_cst); }

 private:
  std::atomic<void*> port_{nullptr};
  std::atomic<bool> is_posted_{false};
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_IOCP_WAKER_WINDOWS_H_
