// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include <cstring>

#include "weft/process/spawn_actions_posix.h"

namespace weft::internal {

const short kSpawnFlags = 0;
const int kOpenForName = O_PATH;

void FillSignals(sigset_t* signals) {
  // Also those two that glibc has for itself: it would have the child ignore them, and
  // sigfillset() leaves them out.
  std::memset(signals, 0xff, sizeof(*signals));
}

int AddKeep(posix_spawn_file_actions_t* actions, int fd) {
  // To itself, this only makes it inherited.
  return ::posix_spawn_file_actions_adddup2(actions, fd, fd);
}

int AddCloseOthers(posix_spawn_file_actions_t* actions, const std::vector<int>& kept) {
  int next = 3;
  for (const int fd : kept) {
    // Another thread may open one of these now, so all are closed and not only those
    // that are open. Closing one that is not is no error.
    for (; next < fd; ++next) {
      if (const int error = ::posix_spawn_file_actions_addclose(actions, next)) return error;
    }
    next = fd + 1;
  }
  return ::posix_spawn_file_actions_addclosefrom_np(actions, next);
}

}  // namespace weft::internal
