// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_end_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

namespace weft::internal {

int UringEnd::Hold(Uring* ring) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) < 0) return -errno;
  const int error = ring->Register(uring::kRegisterFiles, &fds[1], 1);
  ::close(fds[1]);
  if (error == 0) {
    fd_ = fds[0];
  } else {
    ::close(fds[0]);
  }
  return error;
}

int UringEnd::Wait() {
  constexpr int kPatienceMilliseconds = 30'000;
  pollfd entry = {fd_, 0, 0};
  int count;
  do {
    count = ::poll(&entry, 1, kPatienceMilliseconds);
  } while (count < 0 && errno == EINTR);
  return count == 1 ? 0 : -EXDEV;
}

void UringEnd::Forget() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace weft::internal
