// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// By pidfd_open(2). A signal goes to the pidfd and not to the number, so that it finds
// nobody else even if somebody in this program waits for all children.

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"
#include "weft/process/exit_descriptor_posix.h"

namespace weft::internal {

namespace {

constexpr idtype_t kByPidfd = static_cast<idtype_t>(3);  // P_PIDFD, Linux 5.4.

}  // namespace

absl::Status ProbeExitDescriptor() {
  static const int error = [] {
    const int self = OpenExitDescriptor(::getpid());
    if (self < 0) return self == -EMFILE || self == -ENFILE ? 0 : -self;
    ::close(self);
    return 0;
  }();
  if (error == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("processes need pidfd_open(2) of Linux 5.4, which answers ", ErrnoName(error)));
}

int OpenExitDescriptor(pid_t pid) {
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return pidfd < 0 ? -errno : pidfd;
}

int SendToChild(int descriptor, pid_t, int signal) {
  return ::syscall(SYS_pidfd_send_signal, descriptor, signal, nullptr, 0) == 0 ? 0 : -errno;
}

std::optional<int> ReapChild(int descriptor, pid_t) {
  siginfo_t info = {};
  if (::waitid(kByPidfd, static_cast<id_t>(descriptor), &info, WEXITED | WNOHANG) != 0) {
    return std::nullopt;
  }
  return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

}  // namespace weft::internal
