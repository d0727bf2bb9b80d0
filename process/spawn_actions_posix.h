// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_SPAWN_ACTIONS_POSIX_H_
#define WEFT_PROCESS_SPAWN_ACTIONS_POSIX_H_

#include <signal.h>
#include <spawn.h>

#include <vector>

namespace weft::internal {

// What each system has its own way for when posix_spawn(3) starts a child. Those that give
// an int give 0 or an errno, as posix_spawn(3) itself.

// Flags of posix_spawnattr_setflags() that go with the actions below.
extern const short kSpawnFlags;

// A flag of open(2) for who only wants to name a directory, or a descriptor.
extern const int kOpenForName;

// All signals that there are.
void FillSignals(sigset_t* signals);

// Leaves `fd` open in the child, close-on-exec or not.
int AddKeep(posix_spawn_file_actions_t* actions, int fd);

// Closes all from 3 on but for `kept`, which is sorted.
int AddCloseOthers(posix_spawn_file_actions_t* actions, const std::vector<int>& kept);

}  // namespace weft::internal

#endif  // WEFT_PROCESS_SPAWN_ACTIONS_POSIX_H_
