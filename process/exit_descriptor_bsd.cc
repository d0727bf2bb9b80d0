// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A kqueue with one filter, that of the end of the child. Nobody takes the event out, so
// the kqueue, which is a descriptor as others are, stays readable.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/event.h>
#include <sys/wait.h>
#include <unistd.h>

#include "weft/process/exit_descriptor_posix.h"

namespace weft::internal {

namespace {

// 0 or a negated errno.
int Change(int fd, struct kevent change) {
  while (::kevent(fd, &change, 1, nullptr, 0, nullptr) < 0) {
    if (errno != EINTR) return -errno;
  }
  return 0;
}

int WatchExit(int fd, pid_t pid) {
  struct kevent change;
  EV_SET(&change, static_cast<uintptr_t>(pid), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  const int result = Change(fd, change);
  if (result != -ESRCH) return result;
  // It has ended already: macOS has no filter for a zombie.
  EV_SET(&change, 0, EVFILT_USER, EV_ADD, 0, 0, nullptr);
  if (const int error = Change(fd, change)) return error;
  EV_SET(&change, 0, EVFILT_USER, 0, NOTE_TRIGGER, 0, nullptr);
  return Change(fd, change);
}

}  // namespace

absl::Status ProbeExitDescriptor() { return absl::OkStatus(); }

int OpenExitDescriptor(pid_t pid) {
  const int fd = ::kqueue();
  if (fd < 0) return -errno;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (const int error = WatchExit(fd, pid)) {
    ::close(fd);
    return error;
  }
  return fd;
}

int SendToChild(int, pid_t pid, int signal) { return ::kill(pid, signal) == 0 ? 0 : -errno; }

std::optional<int> ReapChild(int, pid_t pid) {
  // Not WNOHANG: macOS reports the end a moment before there is a status to take.
  int status;
  pid_t reaped;
  do {
    reaped = ::waitpid(pid, &status, 0);
  } while (reaped < 0 && errno == EINTR);
  if (reaped != pid) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace weft::internal
