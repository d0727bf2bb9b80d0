// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/descriptor_waker_posix.h"

#include <errno.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace weft::internal {

namespace {

// Async-signal-safe.
void Print(const char* text) {
  static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

}  // namespace

DescriptorWaker::~DescriptorWaker() {
  if (signalled_fd() >= 0) ::close(signalled_fd());
}

void DescriptorWaker::Wake() noexcept {
  const int saved_errno = errno;  // A signal handler must not change it.
  wakes_.fetch_add(1, std::memory_order_release);
  int fd = kUnopened;
  if (!fd_.compare_exchange_strong(fd, kWokenUnopened, std::memory_order_acq_rel) && fd >= 0) {
    SignalOrDie(fd);
  }
  errno = saved_errno;
}

int DescriptorWaker::Adopt(int fd) {
  if (fd_.exchange(fd, std::memory_order_acq_rel) == kWokenUnopened) SignalOrDie(fd);
  return fd;
}

void DescriptorWaker::SignalOrDie(int fd) {
  if (Signal(fd)) return;
  Print("weft: cannot signal the ");
  Print(channel_);
  Print(
      " that wakes the event loop; was its descriptor closed, or does a sandbox forbid it? "
      "The loop could never be woken again.\n");
  std::abort();
}

}  // namespace weft::internal
