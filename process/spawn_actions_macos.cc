// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>

#include "weft/process/spawn_actions_posix.h"

namespace weft::internal {

// The child has no descriptor but those that an action names.
const short kSpawnFlags = POSIX_SPAWN_CLOEXEC_DEFAULT;
const int kOpenForName = O_RDONLY;

void FillSignals(sigset_t* signals) { sigfillset(signals); }

int AddKeep(posix_spawn_file_actions_t* actions, int fd) {
  return ::posix_spawn_file_actions_addinherit_np(actions, fd);
}

int AddCloseOthers(posix_spawn_file_actions_t*, const std::vector<int>&) { return 0; }

}  // namespace weft::internal
