// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_STANDARD_STREAMS_POSIX_H_
#define WEFT_POLLER_STANDARD_STREAMS_POSIX_H_

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

namespace weft::internal {

// What a system call has returned that opens a descriptor: the descriptor, or a negated
// errno for -1. Where a program was started without a standard stream the system gives its
// number to the next file, and what is meant for the stream goes there: what is logged
// would go to the peer of a socket. So such a number becomes another one, close-on-exec,
// as all of weft's are.
//
// Threads: any.
inline int AboveStandardStreams(int fd) {
  if (fd > STDERR_FILENO) return fd;
  if (fd < 0) return -errno;
  const int high = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int result = high >= 0 ? high : -errno;
  ::close(fd);
  return result;
}

// The same for both ends of something: 0, or a negated errno, and then neither is left.
inline int AboveStandardStreams(int (&fds)[2]) {
  for (int& fd : fds) fd = AboveStandardStreams(fd);
  for (int i = 0; i < 2; ++i) {
    if (fds[i] >= 0) continue;
    if (fds[1 - i] >= 0) ::close(fds[1 - i]);
    return fds[i];
  }
  return 0;
}

}  // namespace weft::internal

#endif  // WEFT_POLLER_STANDARD_STREAMS_POSIX_H_
