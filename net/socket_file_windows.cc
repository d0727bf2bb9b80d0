// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// There are no Unix sockets here (net/unix_socket_windows.cc), and so no files of theirs.

#include "weft/net/socket_file.h"

namespace weft::internal {

FileIdentity IdentifySocketFile(const std::string&) { return FileIdentity(); }

void RemoveSocketFile(const std::string&) {}

void RemoveSocketFile(const std::string&, const FileIdentity&) {}

}  // namespace weft::internal
