// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/eventfd_waker_linux.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

namespace {

// Async-signal-safe, as all that `Wake()` does.
[[noreturn]] void Die() {
  constexpr char kMessage[] =
      "weft: cannot write to the eventfd that wakes the event loop; was its descriptor closed, or "
      "is write(2) forbidden? The loop could never be woken again.\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1));
  std::abort();
}

void Signal(int fd) {
  const uint64_t one = 1;
  while (::write(fd, &one, sizeof(one)) < 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN) Die();
    // The counter is full (eventfd(2)). The poller has been woken by the write
    // that filled it, but maybe it has looked since: only a write is a change.
    uint64_t count;
    static_cast<void>(!::read(fd, &count, sizeof(count)));
  }
}

}  // namespace

EventfdWaker::~EventfdWaker() {
  const int fd = fd_.load(std::memory_order_relaxed);
  if (fd >= 0) ::close(fd);
}

void EventfdWaker::Wake() noexcept {
  const int saved_errno = errno;  // A signal handler must not change it.
  wakes_.fetch_add(1, std::memory_order_release);
  int fd = kUnopened;
  if (!fd_.compare_exchange_strong(fd, kWokenUnopened, std::memory_order_acq_rel) && fd >= 0) {
    Signal(fd);
  }
  errno = saved_errno;
}

int EventfdWaker::Open() {
  const int open = fd_.load(std::memory_order_acquire);
  if (open >= 0) return open;
  const int fd = AboveStandardStreams(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (fd < 0) return fd;
  if (fd_.exchange(fd, std::memory_order_acq_rel) == kWokenUnopened) Signal(fd);
  return fd;
}

}  // namespace weft::internal
