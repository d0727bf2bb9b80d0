// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_CONNECT_H_
#define WEFT_NET_CONNECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/net/connection.h"
#include "weft/net/resolver.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"
#include "weft/net/socket_options.h"
#include "weft/net/tls_provider.h"

namespace weft {

struct ConnectOptions {
  ConnectOptions() {}

  // Only addresses of this family; kNone: of any.
  SocketAddress::Family family = SocketAddress::Family::kNone;

  // To come from there; port 0 for any. Only addresses of its family are tried then.
  SocketAddress local_address;

  // For all of it, the look-up included. When it has passed: DEADLINE_EXCEEDED.
  // (`WithTimeout()` around the call does the same with an exception.)
  absl::Duration timeout = absl::InfiniteDuration();

  // If a host has several addresses: how long one is tried before the next is tried
  // as well. Infinite: until it has failed.
  absl::Duration happy_eyeballs_delay = absl::Milliseconds(250);

  // IPv4 and IPv6 are tried by turns, after so many of the family that the resolver
  // puts first; 0: in the resolver's order.
  int interleave = 1;

  bool no_delay = true;                 // TCP_NODELAY.
  std::optional<KeepAlive> keep_alive;  // SO_KEEPALIVE; none: off.
  size_t limit = kDefaultStreamLimit;   // Of the reader.
  Resolver* resolver = nullptr;         // Null: the system's.

  // A client's TlsContext (tls_context.h), for a connection by TLS; it has to live until
  // the connection is open. See StreamWriter::StartTls().
  const TlsProvider* tls = nullptr;
  // Whose certificate the server has to have. Empty: that of the host, or of the
  // address, that is connected to.
  std::string server_hostname;
  absl::Duration tls_handshake_timeout = kDefaultTlsHandshakeTimeout;
  absl::Duration tls_shutdown_timeout = kDefaultTlsShutdownTimeout;
};

// Connects to a TCP server and gives both halves of the connection.
//
//   absl::StatusOr<Connection> connection = co_await OpenConnection("example.org", 80);
//   if (!connection.ok()) co_return connection.status();
//   connection->writer.Write("...");
//
// A host that is a name is looked up, outside of the loop's thread. If it has several
// addresses they race ("happy eyeballs", RFC 8305): the attempts begin 250 ms apart,
// or as soon as the one before has failed, and the first that succeeds is the
// connection. The others are cancelled, and closed when this returns; so are all if
// it is cancelled.
//
// Errors: the kernel's, with the address; if all of several addresses fail, one
// that tells of each. What the resolver says; with TLS, what StreamWriter::StartTls()
// says. ValueError if `options.limit` is 0, or for TLS options that do not fit.
// Python: asyncio.open_connection().
Coro<absl::StatusOr<Connection>> OpenConnection(std::string host, uint16_t port,
                                                ConnectOptions options = ConnectOptions());

// The same for an address that is known; a Unix socket too. ValueError for a
// default-constructed address.
Coro<absl::StatusOr<Connection>> OpenConnection(SocketAddress address,
                                                ConnectOptions options = ConnectOptions());

// Connects to a Unix socket. A path that begins with a NUL is an abstract name.
// Python: asyncio.open_unix_connection().
Coro<absl::StatusOr<Connection>> OpenUnixConnection(std::string path,
                                                    ConnectOptions options = ConnectOptions());

// What OpenConnection() is made of: a socket that is connected to the first of
// `addresses` that answers. `what` is how the message calls all of them. `timeout`,
// `limit` and `resolver` do not count.
Coro<absl::StatusOr<Socket>> ConnectSocket(Addresses addresses, std::string what,
                                           ConnectOptions options = ConnectOptions());

}  // namespace weft

#endif  // WEFT_NET_CONNECT_H_
