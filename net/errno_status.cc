// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/errno_status.h"

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

struct Name {
  int error;
  std::string_view name;
};

// Those that system calls on sockets, pipes and files are known to return. What
// is not in the list is printed as a number.
constexpr Name kNames[] = {
    {E2BIG, "E2BIG"},
    {EACCES, "EACCES"},
    {EADDRINUSE, "EADDRINUSE"},
    {EADDRNOTAVAIL, "EADDRNOTAVAIL"},
    {EAFNOSUPPORT, "EAFNOSUPPORT"},
    {EAGAIN, "EAGAIN"},
    {EALREADY, "EALREADY"},
    {EBADF, "EBADF"},
    {EBADMSG, "EBADMSG"},
    {EBUSY, "EBUSY"},
    {ECHILD, "ECHILD"},
    {ECANCELED, "ECANCELED"},
    {ECONNABORTED, "ECONNABORTED"},
    {ECONNREFUSED, "ECONNREFUSED"},
    {ECONNRESET, "ECONNRESET"},
    {EDESTADDRREQ, "EDESTADDRREQ"},
    {EEXIST, "EEXIST"},
    {EFAULT, "EFAULT"},
    {EFBIG, "EFBIG"},
    {EHOSTUNREACH, "EHOSTUNREACH"},
    {EILSEQ, "EILSEQ"},
    {EINPROGRESS, "EINPROGRESS"},
    {EINTR, "EINTR"},
    {EINVAL, "EINVAL"},
    {EIO, "EIO"},
    {EISCONN, "EISCONN"},
    {EISDIR, "EISDIR"},
    {ELOOP, "ELOOP"},
    {EMFILE, "EMFILE"},
    {EMSGSIZE, "EMSGSIZE"},
    {ENAMETOOLONG, "ENAMETOOLONG"},
    {ENETDOWN, "ENETDOWN"},
    {ENETRESET, "ENETRESET"},
    {ENETUNREACH, "ENETUNREACH"},
    {ENFILE, "ENFILE"},
    {ENOBUFS, "ENOBUFS"},
    {ENODEV, "ENODEV"},
    {ENOENT, "ENOENT"},
    {ENOEXEC, "ENOEXEC"},
    {ENOMEM, "ENOMEM"},
    {ENOPROTOOPT, "ENOPROTOOPT"},
    {ENOSPC, "ENOSPC"},
    {ENOSYS, "ENOSYS"},
    {ENOTCONN, "ENOTCONN"},
    {ENOTDIR, "ENOTDIR"},
    {ENOTSOCK, "ENOTSOCK"},
    {ENXIO, "ENXIO"},
    {EOPNOTSUPP, "EOPNOTSUPP"},
    {EPERM, "EPERM"},
    {EPIPE, "EPIPE"},
    {EPROTO, "EPROTO"},
    {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
    {EPROTOTYPE, "EPROTOTYPE"},
    {EROFS, "EROFS"},
    {ESPIPE, "ESPIPE"},
    {ESRCH, "ESRCH"},
    {ETIMEDOUT, "ETIMEDOUT"},
    {ETXTBSY, "ETXTBSY"},
    {EXDEV, "EXDEV"},
};

}  // namespace

absl::Status ErrnoStatus(int64_t result, std::string_view tried) {
  const int error = static_cast<int>(-result);
  const absl::Status status = internal::NamelessErrnoStatus(error, tried);
  std::string_view name = ErrnoName(error);
  if (name.empty())
    return absl::Status(status.code(), absl::StrCat(status.message(), " [", error, "]"));
  return absl::Status(status.code(), absl::StrCat(status.message(), " [", name, "]"));
}

int ErrnoOf(const absl::Status& status) {
  std::string_view text = status.message();
  if (!absl::ConsumeSuffix(&text, "]")) return 0;
  const size_t begin = text.rfind('[');
  if (begin == std::string_view::npos) return 0;
  text.remove_prefix(begin + 1);
  for (const Name& known : kNames) {
    if (known.name == text) return known.error;
  }
  return 0;
}

std::string_view ErrnoName(int error) {
  for (const Name& known : kNames) {
    if (known.error == error) return known.name;
  }
  return std::string_view();
}

}  // namespace weft
