// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"
#include "weft/net/headers_windows.h"
#include "weft/net/resolver.h"
#include "weft/net/utf16_windows.h"

namespace weft::internal {
namespace {

// The words are glibc's: Windows' own are in the language of the machine.
absl::Status ResolveError(int error, const std::string& what) {
  const std::string tried = absl::StrCat("resolve ", what);
  switch (error) {
    case EAI_MEMORY:
      return ErrnoStatus(-ENOMEM, tried);
    case EAI_AGAIN:
      return absl::UnavailableError(
          absl::StrCat(tried, ": Temporary failure in name resolution [EAI_AGAIN]"));
    case EAI_NONAME:
      return absl::NotFoundError(absl::StrCat(tried, ": Name or service not known"));
    case WSANO_DATA:
      return absl::NotFoundError(absl::StrCat(tried, ": No address associated with hostname"));
    default:
      return absl::NotFoundError(absl::StrCat(tried, ": Windows' error ", error));
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
  SystemSocketApi();  // Starts Winsock.
  std::vector<SockAddr> addresses;
  absl::StatusOr<std::wstring> wide = ToUtf16(host, "resolve");
  if (!wide.ok()) return addresses;  // Nobody has such a name.
  ADDRINFOW hints = {};
  hints.ai_family = NativeFamily(options.family);
  hints.ai_socktype = options.type == SocketType::kDatagram ? SOCK_DGRAM : SOCK_STREAM;
  hints.ai_flags = options.passive ? AI_PASSIVE : 0;
  ADDRINFOW* found = nullptr;
  const int error = ::GetAddrInfoW(wide->c_str(), nullptr, &hints, &found);
  if (error != 0) return ResolveError(error, what);
  for (const ADDRINFOW* entry = found; entry != nullptr; entry = entry->ai_next) {
    SockAddr& address = addresses.emplace_back();
    address.length =
        std::min<uint32_t>(static_cast<uint32_t>(entry->ai_addrlen), SockAddr::kCapacity);
    std::memcpy(address.bytes, entry->ai_addr, address.length);
  }
  ::FreeAddrInfoW(found);
  return addresses;
}

absl::StatusOr<NameInfo> LookUpName(const SockAddr& address, const NameOptions& options,
                                    const std::string& what) {
  SystemSocketApi();  // Starts Winsock.
  int flags = 0;
  if (options.numeric_host) flags |= NI_NUMERICHOST;
  if (options.numeric_service) flags |= NI_NUMERICSERV;
  if (options.name_required) flags |= NI_NAMEREQD;
  if (options.type == SocketType::kDatagram) flags |= NI_DGRAM;
  wchar_t host[NI_MAXHOST];
  wchar_t service[NI_MAXSERV];
  const int error = ::GetNameInfoW(reinterpret_cast<const sockaddr*>(address.bytes),
                                   static_cast<socklen_t>(address.length), host, NI_MAXHOST,
                                   service, NI_MAXSERV, flags);
  if (error != 0) return ResolveError(error, what);
  return NameInfo(FromUtf16(host), FromUtf16(service));
}

int64_t ProcessNumber() { return static_cast<int64_t>(::GetCurrentProcessId()); }

}  // namespace weft::internal
