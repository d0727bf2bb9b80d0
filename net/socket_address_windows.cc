// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/headers_windows.h"
#include "weft/net/native_address.h"
#include "weft/net/socket_address.h"

namespace weft {
namespace {

struct System {
  using Any = sockaddr;
  using In = sockaddr_in;
  using In6 = sockaddr_in6;
  // An address of a Unix socket, as <afunix.h> has it. It can be written and read here,
  // though no socket opens with it: net/unix_socket_windows.cc.
  struct Un {
    USHORT sun_family;
    char sun_path[108];
  };

  static constexpr int kInet = AF_INET;
  static constexpr int kInet6 = AF_INET6;
  static constexpr int kUnix = AF_UNIX;
  static uint16_t Swap(uint16_t number) { return htons(number); }
};

}  // namespace

SocketAddress SocketAddress::FromNative(const SockAddr& native) {
  return internal::NativeAddress<System>::From(native);
}

SockAddr SocketAddress::ToNative() const { return internal::NativeAddress<System>::To(*this); }

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

size_t LongestUnixPath() { return NativeAddress<System>::kLongestUnixPath; }

}  // namespace internal
}  // namespace weft
