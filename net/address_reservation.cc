// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/address_reservation.h"

#include "absl/status/status.h"

namespace weft {
Coro<absl::StatusOr<AddressReservation>> ReserveAddresses(std::string host, uint16_t port,
                                                          ServerOptions options) {
  absl::StatusOr<Addresses> resolved = co_await internal::ResolveListening(
      std::vector<std::string>(1, std::move(host)), port, options);
  if (!resolved.ok()) co_return resolved.status();
  absl::StatusOr<std::vector<Socket>> sockets = internal::BindListening(*resolved, options);
  if (!sockets.ok()) co_return sockets.status();
  Addresses addresses;
  for (Socket& socket : *sockets) {
    // After bind(2): had it been set before, a stranger who shares the port would not
    // have been noticed. Who binds now compares with what is set now.
    absl::Status shared = internal::SharePort(socket);
    if (!shared.ok()) co_return shared;
    absl::StatusOr<SocketAddress> address = socket.LocalAddress();
    if (!address.ok()) co_return address.status();
    addresses.push_back(*std::move(address));
  }
  co_return AddressReservation(*std::move(sockets), std::move(addresses));
}

}  // namespace weft
