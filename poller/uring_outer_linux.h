// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_OUTER_LINUX_H_
#define WEFT_POLLER_URING_OUTER_LINUX_H_

#include "weft/core/time_point.h"
#include "weft/poller/uring_linux.h"

namespace weft::internal {

// UringOuter
//
// What a foreign loop watches in the place of a ring: a descriptor that is readable when
// there is something to call the kernel for, and at a deadline.
//
// It is not the ring's own: of a ring that defers, nothing is complete before our call. An
// eventfd is told when there is something to call for; but not when another eventfd was
// the reason (seen on 6.18), so the waker's is watched as well. All of them are in an epoll
// set, with a timerfd.
//
// Threads: belongs to the loop's thread.
class UringOuter {
 public:
  UringOuter() = default;
  UringOuter(const UringOuter&) = delete;
  UringOuter& operator=(const UringOuter&) = delete;
  ~UringOuter();

  // False if there are no descriptors left; may be tried again.
  bool Open(Uring* ring, int waker_fd);
  bool is_open() const { return set_fd_ >= 0; }
  // The descriptor to watch; negative if it is not open.
  int fd() const { return set_fd_; }

  // Another ring has taken the place of the first. 0 or a negated errno.
  int Move(Uring* ring);

  // Takes what was reported up to now; whether there is something to do is to be looked at
  // afterwards.
  void Clear();

  // It is readable at `moment` at the latest, at once if that has passed.
  void Arm(TimePoint moment);

 private:
  int set_fd_ = -1;
  int event_fd_ = -1;
  int timer_fd_ = -1;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_OUTER_LINUX_H_
