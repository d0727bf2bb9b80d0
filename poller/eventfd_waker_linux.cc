// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/eventfd_waker_linux.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

bool EventfdWaker::Signal(int fd) {
  const uint64_t one = 1;
  while (::write(fd, &one, sizeof(one)) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return false;
    // The counter is full (eventfd(2)). The poller has been woken by the write
    // that filled it, but maybe it has looked since: only a write is a change.
    uint64_t count;
    static_cast<void>(!::read(fd, &count, sizeof(count)));
  }
  return true;
}

int EventfdWaker::Open() {
  if (signalled_fd() >= 0) return signalled_fd();
  const int fd = AboveStandardStreams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd < 0 ? fd : Adopt(fd);
}

}  // namespace weft::internal
