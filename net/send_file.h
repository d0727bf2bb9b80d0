// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SEND_FILE_H_
#define WEFT_NET_SEND_FILE_H_

#include <cstdint>
#include <limits>

#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/net/connection.h"
#include "weft/net/file.h"
#include "weft/net/socket.h"

namespace weft {

struct SendFileOptions {
  SendFileOptions() {}

  int64_t offset = 0;                                   // From where on.
  int64_t count = std::numeric_limits<int64_t>::max();  // How much at most.

  // Where the kernel cannot send this file by itself, read it and write it. Else
  // that is UNIMPLEMENTED.
  bool fallback = true;
};

// Sends a file, or a part of it, behind all that was written before, and returns how
// many bytes: fewer than asked for at the end of the file. Nothing else may be written
// until it is over.
//
//   absl::StatusOr<int64_t> sent = co_await SendFile(writer, *file);
//
// The kernel copies it by itself where it can (sendfile(2), from a regular file). What
// is not in the page cache is read by a thread before, so the loop does not wait for
// the disk. Else, and from a pipe or a terminal, a thread reads portions, which are
// written. The file's position does not matter and stays, but for what has none, such
// as a pipe: that is read from where it is, and an offset is refused (ESPIPE).
//
// Errors: what reading or sending says; then a part has been sent. ValueError if the
// offset or the count is negative, or the count is 0.
// Python: loop.sendfile(), loop.sock_sendfile().
Coro<absl::StatusOr<int64_t>> SendFile(StreamWriter& writer, const File& file,
                                       SendFileOptions options = SendFileOptions());
Coro<absl::StatusOr<int64_t>> SendFile(Socket& socket, const File& file,
                                       SendFileOptions options = SendFileOptions());

}  // namespace weft

#endif  // WEFT_NET_SEND_FILE_H_
