// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Whether a pipe can be waited for is decided when it is opened: a completion port takes
// only what was opened for overlapped I/O, and Windows opens nothing a second time.
// CreatePipe() opens none so, and neither are a console or what a shell has
// connected a program with. So a pipe of ours is a named one with a name that nobody else has,
// and what cannot be waited for says UNIMPLEMENTED.

#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/headers_windows.h"
#include "weft/net/pipe.h"
#include "weft/net/utf16_windows.h"
#include "weft/poller/errno_windows.h"
#include "weft/poller/socket_api.h"

namespace weft {
namespace internal {
namespace {

constexpr DWORD kBufferSize = 64 * 1024;

HANDLE Native(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

// 0 to 2 are no handles, but how POSIX calls the standard streams.
HANDLE Resolve(NativeHandle descriptor) {
  switch (descriptor) {
    case 0:
      return ::GetStdHandle(STD_INPUT_HANDLE);
    case 1:
      return ::GetStdHandle(STD_OUTPUT_HANDLE);
    case 2:
      return ::GetStdHandle(STD_ERROR_HANDLE);
    default:
      return Native(descriptor);
  }
}

bool IsSocket(HANDLE handle) {
  int type = 0;
  size_t size = sizeof(type);
  return SystemSocketApi()->GetRawOption(reinterpret_cast<NativeHandle>(handle), SOL_SOCKET,
                                         SO_TYPE, &type, &size) >= 0;
}

// Whether it was opened without FILE_FLAG_OVERLAPPED, as far as the system says.
bool IsSynchronous(HANDLE handle) {
  constexpr auto kFileModeInformation = static_cast<FILE_INFORMATION_CLASS>(16);
  constexpr ULONG kSynchronous = 0x10 | 0x20;  // FILE_SYNCHRONOUS_IO_ALERT and _NONALERT.
  IO_STATUS_BLOCK status = {};
  ULONG mode = 0;
  return ::NtQueryInformationFile(handle, &status, &mode, sizeof(mode), kFileModeInformation) >=
             0 &&
         (mode & kSynchronous) != 0;
}

// Whether it may be read, or written. Yes if the system does not say.
bool MayAccess(HANDLE handle, bool to_read) {
  PUBLIC_OBJECT_BASIC_INFORMATION information = {};
  if (::NtQueryObject(handle, ObjectBasicInformation, &information, sizeof(information), nullptr) <
      0) {
    return true;
  }
  return (information.GrantedAccess & (to_read ? FILE_READ_DATA : FILE_WRITE_DATA)) != 0;
}

// A name that is nobody else's.
std::wstring NextName() {
  static std::atomic<uint64_t> next{0};
  LARGE_INTEGER now;
  ::QueryPerformanceCounter(&now);
  std::string name = absl::StrCat("\\\\.\\pipe\\weft-", ::GetCurrentProcessId(), "-",
                                  next.fetch_add(1, std::memory_order_relaxed), "-", now.QuadPart);
  return std::wstring(name.begin(), name.end());
}

}  // namespace

absl::StatusOr<PipeEnd> PreparePipeEnd(NativeHandle descriptor, bool to_read,
                                       const PipeOptions& options) {
  if (descriptor < 0) throw ValueError(absl::StrCat("descriptor: ", descriptor, " is negative"));
  PipeEnd end;
  end.one_way.is_reader = to_read;
  end.one_way.name = options.name.empty() ? absl::StrCat("pipe ", descriptor) : options.name;
  const std::string tried = absl::StrCat("open ", end.one_way.name);

  const HANDLE handle = Resolve(descriptor);
  DWORD flags;
  if (handle == nullptr || handle == INVALID_HANDLE_VALUE ||
      !::GetHandleInformation(handle, &flags)) {
    return ErrnoStatus(-EBADF, tried);
  }
  end.one_way.is_socket = IsSocket(handle);
  if (!end.one_way.is_socket) {
    if (!MayAccess(handle, to_read)) return ErrnoStatus(-EBADF, tried);
    if (IsSynchronous(handle)) {
      return absl::UnimplementedError(absl::StrCat(
          tried,
          ": it was not opened for overlapped I/O, and then Windows cannot wait for it "
          "without a thread; a File can"));
    }
  }
  end.handle = reinterpret_cast<NativeHandle>(handle);
  if (!options.borrow) return end;

  HANDLE own;
  const HANDLE self = ::GetCurrentProcess();
  if (!::DuplicateHandle(self, handle, self, &own, 0, /*bInheritHandle=*/FALSE,
                         DUPLICATE_SAME_ACCESS)) {
    return ErrnoStatus(LastError(), tried);
  }
  end.handle = reinterpret_cast<NativeHandle>(own);
  return end;
}

absl::StatusOr<RawPipe> OpenRawPipe(LentEnd lent) {
  const auto is_lent = [lent](LentEnd end) { return lent == end || lent == LentEnd::kBoth; };
  const std::wstring name = NextName();
  // The first of its name: one that somebody else has made is not taken for ours.
  const DWORD read_flags = PIPE_ACCESS_INBOUND | FILE_FLAG_FIRST_PIPE_INSTANCE |
                           (is_lent(LentEnd::kReader) ? 0 : FILE_FLAG_OVERLAPPED);
  const HANDLE read_end = ::CreateNamedPipeW(
      name.c_str(), read_flags,
      PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
      /*nMaxInstances=*/1, kBufferSize, kBufferSize, 0, nullptr);
  if (read_end == INVALID_HANDLE_VALUE) return ErrnoStatus(LastError(), "pipe");
  const HANDLE write_end =
      ::CreateFileW(name.c_str(), GENERIC_WRITE, 0, nullptr, OPEN_EXISTING,
                    is_lent(LentEnd::kWriter) ? 0 : FILE_FLAG_OVERLAPPED, nullptr);
  if (write_end == INVALID_HANDLE_VALUE) {
    const int64_t error = LastError();
    ::CloseHandle(read_end);
    return ErrnoStatus(error, "pipe");
  }
  RawPipe pipe;
  pipe.read_end = reinterpret_cast<NativeHandle>(read_end);
  pipe.write_end = reinterpret_cast<NativeHandle>(write_end);
  return pipe;
}

void CloseRaw(NativeHandle handle) { ::CloseHandle(Native(handle)); }

absl::StatusOr<NativeHandle> OpenNamedPipe(const std::string& path, bool to_read, bool) {
  if (path.find('\0') != std::string::npos) throw ValueError("path: embedded null byte");
  absl::StatusOr<std::wstring> wide = ToUtf16(path, "open");
  if (!wide.ok()) return wide.status();
  const HANDLE handle = ::CreateFileW(wide->c_str(), to_read ? GENERIC_READ : GENERIC_WRITE, 0,
                                      nullptr, OPEN_EXISTING, FILE_FLAG_OVERLAPPED, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return ErrnoStatus(LastError(), absl::StrCat("open ", path));
  if (::GetFileType(handle) == FILE_TYPE_PIPE) return reinterpret_cast<NativeHandle>(handle);
  ::CloseHandle(handle);
  return absl::FailedPreconditionError(absl::StrCat("open ", path, ": not a named pipe"));
}

}  // namespace internal

absl::Status MakeNamedPipe(const std::string& path, int) {
  if (path.find('\0') != std::string::npos) throw ValueError("path: embedded null byte");
  return absl::UnimplementedError(absl::StrCat("make named pipe ", path,
                                               ": on Windows a named pipe is no file that stays, "
                                               "but goes with the server that has it open"));
}

}  // namespace weft
