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

// What is asked for in one call: its length has 32 bits.
constexpr size_t kAtMost = size_t{1} << 30;

constexpr int kOwnerMayWrite = 0200;

HANDLE Native(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

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
// offset moves the position, so that is put back, under `mutex` unless that is null.
class Place {
 public:
  Place(NativeHandle handle, int64_t offset, absl::Mutex* mutex)
      : lock_(mutex), handle_(Native(handle)), is_at_offset_(offset >= 0) {
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
  const absl::MutexLockMaybe lock_;
  const HANDLE handle_;
  const bool is_at_offset_;
  LARGE_INTEGER position_ = {};
  OVERLAPPED where_ = {};
};

// Of a handle that was not opened for this. (Access to a file is denied when it is opened.)
int64_t Refused(DWORD error) {
  return error == ERROR_ACCESS_DENIED ? -EBADF : -ErrnoOfWin32(error);
}

}  // namespace

absl::StatusOr<NativeHandle> OpenFile::OpenNative(const std::string& path, FileMode mode,
                                                  int permissions) {
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
  return reinterpret_cast<NativeHandle>(handle);
}

int64_t OpenFile::ReadSome(int64_t offset, char* data, size_t size) const {
  const bool is_regular = IsRegular();
  if (offset >= 0 && !is_regular && handle_ != kInvalidHandle) return -ESPIPE;
  DWORD got = 0;
  Place place(handle_, offset, is_regular ? &position_mutex_ : nullptr);
  const DWORD portion = static_cast<DWORD>(std::min(size, kAtMost));
  if (::ReadFile(Native(handle_), data, portion, &got, place.overlapped())) return got;
  const DWORD error = ::GetLastError();
  // The last writer of a pipe has gone.
  if (error == ERROR_HANDLE_EOF || error == ERROR_BROKEN_PIPE) return 0;
  return Refused(error);
}

int64_t OpenFile::WriteSome(int64_t offset, const char* data, size_t size) const {
  const bool is_regular = IsRegular();
  if (offset >= 0 && !is_regular && handle_ != kInvalidHandle) return -ESPIPE;
  DWORD written = 0;
  Place place(handle_, offset, is_regular ? &position_mutex_ : nullptr);
  const DWORD portion = static_cast<DWORD>(std::min(size, kAtMost));
  if (::WriteFile(Native(handle_), data, portion, &written, place.overlapped())) return written;
  return Refused(::GetLastError());
}

int64_t OpenFile::SyncNative() const {
  return ::FlushFileBuffers(Native(handle_)) ? 0 : LastError();
}

int64_t OpenFile::NativeSize() const {
  LARGE_INTEGER size;
  return ::GetFileSizeEx(Native(handle_), &size) ? size.QuadPart : LastError();
}

bool OpenFile::IsRegular() const { return ::GetFileType(Native(handle_)) == FILE_TYPE_DISK; }

int64_t OpenFile::CloseNative(NativeHandle handle) {
  return ::CloseHandle(Native(handle)) ? 0 : LastError();
}

// Windows does not say, and reads on the thread of whoever asks.
bool OpenFile::IsCached(int64_t, size_t) const { return true; }
void OpenFile::Prefetch(int64_t, size_t) const {}

}  // namespace weft::internal
