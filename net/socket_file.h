// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_FILE_H_
#define WEFT_NET_SOCKET_FILE_H_

#include <cstdint>
#include <string>

namespace weft::internal {

// The file that a Unix socket leaves behind in the file system: bind() makes it,
// and nobody removes it.

// Which file it is, whatever its name; all zero: none.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t number = 0;

  friend bool operator==(const FileIdentity& a, const FileIdentity& b) {
    return a.device == b.device && a.number == b.number;
  }
};

// That of the socket at `path`; none if that is something else, or nothing.
FileIdentity IdentifySocketFile(const std::string& path);

// Removes the socket at `path`; whatever else is there stays.
void RemoveSocketFile(const std::string& path);

// The same, but only if it is still that one.
void RemoveSocketFile(const std::string& path, const FileIdentity& identity);

}  // namespace weft::internal

#endif  // WEFT_NET_SOCKET_FILE_H_
