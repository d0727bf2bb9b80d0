// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SIGPIPE_POSIX_H_
#define WEFT_POLLER_SIGPIPE_POSIX_H_

#include <signal.h>

namespace weft::internal {

// While it lives, writing to `fd` on this thread raises no SIGPIPE: for system calls that
// raise it and have no flag against it. The process's disposition is not touched, and a
// signal that was pending before stays so.
//
// Threads: one object belongs to the thread that made it.
class SigpipeBlock {
 public:
  explicit SigpipeBlock(int fd);
  SigpipeBlock(const SigpipeBlock&) = delete;
  ~SigpipeBlock();

  // Takes out the signal, if a call has raised it.
  void TakeRaised();

 private:
  const int fd_;
  sigset_t before_;
  bool was_so_;  // The signal was pending; or, on macOS, switched off.
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_SIGPIPE_POSIX_H_
