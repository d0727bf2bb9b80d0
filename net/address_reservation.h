// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_ADDRESS_RESERVATION_H_
#define WEFT_NET_ADDRESS_RESERVATION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/net/resolver.h"
#include "weft/net/server.h"
#include "weft/net/socket.h"

namespace weft {

// AddressReservation
//
// Addresses that several servers are going to share, one on each loop of a LoopGroup:
// bound, so that a port that was picked stays theirs, and not listened at. The kernel
// spreads connections over those who listen. What ReserveAddresses() returns:
//
//   absl::StatusOr<AddressReservation> reserved = co_await ReserveAddresses(host, 0);
//   if (!reserved.ok()) co_return reserved.status();
//   group.RunOnEach([&](int) -> Coro<> {
//     ServerOptions options;
//     options.reuse_port = true;
//     auto server = co_await StartServer(Handle, reserved->addresses(), options);
//     ...
//
// It is held until they have all started, and may be held for longer: then the port is
// kept while one of them starts again.
//
// The kernel chooses by the client's address and port, so it spreads evenly only if
// there are many, and it does not know who is busy. When one of several servers is
// closed, connections that wait to be accepted by it are reset (Linux: unless
// net.ipv4.tcp_migrate_req is set); close them all at a time.
//
// Threads: belongs to the loop's thread; addresses() may be read by others.
// Python: none; start_server(reuse_port=True) and a port that is known.
class AddressReservation {
 public:
  // With the real ports.
  const Addresses& addresses() const { return addresses_; }

  // -- For weft's own parts.
  AddressReservation(std::vector<Socket> sockets, Addresses addresses)
      : sockets_(std::move(sockets)), addresses_(std::move(addresses)) {}

 private:
  std::vector<Socket> sockets_;
  Addresses addresses_;
};

// Reserves all addresses of `host`, as StartServer() would listen at them. Of the
// options it uses those that say where and how to bind. Without `reuse_port` nobody else
// may be listening there; with it, they may if they share the port as well, and so
// connections are shared with another process.
//
// Errors: as StartServer(). UNIMPLEMENTED on a system that cannot share a port: serve
// with one loop there.
Coro<absl::StatusOr<AddressReservation>> ReserveAddresses(std::string host, uint16_t port,
                                                          ServerOptions options = ServerOptions());

}  // namespace weft

#endif  // WEFT_NET_ADDRESS_RESERVATION_H_
