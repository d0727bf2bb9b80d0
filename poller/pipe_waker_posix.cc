// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/pipe_waker_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

PipeWaker::~PipeWaker() {
  if (read_fd_ >= 0) ::close(read_fd_);
}

bool PipeWaker::Signal(int fd) {
  const char byte = 0;
  while (::write(fd, &byte, 1) < 0) {
    if (errno == EAGAIN) return true;  // It is full, so it is readable.
    if (errno != EINTR) return false;
  }
  return true;
}

int PipeWaker::Open() {
  if (read_fd_ >= 0) return read_fd_;
  int fds[2];
  if (::pipe(fds) < 0) return -errno;
  if (const int error = AboveStandardStreams(fds)) return error;
  for (int fd : fds) {
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  read_fd_ = fds[0];
  Adopt(fds[1]);
  return read_fd_;
}

void PipeWaker::Drain() {
  char bytes[512];
  while (true) {
    const ssize_t count = ::read(read_fd_, bytes, sizeof(bytes));
    if (count == static_cast<ssize_t>(sizeof(bytes))) continue;
    if (count < 0 && errno == EINTR) continue;
    break;
  }
  Acquire();
}

}  // namespace weft::internal
