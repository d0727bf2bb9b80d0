// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The signal of a write is directed at the process, so that blocking it here would only
// send it to another thread. But it can be switched off for an open file (fcntl(2)); that
// other processes may share, so it is switched on again.

#include <fcntl.h>

#include "weft/poller/sigpipe_posix.h"

namespace weft::internal {

SigpipeBlock::SigpipeBlock(int fd) : fd_(fd), before_(), was_so_(::fcntl(fd, F_GETNOSIGPIPE) == 1) {
  static_cast<void>(before_);
  if (!was_so_) ::fcntl(fd_, F_SETNOSIGPIPE, 1);
}

SigpipeBlock::~SigpipeBlock() {
  if (!was_so_) ::fcntl(fd_, F_SETNOSIGPIPE, 0);
}

void SigpipeBlock::TakeRaised() {}

}  // namespace weft::internal
