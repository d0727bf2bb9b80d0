// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"
#include "weft/net/resolver.h"

namespace weft::internal {
namespace {

absl::Status ResolveError(int error, int system_error, const std::string& what) {
  const std::string tried = absl::StrCat("resolve ", what);
  switch (error) {
    case EAI_SYSTEM:
      return ErrnoStatus(-system_error, tried);
    case EAI_MEMORY:
      return ErrnoStatus(-ENOMEM, tried);
    case EAI_AGAIN:
      return absl::UnavailableError(absl::StrCat(tried, ": ", gai_strerror(error), " [EAI_AGAIN]"));
    default:
      return absl::NotFoundError(absl::StrCat(tried, ": ", gai_strerror(error)));
  }
}

int NativeFamily(SocketAddress::Family family) {
  switch (family) {
    case SocketAddress::Family::kIpv4:
      return AF_INET;
    case SocketAddress::Family::kIpv6:
      return AF_INET6;
    default:
      return AF_UNSPEC;
  }
}

}  // namespace

absl::StatusOr<std::vector<SockAddr>> LookUpAddresses(const std::string& host,
                                                      const ResolveOptions& options,
                                                      const std::string& what) {
  addrinfo hints = {};
  hints.ai_family = NativeFamily(options.family);
  hints.ai_socktype = options.type == SocketType::kDatagram ? SOCK_DGRAM : SOCK_STREAM;
  hints.ai_flags = options.passive ? AI_PASSIVE : 0;
  addrinfo* found = nullptr;
  errno = 0;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) return ResolveError(error, errno, what);
  std::vector<SockAddr> addresses;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    SockAddr& address = addresses.emplace_back();
    address.length = std::min<uint32_t>(entry->ai_addrlen, SockAddr::kCapacity);
    std::memcpy(address.bytes, entry->ai_addr, address.length);
  }
  ::freeaddrinfo(found);
  return addresses;
}

absl::StatusOr<NameInfo> LookUpName(const SockAddr& address, const NameOptions& options,
                                    const std::string& what) {
  int flags = 0;
  if (options.numeric_host) flags |= NI_NUMERICHOST;
  if (options.numeric_service) flags |= NI_NUMERICSERV;
  if (options.name_required) flags |= NI_NAMEREQD;
  if (options.type == SocketType::kDatagram) flags |= NI_DGRAM;
  char host[NI_MAXHOST];
  char service[NI_MAXSERV];
  errno = 0;
  const int error = ::getnameinfo(reinterpret_cast<const sockaddr*>(address.bytes), address.length,
                                  host, sizeof(host), service, sizeof(service), flags);
  if (error != 0) return ResolveError(error, errno, what);
  return NameInfo(host, service);
}

int64_t ProcessNumber() { return ::getpid(); }

}  // namespace weft::internal
