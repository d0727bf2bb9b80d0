// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Whether a descriptor blocks is a property of the open file and not of the
// descriptor (fcntl(2)): who makes the standard input non-blocking does so for the
// shell that has lent it too, and for all its other children. So of what is borrowed a
// pipe or a terminal is opened once more by way of /proc/self/fd, which on Linux
// gives an open file of one's own. A socket cannot be opened, and a regular file need
// not be, as it never blocks in that sense and its position is to be shared.

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft {
namespace internal {
namespace {

// Makes it non-blocking, and says how it was; or a negated errno.
int SetNonBlocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return -errno;
  if ((flags & O_NONBLOCK) == 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) return -errno;
  return flags;
}

// As borrowed: a descriptor of our own for the same file, or a negated errno.
int Borrow(int fd, bool to_read, const struct stat& status, OneWay* one_way) {
  const bool can_open = S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode);
  if (can_open) {
    const int flags = (to_read ? O_RDONLY : O_WRONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    const int opened = ::open(absl::StrCat("/proc/self/fd/", fd).c_str(), flags);
    if (opened >= 0) return AboveStandardStreams(opened);
  }
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  if (own < 0) return -errno;
  if (S_ISREG(status.st_mode)) return own;
  const int flags = SetNonBlocking(own);
  if (flags < 0) {
    ::close(own);
    return flags;
  }
  if ((flags & O_NONBLOCK) == 0) {
    one_way->after_closing = [fd, flags] { ::fcntl(fd, F_SETFL, flags); };
  }
  return own;
}

}  // namespace

absl::StatusOr<PipeEnd> PreparePipeEnd(NativeHandle descriptor, bool to_read,
                                       const PipeOptions& options) {
  if (descriptor < 0) throw ValueError(absl::StrCat("descriptor: ", descriptor, " is negative"));
  const int fd = static_cast<int>(descriptor);
  PipeEnd end;
  end.one_way.is_reader = to_read;
  end.one_way.name = options.name.empty() ? absl::StrCat("pipe ", fd) : options.name;
  const auto error = [&end](int result) {
    return ErrnoStatus(result, absl::StrCat("open ", end.one_way.name));
  };

  struct stat status;
  if (::fstat(fd, &status) < 0) return error(-errno);
  end.one_way.is_socket = S_ISSOCK(status.st_mode);
  end.one_way.is_pipe = S_ISFIFO(status.st_mode);
  const int access = ::fcntl(fd, F_GETFL) & O_ACCMODE;
  if (access == (to_read ? O_WRONLY : O_RDONLY)) return error(-EBADF);

  int own = fd;
  if (options.borrow) {
    own = Borrow(fd, to_read, status, &end.one_way);
    if (own < 0) return error(own);
  } else if (const int flags = SetNonBlocking(fd); flags < 0) {
    return error(flags);
  }
  end.handle = own;
  return end;
}

absl::StatusOr<RawPipe> OpenRawPipe(LentEnd) {
  int ends[2];
#ifdef __linux__
  if (::pipe2(ends, O_CLOEXEC) < 0) return ErrnoStatus(-errno, "pipe");
#else
  if (::pipe(ends) < 0) return ErrnoStatus(-errno, "pipe");
  for (int fd : ends) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
  if (const int error = AboveStandardStreams(ends)) return ErrnoStatus(error, "pipe");
  RawPipe pipe;
  pipe.read_end = ends[0];
  pipe.write_end = ends[1];
  return pipe;
}

void CloseRaw(NativeHandle handle) { ::close(static_cast<int>(handle)); }

absl::StatusOr<NativeHandle> OpenNamedPipe(const std::string& path, bool to_read, bool keep_open) {
  if (path.find('\0') != std::string::npos) throw ValueError("path: embedded null byte");
  const auto error = [&path](int result) {
    return ErrnoStatus(result, absl::StrCat("open ", path));
  };
  // Who reads and is a writer himself never sees the last one go.
  const int access = !to_read ? O_WRONLY : keep_open ? O_RDWR : O_RDONLY;
  const int fd =
      AboveStandardStreams(::open(path.c_str(), access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd < 0) return error(fd);
  struct stat status;
  if (::fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) return NativeHandle{fd};
  ::close(fd);
  return absl::FailedPreconditionError(absl::StrCat("open ", path, ": not a named pipe"));
}

}  // namespace internal

absl::Status MakeNamedPipe(const std::string& path, int mode) {
  if (path.find('\0') != std::string::npos) throw ValueError("path: embedded null byte");
  if (::mkfifo(path.c_str(), static_cast<mode_t>(mode)) == 0) return absl::OkStatus();
  return ErrnoStatus(-errno, absl::StrCat("make named pipe ", path));
}

}  // namespace weft
