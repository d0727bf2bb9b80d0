// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/pipe_waker_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

namespace {

// Async-signal-safe, as all that `Wake()` does.
[[noreturn]] void Die() {
  constexpr char kMessage[] =
      "weft: cannot write to the pipe that wakes the event loop; was its descriptor closed, or is "
      "write(2) forbidden? The loop could never be woken again.\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1));
  std::abort();
}

void Signal(int fd) {
  const char byte = 0;
  while (::write(fd, &byte, 1) < 0) {
    if (errno == EAGAIN) return;  // It is full, so it is readable.
    if (errno != EINTR) Die();
  }
}

}  // namespace

PipeWaker::~PipeWaker() {
  const int fd = write_fd_.load(std::memory_order_relaxed);
  if (fd < 0) return;
  ::close(fd);
  ::close(read_fd_);
}

void PipeWaker::Wake() noexcept {
  const int saved_errno = errno;  // A signal handler must not change it.
  wakes_.fetch_add(1, std::memory_order_release);
  int fd = kUnopened;
  if (!write_fd_.compare_exchange_strong(fd, kWokenUnopened, std::memory_order_acq_rel) &&
      fd >= 0) {
    Signal(fd);
  }
  errno = saved_errno;
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
  if (write_fd_.exchange(fds[1], std::memory_order_acq_rel) == kWokenUnopened) Signal(fds[1]);
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
  wakes_.load(std::memory_order_acquire);
}

}  // namespace weft::internal
