// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_end_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

void UringEnd::Hold(Uring* ring) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) < 0 || AboveStandardStreams(fds) != 0) return;
  const int error = ring->Register(uring::kRegisterFiles, &fds[1], 1);
  ::close(fds[1]);
  fd_ = fds[0];
  if (error != 0) Forget();
}

bool UringEnd::Wait(absl::Duration patience) {
  pollfd entry = {fd_, 0, 0};
  int count;
  do {
    count = ::poll(&entry, 1, static_cast<int>(absl::ToInt64Milliseconds(patience)));
  } while (count < 0 && errno == EINTR);
  return count == 1;
}

void UringEnd::Forget() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace weft::internal
