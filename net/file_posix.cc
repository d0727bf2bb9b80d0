// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"
#include "weft/net/file.h"
#include "weft/poller/sigpipe_posix.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {
namespace {

int FlagsOf(FileMode mode) {
  switch (mode) {
    case FileMode::kRead:
      return O_RDONLY;
    case FileMode::kReadWrite:
      return O_RDWR;
    case FileMode::kWrite:
      return O_WRONLY | O_CREAT | O_TRUNC;
    case FileMode::kAppend:
      return O_WRONLY | O_CREAT | O_APPEND;
    case FileMode::kCreate:
      return O_WRONLY | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

int Fd(NativeHandle handle) { return static_cast<int>(handle); }

// Calls `fn` until no signal interrupts it.
template <class Fn>
ssize_t Call(Fn fn) {
  while (true) {
    const ssize_t result = fn();
    if (result >= 0 || errno != EINTR) return result;
  }
}

}  // namespace

absl::StatusOr<NativeHandle> OpenFile::OpenNative(const std::string& path, FileMode mode,
                                                  int permissions) {
  const int flags = FlagsOf(mode) | O_CLOEXEC;
  const int fd = internal::AboveStandardStreams(static_cast<int>(
      Call([&] { return ::open(path.c_str(), flags, static_cast<mode_t>(permissions)); })));
  if (fd < 0) return ErrnoStatus(fd, absl::StrCat("open ", path));
  return fd;
}

int64_t OpenFile::ReadSome(int64_t offset, char* data, size_t size) const {
  const ssize_t got = Call([&] {
    return offset < 0 ? ::read(Fd(handle_), data, size) : ::pread(Fd(handle_), data, size, offset);
  });
  return got < 0 ? -errno : got;
}

int64_t OpenFile::WriteSome(int64_t offset, const char* data, size_t size) const {
  SigpipeBlock block(Fd(handle_));  // It may be a pipe.
  const ssize_t count = Call([&] {
    return offset < 0 ? ::write(Fd(handle_), data, size)
                      : ::pwrite(Fd(handle_), data, size, offset);
  });
  if (count >= 0) return count;
  const int error = errno;
  if (error == EPIPE) block.TakeRaised();
  return -error;
}

int64_t OpenFile::SyncNative() const {
  return Call([&] { return ::fsync(Fd(handle_)); }) < 0 ? -errno : 0;
}

int64_t OpenFile::NativeSize() const {
  struct stat status;
  return ::fstat(Fd(handle_), &status) < 0 ? -errno : status.st_size;
}

bool OpenFile::IsRegular() const {
  struct stat status;
  return ::fstat(Fd(handle_), &status) == 0 && S_ISREG(status.st_mode);
}

// Not again after EINTR: the number is free by then (close(2)).
int64_t OpenFile::CloseNative(NativeHandle handle) {
  return ::close(Fd(handle)) == 0 || errno == EINTR ? 0 : -errno;
}

bool OpenFile::IsCached(int64_t offset, size_t count) const {
#ifdef RWF_NOWAIT
  char byte;
  const iovec piece = {&byte, 1};
  for (const int64_t at : {offset, offset + static_cast<int64_t>(count) - 1}) {
    if (::preadv2(Fd(handle_), &piece, 1, at, RWF_NOWAIT) < 0 && errno == EAGAIN) return false;
  }
#else
  static_cast<void>(offset);
  static_cast<void>(count);
#endif
  return true;
}

void OpenFile::Prefetch(int64_t offset, size_t count) const {
  char scratch[16 * 1024];
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::pread(Fd(handle_), scratch, std::min(sizeof(scratch), count - done),
                                offset + static_cast<int64_t>(done));
    if (got <= 0) return;
    done += static_cast<size_t>(got);
  }
}

}  // namespace weft::internal
