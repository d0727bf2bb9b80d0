// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SIGPIPE_POSIX_H_
#define WEFT_POLLER_SIGPIPE_POSIX_H_

#include <signal.h>

namespace weft::internal {

// While it lives, SIGPIPE does not reach this thread: for system calls that raise it
// and have no flag against it. The process's disposition is not touched, and a signal
// that was pending before stays so. The signal of a write is directed at the thread
// that writes (pthread(7)), so it can be taken out here.
//
// Threads: one object belongs to the thread that made it.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    was_pending_ = IsPending();
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  ~SigpipeBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Takes out the signal, if a call has raised it.
  void TakeRaised() {
    int taken;
    if (!was_pending_ && IsPending()) sigwait(&sigpipe_, &taken);
  }

 private:
  static bool IsPending() {
    sigset_t waiting;
    sigpending(&waiting);
    return sigismember(&waiting, SIGPIPE) == 1;
  }

  sigset_t sigpipe_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_SIGPIPE_POSIX_H_
