// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_END_LINUX_H_
#define WEFT_POLLER_URING_END_LINUX_H_

#include "absl/time/time.h"
#include "weft/poller/uring_linux.h"

namespace weft::internal {

// UringEnd
//
// Tells when the kernel has freed a ring that was closed, which it does when the last
// request has ended that a worker of its is at; nobody but the ring's own thread could
// hear of that end. The ring holds the last reference to one end of a pipe, as a registered
// file; the other end hangs up when it is freed.
//
// Threads: `Hold()` on the ring's own; the others on any.
class UringEnd {
 public:
  UringEnd() = default;
  UringEnd(const UringEnd&) = delete;
  UringEnd& operator=(const UringEnd&) = delete;
  ~UringEnd() { Forget(); }

  // From now on it can be waited for, if there are descriptors for that. Once for each ring.
  void Hold(Uring* ring);
  bool is_held() const { return fd_ >= 0; }

  // Waits until the ring, which was closed, is freed. A child process that was forked and
  // has not executed anything keeps it, so there is an end to patience: false.
  // REQUIRES: `is_held()`.
  bool Wait(absl::Duration patience);

  void Forget();

 private:
  int fd_ = -1;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_END_LINUX_H_
