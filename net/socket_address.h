// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_ADDRESS_H_
#define WEFT_NET_SOCKET_ADDRESS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "weft/poller/sock_addr.h"
#include "weft/poller/socket_api.h"

namespace weft {

namespace internal {
template <class System>
class NativeAddress;
}  // namespace internal

// SocketAddress
//
// Where a socket is, or whom it talks to: an IPv4 or IPv6 address with a port, a
// path of a Unix socket, or an abstract name. A value; it looks nothing up.
//
//   kIpv4   127.0.0.1:80
//   kIpv6   [::1]:80, [fe80::1%2]:80
//   kUnix   unix:/run/x.sock, unix:@abstract; "unix:" for a socket without a
//           name, as the client's end usually is
//
//   absl::StatusOr<SocketAddress> address = SocketAddress::Parse("[::1]:80");
//
// What ToString() prints, Parse() reads back, but for the address that is none
// and the socket without a name.
//
// Threads: a value, as safe as an int.
// Python: the address tuples and strings of the socket module.
class SocketAddress {
 public:
  enum class Family : uint8_t { kNone, kIpv4, kIpv6, kUnix };

  SocketAddress() = default;  // None.

  // Errors: INVALID_ARGUMENT, which names the text.
  static absl::StatusOr<SocketAddress> Parse(std::string_view text);

  // A numeric host, without brackets, as "127.0.0.1", "::1" or "fe80::1%eth0".
  // Errors: INVALID_ARGUMENT if it is no such thing, as every name.
  static absl::StatusOr<SocketAddress> FromHost(std::string_view host, uint16_t port);

  // A Unix socket in the file system; a path that begins with a NUL is an abstract
  // name.
  // Errors: INVALID_ARGUMENT "AF_UNIX path too long", and if it is empty or has a
  // NUL inside.
  static absl::StatusOr<SocketAddress> FromUnixPath(std::string_view path);

  // An abstract name (Linux), without its leading NUL.
  // Errors: INVALID_ARGUMENT "AF_UNIX path too long", and if it is nothing but NULs, which
  // cannot be told from no name.
  static absl::StatusOr<SocketAddress> FromAbstractName(std::string_view name);

  static SocketAddress Ipv4(std::array<uint8_t, 4> address, uint16_t port);
  static SocketAddress Ipv6(std::array<uint8_t, 16> address, uint16_t port, uint32_t scope_id = 0);
  static SocketAddress Ipv4Loopback(uint16_t port) { return Ipv4({127, 0, 0, 1}, port); }
  static SocketAddress Ipv4Any(uint16_t port) { return Ipv4({0, 0, 0, 0}, port); }
  static SocketAddress Ipv6Loopback(uint16_t port);
  static SocketAddress Ipv6Any(uint16_t port) { return Ipv6({}, port); }

  // From and to what the kernel takes. What is no address of these families
  // becomes none, and none becomes one of length 0.
  static SocketAddress FromNative(const SockAddr& native);
  SockAddr ToNative() const;

  Family family() const { return family_; }
  bool is_none() const { return family_ == Family::kNone; }
  bool is_ip() const { return family_ == Family::kIpv4 || family_ == Family::kIpv6; }
  bool is_unix() const { return family_ == Family::kUnix; }
  bool is_abstract() const { return is_unix() && !path().empty() && path()[0] == '\0'; }

  // 127.0.0.0/8, ::1, and every Unix socket.
  bool is_loopback() const;
  // 0.0.0.0 or ::, which stand for all interfaces.
  bool is_any() const;

  // The address in numbers, "127.0.0.1" or "fe80::1%2"; empty unless is_ip().
  std::string host() const;
  uint16_t port() const { return port_; }
  void set_port(uint16_t port) { port_ = port; }
  // Of a link-local IPv6 address: the number of the interface. Else 0.
  uint32_t scope_id() const { return scope_id_; }
  // The path, or a NUL and the abstract name; empty unless is_unix().
  const std::string& path() const;

  // What to give Socket::Open(). REQUIRES: !is_none().
  SocketDomain domain() const;

  std::string ToString() const;

  friend bool operator==(const SocketAddress& a, const SocketAddress& b) {
    return a.family_ == b.family_ && a.port_ == b.port_ && a.scope_id_ == b.scope_id_ &&
           a.bytes_ == b.bytes_ && a.path() == b.path();
  }
  template <class H>
  friend H AbslHashValue(H state, const SocketAddress& a) {
    return H::combine(std::move(state), a.family_, a.port_, a.scope_id_, a.bytes_, a.path());
  }
  friend std::ostream& operator<<(std::ostream& out, const SocketAddress& address) {
    return out << address.ToString();
  }

 private:
  template <class System>
  friend class internal::NativeAddress;

  void set_path(std::string path) {
    path_ = path.empty() ? nullptr : std::make_shared<const std::string>(std::move(path));
  }

  Family family_ = Family::kNone;
  uint16_t port_ = 0;
  uint32_t scope_id_ = 0;
  std::array<uint8_t, 16> bytes_{};  // IPv4: the first four.
  // Null: empty. Not in here: most addresses have none, and there is one in each connection.
  std::shared_ptr<const std::string> path_;
};

namespace internal {

// The part that is the operating system's.

// Reads "127.0.0.1" or "::1"; false if it is neither.
bool ParseIpv4(const std::string& text, uint8_t bytes[4]);
bool ParseIpv6(const std::string& text, uint8_t bytes[16]);
std::string PrintIpv6(const uint8_t bytes[16]);
// The number of a network interface; 0 if there is none of that name.
uint32_t InterfaceNumber(const std::string& name);
// The longest path of a Unix socket, without its NUL, and the longest abstract
// name.
size_t LongestUnixPath();

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_SOCKET_ADDRESS_H_
