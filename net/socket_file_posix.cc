// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sys/stat.h>
#include <unistd.h>

#include "weft/net/socket_file.h"

namespace weft::internal {

FileIdentity IdentifySocketFile(const std::string& path) {
  FileIdentity identity;
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return identity;
  identity.device = static_cast<uint64_t>(status.st_dev);
  identity.number = static_cast<uint64_t>(status.st_ino);
  return identity;
}

void RemoveSocketFile(const std::string& path) {
  if (!(IdentifySocketFile(path) == FileIdentity())) ::unlink(path.c_str());
}

void RemoveSocketFile(const std::string& path, const FileIdentity& identity) {
  if (identity == FileIdentity()) return;
  if (IdentifySocketFile(path) == identity) ::unlink(path.c_str());
}

}  // namespace weft::internal
