// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The signal of a write is directed at the thread that writes (pthread(7)), so it can be
// blocked and taken out here.

#include "weft/poller/sigpipe_posix.h"

namespace weft::internal {

namespace {

sigset_t JustSigpipe() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  return signals;
}

bool IsPending() {
  sigset_t waiting;
  sigpending(&waiting);
  return sigismember(&waiting, SIGPIPE) == 1;
}

}  // namespace

SigpipeBlock::SigpipeBlock(int fd) : fd_(fd), was_so_(IsPending()) {
  static_cast<void>(fd_);
  const sigset_t sigpipe = JustSigpipe();
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before_);
}

SigpipeBlock::~SigpipeBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void SigpipeBlock::TakeRaised() {
  const sigset_t sigpipe = JustSigpipe();
  int taken;
  if (!was_so_ && IsPending()) sigwait(&sigpipe, &taken);
}

}  // namespace weft::internal
