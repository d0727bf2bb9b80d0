// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Files by ReadFile() and WriteFile(), on a thread: a file that is not cached is read
// synchronously by Windows even if it was opened for overlapped I/O.

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"
#include "weft/net/file.h"
#include "weft/net/headers_windows.h"
#include "weft/net/utf16_windows.h"
#include "weft/poller/errno_windows.h"

namespace weft::internal {
namespace {

// How much is read at a time if it is not known how much there is.
constexpr size_t kPortion = size_t{64} * 1024;
// What is asked for in one call: its length has 32 bits.
constexpr size_t kAtMost = size_t{1} << 30;

constexpr int kOwnerMayWrite = 0200;

HANDLE Native(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

bool IsRegular(NativeHandle handle) { return ::GetFileType(Native(handle)) == FILE_TYPE_DISK; }

struct Opening {
  DWORD access;
  DWORD creation;
};

Opening OpeningOf(FileMode mode) {
  switch (mode) {
    case FileMode::kRead:
      return {GENERIC_READ, OPEN_EXISTING};
    case FileMode::kReadWrite:
      return {GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING};
    case FileMode::kWrite:
      return {GENERIC_WRITE, CREATE_ALWAYS};
    case FileMode::kAppend:
      // Who may append and not write appends, wherever the position is.
      return {FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE, OPEN_ALWAYS};
    case FileMode::kCreate:
      return {GENERIC_WRITE, CREATE_NEW};
  }
  return {GENERIC_READ, OPEN_EXISTING};
}

// Where a call reads or writes: at an offset, or, by -1, at the position. A call at an
// offset moves the position, so that is put back.
class Place {
 public:
  Place(NativeHandle handle, int64_t offset) : handle_(Native(handle)), is_at_offset_(offset >= 0) {
    if (!is_at_offset_) return;
    ::SetFilePointerEx(handle_, LARGE_INTEGER{}, &position_, FILE_CURRENT);
    where_.Offset = static_cast<DWORD>(offset);
    where_.OffsetHigh = static_cast<DWORD>(offset >> 32);
  }
  Place(const Place&) = delete;
  ~Place() {
    if (is_at_offset_) ::SetFilePointerEx(handle_, position_, nullptr, FILE_BEGIN);
  }

  OVERLAPPED* overlapped() { return is_at_offset_ ? &where_ : nullptr; }

 private:
  const HANDLE handle_;
  const bool is_at_offset_;
  LARGE_INTEGER position_ = {};
  OVERLAPPED where_ = {};
};

// Of a handle that was not opened for this. (Access to a file is denied when it is opened.)
int64_t Refused(DWORD error) {
  return error == ERROR_ACCESS_DENIED ? -EBADF : -ErrnoOfWin32(error);
}

// How many bytes were read, 0 at the end; or a negated errno.
int64_t ReadOnce(NativeHandle handle, int64_t offset, char* data, size_t size) {
  DWORD got = 0;
  Place place(handle, offset);
  const DWORD portion = static_cast<DWORD>(std::min(size, kAtMost));
  if (::ReadFile(Native(handle), data, portion, &got, place.overlapped())) return got;
  const DWORD error = ::GetLastError();
  // The last writer of a pipe has gone.
  if (error == ERROR_HANDLE_EOF || error == ERROR_BROKEN_PIPE) return 0;
  return Refused(error);
}

int64_t WriteOnce(NativeHandle handle, int64_t offset, const char* data, size_t size) {
  DWORD written = 0;
  Place place(handle, offset);
  const DWORD portion = static_cast<DWORD>(std::min(size, kAtMost));
  if (::WriteFile(Native(handle), data, portion, &written, place.overlapped())) return written;
  return Refused(::GetLastError());
}

}  // namespace

OpenFile::~OpenFile() {
  if (handle_ != kInvalidHandle) ::CloseHandle(Native(handle_));
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
  absl::StatusOr<std::wstring> wide = ToUtf16(path, "open");
  if (!wide.ok()) return wide.status();
  const Opening opening = OpeningOf(mode);
  const DWORD attributes =
      (permissions & kOwnerMayWrite) != 0 ? FILE_ATTRIBUTE_NORMAL : FILE_ATTRIBUTE_READONLY;
  // As on POSIX nobody else is kept from it.
  const HANDLE handle = ::CreateFileW(wide->c_str(), opening.access,
                                      FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                                      nullptr, opening.creation, attributes, nullptr);
  if (handle == INVALID_HANDLE_VALUE) {
    int64_t result = LastError();
    const DWORD found = ::GetFileAttributesW(wide->c_str());
    const bool is_directory =
        found != INVALID_FILE_ATTRIBUTES && (found & FILE_ATTRIBUTE_DIRECTORY) != 0;
    if (result == -EACCES && is_directory) result = -EISDIR;
    return ErrnoStatus(result, absl::StrCat("open ", path));
  }
  return std::make_shared<OpenFile>(reinterpret_cast<NativeHandle>(handle), path);
}

absl::StatusOr<std::string> OpenFile::Read(int64_t offset, size_t count) const {
  std::string text;
  const bool is_regular = IsRegular(handle_);
  if (offset >= 0 && !is_regular && handle_ != kInvalidHandle) return Error(ESPIPE, "read");
  // What there is, if that is known, and room to see that there is no more.
  size_t expected = kPortion;
  LARGE_INTEGER size;
  if (is_regular && ::GetFileSizeEx(Native(handle_), &size)) {
    const int64_t rest = size.QuadPart - std::max<int64_t>(offset, 0);
    expected = rest > 0 ? static_cast<size_t>(rest) + 1 : 1;
  }
  const bool takes_what_comes = count != File::kAll && offset < 0 && !is_regular;
  while (text.size() < count) {
    const size_t before = text.size();
    const size_t portion = std::min(std::max(expected, size_t{1}), count - before);
    text.resize(before + portion);
    int64_t got;
    if (is_regular) {
      absl::MutexLock lock(&position_mutex_);
      got = ReadOnce(handle_, offset < 0 ? -1 : offset + static_cast<int64_t>(before),
                     &text[before], portion);
    } else {
      got = ReadOnce(handle_, -1, &text[before], portion);
    }
    if (got < 0) return Error(static_cast<int>(-got), "read");
    text.resize(before + static_cast<size_t>(got));
    if (got == 0 || takes_what_comes) break;
    expected = std::max(expected - std::min(expected, static_cast<size_t>(got)), kPortion);
  }
  return text;
}

absl::Status OpenFile::Write(int64_t offset, const std::string& data) const {
  const bool is_regular = IsRegular(handle_);
  if (offset >= 0 && !is_regular && handle_ != kInvalidHandle) return Error(ESPIPE, "write");
  size_t written = 0;
  while (written < data.size()) {
    const char* from = data.data() + written;
    const size_t rest = data.size() - written;
    int64_t count;
    if (is_regular) {
      absl::MutexLock lock(&position_mutex_);
      count =
          WriteOnce(handle_, offset < 0 ? -1 : offset + static_cast<int64_t>(written), from, rest);
    } else {
      count = WriteOnce(handle_, -1, from, rest);
    }
    if (count < 0) {
      return Error(static_cast<int>(-count),
                   absl::StrCat("write (", written, " of ", data.size(), " bytes)").c_str());
    }
    written += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status OpenFile::Sync() const {
  if (::FlushFileBuffers(Native(handle_))) return absl::OkStatus();
  return Error(static_cast<int>(-LastError()), "sync");
}

absl::StatusOr<int64_t> OpenFile::Size() const {
  LARGE_INTEGER size;
  if (::GetFileSizeEx(Native(handle_), &size)) return size.QuadPart;
  return Error(static_cast<int>(-LastError()), "get the size of");
}

absl::Status OpenFile::Close() {
  if (handle_ == kInvalidHandle) return absl::OkStatus();
  if (::CloseHandle(Native(std::exchange(handle_, kInvalidHandle)))) return absl::OkStatus();
  return Error(static_cast<int>(-LastError()), "close");
}

// Windows does not say, and reads on the thread of whoever asks.
bool OpenFile::IsCached(int64_t, size_t) const { return true; }
void OpenFile::Prefetch(int64_t, size_t) const {}

}  // namespace weft::internal
