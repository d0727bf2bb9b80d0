// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_KQUEUE_WAKER_H_
#define WEFT_POLLER_KQUEUE_WAKER_H_

#include "weft/poller/descriptor_waker_posix.h"

namespace weft::internal {

// KqueueWaker
//
// Wakes who sleeps at a kqueue(2), by a user event of that. So it owns the kqueue:
// as it may outlive the poller, whose descriptor would come back for something else.
class KqueueWaker final : public DescriptorWaker {
 public:
  KqueueWaker() : DescriptorWaker("kqueue") {}

  // The kqueue, opened now if it was not; or a negated errno. If there was a wake
  // already, it has an event of EVFILT_USER. To be called by the poller's thread only,
  // as the next one.
  int Open();

  // The same, or a negative number if it is not open.
  int fd() const { return signalled_fd(); }

 private:
  bool Signal(int fd) override;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_KQUEUE_WAKER_H_
