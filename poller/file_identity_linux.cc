// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/file_identity_linux.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::internal {

namespace {

uint64_t IdentityOf(const struct stat& status) {
  return static_cast<uint64_t>(status.st_dev) << 40 ^ static_cast<uint64_t>(status.st_ino);
}

}  // namespace

uint64_t FileOf(NativeHandle handle) {
  struct stat status;
  return ::fstat(static_cast<int>(handle), &status) == 0 ? IdentityOf(status) : 0;
}

int CheckWatchable(NativeHandle handle, uint64_t* file) {
  const int fd = static_cast<int>(handle);
  struct stat status;
  if (::fstat(fd, &status) < 0) return -errno;
  *file = IdentityOf(status);
  if (S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode)) return 0;
  if (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) return -EPERM;
  // It depends on the driver, and nobody else tells.
  const int epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0) return 0;
  epoll_event event = {};
  const int error = ::epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? errno : 0;
  ::close(epoll_fd);
  return error == EPERM ? -EPERM : 0;
}

}  // namespace weft::internal
