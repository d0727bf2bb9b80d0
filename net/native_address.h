// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_NATIVE_ADDRESS_H_
#define WEFT_NET_NATIVE_ADDRESS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "weft/net/socket_address.h"
#include "weft/poller/sock_addr.h"

namespace weft::internal {

// SocketAddress from and to what the kernel takes, the same on each system. `System` has its
// names: the structures Any, In, In6 and Un (sockaddr, sockaddr_in ...), whose members have
// POSIX's names; the numbers kInet, kInet6 and kUnix; and Swap(), between the machine's order
// of bytes and the network's.
template <class System>
class NativeAddress {
 public:
  static SocketAddress From(const SockAddr& native) {
    using Any = typename System::Any;
    if (native.length < offsetof(Any, sa_data)) return SocketAddress();
    switch (Load<Any>(native).sa_family) {
      case System::kInet: {
        const auto in = Load<typename System::In>(native);
        std::array<uint8_t, 4> bytes;
        std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
        return SocketAddress::Ipv4(bytes, System::Swap(in.sin_port));
      }
      case System::kInet6: {
        const auto in = Load<typename System::In6>(native);
        std::array<uint8_t, 16> bytes;
        std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
        return SocketAddress::Ipv6(bytes, System::Swap(in.sin6_port),
                                   static_cast<uint32_t>(in.sin6_scope_id));
      }
      case System::kUnix:
        return FromUnix(native);
      default:
        return SocketAddress();
    }
  }

  static SockAddr To(const SocketAddress& address) {
    SockAddr result;
    switch (address.family()) {
      case SocketAddress::Family::kNone:
        break;
      case SocketAddress::Family::kIpv4: {
        typename System::In in = {};
        in.sin_family = System::kInet;
        in.sin_port = System::Swap(address.port_);
        std::memcpy(&in.sin_addr, address.bytes_.data(), sizeof(in.sin_addr));
        Store(in, &result);
        break;
      }
      case SocketAddress::Family::kIpv6: {
        typename System::In6 in = {};
        in.sin6_family = System::kInet6;
        in.sin6_port = System::Swap(address.port_);
        in.sin6_scope_id = address.scope_id_;
        std::memcpy(&in.sin6_addr, address.bytes_.data(), sizeof(in.sin6_addr));
        Store(in, &result);
        break;
      }
      case SocketAddress::Family::kUnix: {
        const std::string& path = address.path();
        Un un = {};
        un.sun_family = System::kUnix;
        // It fits: the path was checked when this address was made.
        std::memcpy(un.sun_path, path.data(), path.size());
        const bool has_nul = !path.empty() && !address.is_abstract();
        Store(un, &result, kPathOffset + path.size() + (has_nul ? 1 : 0));
        break;
      }
    }
    return result;
  }

  static constexpr size_t kLongestUnixPath = sizeof(System::Un::sun_path) - 1;

 private:
  using Un = typename System::Un;

  static constexpr size_t kPathOffset = offsetof(Un, sun_path);

  static SocketAddress FromUnix(const SockAddr& native) {
    SocketAddress address;
    address.family_ = SocketAddress::Family::kUnix;
    if (native.length <= kPathOffset) return address;
    const auto* path = reinterpret_cast<const char*>(native.bytes) + kPathOffset;
    size_t length = native.length - kPathOffset;
    // A path may or may not be followed by a NUL (unix(7)); an abstract name is what the
    // length says.
    if (path[0] != '\0') length = strnlen(path, length);
    // Some systems give an unnamed socket a name of NULs.
    const std::string_view name(path, length);
    if (length > 1 && name.find_first_not_of('\0') == std::string_view::npos) return address;
    address.set_path(std::string(name));
    return address;
  }

  template <class Native>
  static void Store(const Native& native, SockAddr* out, size_t length = sizeof(Native)) {
    static_assert(sizeof(Native) <= SockAddr::kCapacity);
    std::memcpy(out->bytes, &native, sizeof(native));
    out->length = static_cast<uint32_t>(length);
  }

  template <class Native>
  static Native Load(const SockAddr& from) {
    Native native = {};
    std::memcpy(&native, from.bytes, std::min<size_t>(sizeof(native), from.length));
    return native;
  }
};

}  // namespace weft::internal

#endif  // WEFT_NET_NATIVE_ADDRESS_H_
