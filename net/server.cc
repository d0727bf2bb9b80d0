// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/server.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/socket_file.h"

namespace weft {

std::vector<SocketAddress> Server::addresses() const {
  std::vector<SocketAddress> addresses;
  if (state_->is_closed()) return addresses;
  for (const auto& listener : state_->listeners()) addresses.push_back(listener->address());
  return addresses;
}

uint16_t Server::port() const {
  if (state_->is_closed() || state_->listeners().empty()) return 0;
  return state_->listeners().front()->address().port();
}

namespace internal {
namespace {

// How often another free port is tried, if the first address's is taken elsewhere.
constexpr int kPortAttempts = 16;

StartTlsOptions TlsOptions(const ServerOptions& options) {
  StartTlsOptions tls;
  tls.handshake_timeout = options.tls_handshake_timeout;
  tls.shutdown_timeout = options.tls_shutdown_timeout;
  return tls;
}

IntrusivePtr<ServerState> MakeState(ConnectionHandler handler, const ServerOptions& options) {
  ServerState::Settings settings = {};
  settings.backlog = options.backlog;
  settings.limit = options.limit;
  settings.max_connections = options.max_connections;
  if (options.tls != nullptr) {
    settings.tls = std::make_unique<ServerTls>();
    settings.tls->factory = options.tls->factory();
    settings.tls->options = TlsOptions(options);
    settings.tls->on_error = options.on_handshake_error;
  }
  return IntrusivePtr<ServerState>(
      new ServerState(GetRunningLoop(), std::move(handler), std::move(settings)));
}

absl::StatusOr<Socket> OpenBound(const SocketAddress& address, const ServerOptions& options) {
  absl::StatusOr<Socket> socket = Socket::Open(address.domain());
  if (!socket.ok()) return socket.status();
  if (address.is_ip()) {
    if (options.reuse_address) {
      absl::Status set = socket->SetOption(SocketOption::kReuseAddr, 1);
      if (!set.ok()) return set;
    }
    // What is accepted inherits it.
    if (options.no_delay) socket->SetOption(socket_option::kNoDelay, true).IgnoreError();
    if (options.keep_alive) socket->SetKeepAlive(*options.keep_alive).IgnoreError();
  }
  if (options.reuse_port) {
    absl::Status shared = internal::SharePort(*socket);
    if (!shared.ok()) return shared;
  }
  if (address.family() == SocketAddress::Family::kIpv6) {
    // Else it would take the port for IPv4 as well.
    absl::Status set = socket->SetOption(SocketOption::kV6Only, 1);
    if (!set.ok()) return set;
  }
  absl::Status bound = socket->Bind(address);
  if (!bound.ok()) return bound;
  return socket;
}

// Not an error, if another address of the same host works.
bool IsFamilyMissing(const absl::Status& status) {
  const int error = ErrnoOf(status);
  return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

// Binds to all of `addresses` that this system has; one port for those with port 0.
absl::Status BindAll(const Addresses& addresses, const ServerOptions& options,
                     std::vector<Socket>* sockets) {
  uint16_t picked = 0;
  absl::Status missing;
  for (SocketAddress address : addresses) {
    if (address.is_ip() && address.port() == 0) address.set_port(picked);
    absl::StatusOr<Socket> socket = OpenBound(address, options);
    if (!socket.ok()) {
      if (!IsFamilyMissing(socket.status())) return socket.status();
      missing = socket.status();
      continue;
    }
    if (picked == 0) {
      absl::StatusOr<SocketAddress> local = socket->LocalAddress();
      if (local.ok()) picked = local->port();
    }
    sockets->push_back(*std::move(socket));
  }
  return sockets->empty() ? missing : absl::OkStatus();
}

absl::StatusOr<Server> Serve(IntrusivePtr<ServerState> state, std::vector<Socket> sockets,
                             bool start_serving) {
  for (Socket& socket : sockets) {
    absl::StatusOr<SocketAddress> address = socket.LocalAddress();
    if (!address.ok()) return address.status();
    state->AddListener(std::move(socket), *std::move(address));
  }
  Server server(state);  // Closes what is open if this fails.
  if (start_serving) {
    absl::Status started = state->StartServing();
    if (!started.ok()) return started;
  }
  return server;
}

void CheckOptions(const ServerOptions& options) {
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  if (options.tls != nullptr) CheckTls(*options.tls, /*is_server=*/true, TlsOptions(options));
}

}  // namespace

Coro<absl::StatusOr<Addresses>> ResolveListening(std::vector<std::string> hosts, uint16_t port,
                                                 ServerOptions options) {
  ResolveOptions resolve;
  resolve.family = options.family;
  resolve.passive = true;
  Addresses addresses;
  for (std::string& host : hosts) {
    absl::StatusOr<Addresses> found =
        co_await GetAddrInfo(std::move(host), port, resolve, options.resolver);
    if (!found.ok()) co_return found.status();
    for (SocketAddress& address : *found) {
      // Two names of one address are one.
      if (std::find(addresses.begin(), addresses.end(), address) != addresses.end()) continue;
      addresses.push_back(std::move(address));
    }
  }
  co_return addresses;
}

absl::StatusOr<std::vector<Socket>> BindListening(const Addresses& addresses,
                                                  const ServerOptions& options) {
  if (addresses.empty()) throw ValueError("addresses: there is none");
  const bool picks_port = addresses.size() > 1 && std::any_of(addresses.begin(), addresses.end(),
                                                              [](const SocketAddress& a) {
                                                                return a.is_ip() && a.port() == 0;
                                                              });
  std::vector<Socket> sockets;
  absl::Status bound;
  for (int attempt = 0; attempt < kPortAttempts; ++attempt) {
    sockets.clear();
    bound = BindAll(addresses, options, &sockets);
    if (bound.ok() || !picks_port || ErrnoOf(bound) != EADDRINUSE) break;
  }
  if (!bound.ok()) return bound;
  return sockets;
}

Coro<absl::StatusOr<Server>> StartServerAt(ConnectionHandler handler, Addresses addresses,
                                           ServerOptions options) {
  CheckOptions(options);
  absl::StatusOr<std::vector<Socket>> sockets = BindListening(addresses, options);
  if (!sockets.ok()) co_return sockets.status();
  co_return Serve(MakeState(std::move(handler), options), *std::move(sockets),
                  options.start_serving);
}

Coro<absl::StatusOr<Server>> StartTcpServer(ConnectionHandler handler,
                                            std::vector<std::string> hosts, uint16_t port,
                                            ServerOptions options) {
  CheckOptions(options);
  absl::StatusOr<Addresses> addresses = co_await ResolveListening(std::move(hosts), port, options);
  if (!addresses.ok()) co_return addresses.status();
  co_return co_await StartServerAt(std::move(handler), *std::move(addresses), options);
}

Coro<absl::StatusOr<Server>> StartServerOn(ConnectionHandler handler, Socket listener,
                                           ServerOptions options) {
  CheckOptions(options);
  std::vector<Socket> sockets;
  sockets.push_back(std::move(listener));
  co_return Serve(MakeState(std::move(handler), options), std::move(sockets),
                  options.start_serving);
}

Coro<absl::StatusOr<Server>> StartServerAtPath(ConnectionHandler handler, std::string path,
                                               ServerOptions options) {
  CheckOptions(options);
  absl::StatusOr<SocketAddress> address = SocketAddress::FromUnixPath(path);
  if (!address.ok()) co_return address.status();
  if (!address->is_abstract()) RemoveSocketFile(path);
  absl::StatusOr<Socket> socket = OpenBound(*address, options);
  if (!socket.ok()) co_return socket.status();
  IntrusivePtr<ServerState> state = MakeState(std::move(handler), options);
  Listener& listener = state->AddListener(*std::move(socket), *address);
  if (!address->is_abstract()) listener.OwnFile();
  std::vector<Socket> others;
  co_return Serve(std::move(state), std::move(others), options.start_serving);
}

}  // namespace internal
}  // namespace weft
