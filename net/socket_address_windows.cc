// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "weft/net/headers_windows.h"
#include "weft/net/socket_address.h"

namespace weft {
namespace {

// An address of a Unix socket, as <afunix.h> has it. It can be written and read here,
// though no socket opens with it: net/unix_socket_windows.cc.
struct UnixNative {
  USHORT family;
  char path[108];
};

constexpr size_t kPathOffset = offsetof(UnixNative, path);

template <class Native>
void Store(const Native& native, SockAddr* out, size_t length = sizeof(Native)) {
  static_assert(sizeof(Native) <= SockAddr::kCapacity);
  std::memcpy(out->bytes, &native, sizeof(native));
  out->length = static_cast<uint32_t>(length);
}

template <class Native>
Native Load(const SockAddr& from) {
  Native native = {};
  std::memcpy(&native, from.bytes, std::min<size_t>(sizeof(native), from.length));
  return native;
}

}  // namespace

SocketAddress SocketAddress::FromNative(const SockAddr& native) {
  if (native.length < offsetof(sockaddr, sa_data)) return SocketAddress();
  switch (Load<sockaddr>(native).sa_family) {
    case AF_INET: {
      const auto in = Load<sockaddr_in>(native);
      std::array<uint8_t, 4> bytes;
      std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
      return Ipv4(bytes, ntohs(in.sin_port));
    }
    case AF_INET6: {
      const auto in = Load<sockaddr_in6>(native);
      std::array<uint8_t, 16> bytes;
      std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
      return Ipv6(bytes, ntohs(in.sin6_port), in.sin6_scope_id);
    }
    case AF_UNIX: {
      SocketAddress address;
      address.family_ = Family::kUnix;
      if (native.length > kPathOffset) {
        const auto* path = reinterpret_cast<const char*>(native.bytes) + kPathOffset;
        size_t length = native.length - kPathOffset;
        // A path may or may not be followed by a NUL (unix(7)); an abstract name
        // is what the length says.
        if (path[0] != '\0') length = strnlen(path, length);
        address.path_.assign(path, length);
        // Some systems give an unnamed socket a name of NULs.
        if (address.path_.find_first_not_of('\0') == std::string::npos && length > 1) {
          address.path_.clear();
        }
      }
      return address;
    }
    default:
      return SocketAddress();
  }
}

SockAddr SocketAddress::ToNative() const {
  SockAddr result;
  switch (family_) {
    case Family::kNone:
      break;
    case Family::kIpv4: {
      sockaddr_in in = {};
      in.sin_family = AF_INET;
      in.sin_port = htons(port_);
      std::memcpy(&in.sin_addr, bytes_.data(), sizeof(in.sin_addr));
      Store(in, &result);
      break;
    }
    case Family::kIpv6: {
      sockaddr_in6 in = {};
      in.sin6_family = AF_INET6;
      in.sin6_port = htons(port_);
      in.sin6_scope_id = scope_id_;
      std::memcpy(&in.sin6_addr, bytes_.data(), sizeof(in.sin6_addr));
      Store(in, &result);
      break;
    }
    case Family::kUnix: {
      UnixNative un = {};
      un.family = AF_UNIX;
      // It fits: the path was checked when this address was made.
      std::memcpy(un.path, path_.data(), path_.size());
      const bool has_nul = !path_.empty() && !is_abstract();
      Store(un, &result, kPathOffset + path_.size() + (has_nul ? 1 : 0));
      break;
    }
  }
  return result;
}

namespace internal {

bool ParseIpv4(const std::string& text, uint8_t bytes[4]) {
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1;
}

bool ParseIpv6(const std::string& text, uint8_t bytes[16]) {
  return ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::string PrintIpv6(const uint8_t bytes[16]) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, bytes, text, sizeof(text));
  return text;
}

uint32_t InterfaceNumber(const std::string& name) { return ::if_nametoindex(name.c_str()); }

size_t LongestUnixPath() { return sizeof(UnixNative::path) - 1; }

}  // namespace internal
}  // namespace weft
