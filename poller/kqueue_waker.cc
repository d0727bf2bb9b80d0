// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/kqueue_waker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <unistd.h>

namespace weft::internal {

namespace {

// 0 or a negated errno.
int Change(int fd, uint16_t flags, uint32_t note) {
  struct kevent change;
  EV_SET(&change, 0, EVFILT_USER, flags, note, 0, nullptr);
  while (::kevent(fd, &change, 1, nullptr, 0, nullptr) < 0) {
    if (errno != EINTR) return -errno;
  }
  return 0;
}

}  // namespace

// kevent(2) is a bare system call.
bool KqueueWaker::Signal(int fd) { return Change(fd, 0, NOTE_TRIGGER) == 0; }

int KqueueWaker::Open() {
  if (fd() >= 0) return fd();
  const int opened = ::kqueue();
  if (opened < 0) return -errno;
  ::fcntl(opened, F_SETFD, FD_CLOEXEC);
  if (const int error = Change(opened, EV_ADD | EV_CLEAR, 0)) {
    ::close(opened);
    return error;
  }
  return Adopt(opened);
}

}  // namespace weft::internal
