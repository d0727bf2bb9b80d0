// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/kqueue_waker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::internal {

namespace {

// Async-signal-safe, as all that `Wake()` does: kevent(2) is a bare system call.
[[noreturn]] void Die() {
  constexpr char kMessage[] =
      "weft: cannot trigger the event that wakes the event loop; was the descriptor of its kqueue "
      "closed? The loop could never be woken again.\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1));
  std::abort();
}

// 0 or a negated errno.
int Change(int fd, uint16_t flags, uint32_t note) {
  struct kevent change;
  EV_SET(&change, 0, EVFILT_USER, flags, note, 0, nullptr);
  while (::kevent(fd, &change, 1, nullptr, 0, nullptr) < 0) {
    if (errno != EINTR) return -errno;
  }
  return 0;
}

void Trigger(int fd) {
  if (Change(fd, 0, NOTE_TRIGGER) != 0) Die();
}

}  // namespace

KqueueWaker::~KqueueWaker() {
  const int fd = fd_.load(std::memory_order_relaxed);
  if (fd >= 0) ::close(fd);
}

void KqueueWaker::Wake() noexcept {
  const int saved_errno = errno;  // A signal handler must not change it.
  wakes_.fetch_add(1, std::memory_order_release);
  int fd = kUnopened;
  if (!fd_.compare_exchange_strong(fd, kWokenUnopened, std::memory_order_acq_rel) && fd >= 0) {
    Trigger(fd);
  }
  errno = saved_errno;
}

int KqueueWaker::Open() {
  if (const int fd = this->fd(); fd >= 0) return fd;
  const int fd = ::kqueue();
  if (fd < 0) return -errno;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (const int error = Change(fd, EV_ADD | EV_CLEAR, 0)) {
    ::close(fd);
    return error;
  }
  if (fd_.exchange(fd, std::memory_order_acq_rel) == kWokenUnopened) Trigger(fd);
  return fd;
}

}  // namespace weft::internal
