// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "weft/net/test_net.h"

namespace weft {

int CountDescriptors() {
  DIR* directory = ::opendir("/dev/fd");
  int count = -3;  // ".", "..", and the one that reads.
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

bool IsInherited(NativeHandle handle) {
  return (::fcntl(static_cast<int>(handle), F_GETFD) & FD_CLOEXEC) == 0;
}

bool HasUnixSockets() { return true; }

bool CanSharePorts() { return true; }

bool HasMulticast() { return true; }

bool KeepsResets() { return true; }
bool TellsEndsFromResets() { return true; }

bool TellsOfUnreachablePorts() { return true; }

ShortDirectory::ShortDirectory() : path_("/tmp/weft.XXXXXX") {
  EXPECT_NE(::mkdtemp(path_.data()), nullptr);
}

ShortDirectory::~ShortDirectory() {
  EXPECT_EQ(::rmdir(path_.c_str()), 0) << path_ << " is not empty";
}

}  // namespace weft
