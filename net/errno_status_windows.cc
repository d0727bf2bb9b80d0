// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Windows' C library has numbers for the errors of sockets and no words, and two numbers
// where Linux has two names for one.

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"

namespace weft::internal {
namespace {

struct Text {
  int error;
  std::string_view text;
};

constexpr Text kTexts[] = {
    {EADDRINUSE, "Address already in use"},
    {EADDRNOTAVAIL, "Cannot assign requested address"},
    {EAFNOSUPPORT, "Address family not supported by protocol"},
    {EALREADY, "Operation already in progress"},
    {ECANCELED, "Operation canceled"},
    {ECONNABORTED, "Software caused connection abort"},
    {ECONNREFUSED, "Connection refused"},
    {ECONNRESET, "Connection reset by peer"},
    {EDESTADDRREQ, "Destination address required"},
    {EHOSTUNREACH, "No route to host"},
    {EINPROGRESS, "Operation now in progress"},
    {EISCONN, "Transport endpoint is already connected"},
    {ELOOP, "Too many levels of symbolic links"},
    {EMSGSIZE, "Message too long"},
    {ENETDOWN, "Network is down"},
    {ENETRESET, "Network dropped connection on reset"},
    {ENETUNREACH, "Network is unreachable"},
    {ENOBUFS, "No buffer space available"},
    {ENOPROTOOPT, "Protocol not available"},
    {ENOTCONN, "Transport endpoint is not connected"},
    {ENOTSOCK, "Socket operation on non-socket"},
    {ENOTSUP, "Operation not supported"},
    {EOPNOTSUPP, "Operation not supported"},
    {EPROTO, "Protocol error"},
    {EPROTONOSUPPORT, "Protocol not supported"},
    {EPROTOTYPE, "Protocol wrong type for socket"},
    {ETIMEDOUT, "Connection timed out"},
    {ETXTBSY, "Text file busy"},
    {EWOULDBLOCK, "Resource temporarily unavailable"},
};

absl::StatusCode CodeOf(int error) {
  if (error == EOPNOTSUPP) return absl::ErrnoToStatusCode(ENOTSUP);
  if (error == EWOULDBLOCK) return absl::ErrnoToStatusCode(EAGAIN);
  return absl::ErrnoToStatusCode(error);
}

}  // namespace

absl::Status NamelessErrnoStatus(int error, std::string_view tried) {
  for (const Text& known : kTexts) {
    if (known.error == error) {
      return absl::Status(CodeOf(error), absl::StrCat(tried, ": ", known.text));
    }
  }
  return absl::ErrnoToStatus(error, tried);
}

}  // namespace weft::internal
