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

// How much is read at a time if it is not known how much there is.
constexpr size_t kPortion = size_t{64} * 1024;

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

OpenFile::~OpenFile() {
  if (handle_ != kInvalidHandle) ::close(Fd(handle_));
}

absl::Status OpenFile::Error(int error, const char* what) const {
  if (!name_.empty()) return ErrnoStatus(-error, absl::StrCat(what, " ", name_));
  return ErrnoStatus(-error, absl::StrCat(what, " descriptor ", handle_));
}

absl::StatusOr<std::shared_ptr<OpenFile>> OpenFile::Open(const std::string& path, FileMode mode,
                                                         int permissions) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("open a file: its path has a NUL inside");
  }
  const int flags = FlagsOf(mode) | O_CLOEXEC;
  const int fd = internal::AboveStandardStreams(static_cast<int>(
      Call([&] { return ::open(path.c_str(), flags, static_cast<mode_t>(permissions)); })));
  if (fd < 0) return ErrnoStatus(fd, absl::StrCat("open ", path));
  return std::make_shared<OpenFile>(static_cast<NativeHandle>(fd), path);
}

absl::StatusOr<std::string> OpenFile::Read(int64_t offset, size_t count) const {
  std::string text;
  // What there is, if that is known, and room to see that there is no more.
  struct stat status = {};
  size_t expected = kPortion;
  if (::fstat(Fd(handle_), &status) == 0 && S_ISREG(status.st_mode)) {
    const int64_t rest = status.st_size - std::max<int64_t>(offset, 0);
    expected = rest > 0 ? static_cast<size_t>(rest) + 1 : 1;
  }
  const bool takes_what_comes = count != File::kAll && offset < 0 && !S_ISREG(status.st_mode);
  while (text.size() < count) {
    const size_t before = text.size();
    const size_t portion = std::min(std::max(expected, size_t{1}), count - before);
    text.resize(before + portion);
    const ssize_t got = Call([&] {
      return offset < 0 ? ::read(Fd(handle_), &text[before], portion)
                        : ::pread(Fd(handle_), &text[before], portion,
                                  offset + static_cast<int64_t>(before));
    });
    if (got < 0) return Error(errno, "read");
    text.resize(before + static_cast<size_t>(got));
    if (got == 0 || takes_what_comes) break;
    expected = std::max(expected - std::min(expected, static_cast<size_t>(got)), kPortion);
  }
  return text;
}

absl::Status OpenFile::Write(int64_t offset, const std::string& data) const {
  size_t written = 0;
  while (written < data.size()) {
    const char* from = data.data() + written;
    const size_t rest = data.size() - written;
    SigpipeBlock block(Fd(handle_));  // It may be a pipe.
    const ssize_t count = Call([&] {
      return offset < 0 ? ::write(Fd(handle_), from, rest)
                        : ::pwrite(Fd(handle_), from, rest, offset + static_cast<int64_t>(written));
    });
    if (count < 0) {
      if (errno == EPIPE) block.TakeRaised();
      return Error(errno, absl::StrCat("write (", written, " of ", data.size(), " bytes)").c_str());
    }
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::Sync() const {
  if (Call([&] { return ::fsync(Fd(handle_)); }) == 0) return absl::OkStatus();
  return Error(errno, "sync");
}

absl::StatusOr<int64_t> OpenFile::Size() const {
  struct stat status;
  if (::fstat(Fd(handle_), &status) == 0) return status.st_size;
  return Error(errno, "get the size of");
}

absl::Status OpenFile::Close() {
  if (handle_ == kInvalidHandle) return absl::OkStatus();
  const int fd = Fd(std::exchange(handle_, kInvalidHandle));
  // Not again after EINTR: the number is free by then (close(2)).
  if (::close(fd) == 0 || errno == EINTR) return absl::OkStatus();
  return Error(errno, "close");
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
