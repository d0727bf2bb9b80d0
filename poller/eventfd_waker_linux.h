// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_EVENTFD_WAKER_LINUX_H_
#define WEFT_POLLER_EVENTFD_WAKER_LINUX_H_

#include "weft/poller/descriptor_waker_posix.h"

namespace weft::internal {

// EventfdWaker
//
// A waker over an eventfd(2).
//
// The poller watches the descriptor edge-triggered and never reads it: each
// write is a change, whatever the counter stands at. That saves a system call a
// wake.
class EventfdWaker final : public DescriptorWaker {
 public:
  EventfdWaker() : DescriptorWaker("eventfd") {}

  // The descriptor, opened now if it was not; or a negated errno. If there was a
  // wake already, it is readable. To be called by the poller's thread only.
  int Open();

 private:
  bool Signal(int fd) override;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_EVENTFD_WAKER_LINUX_H_
