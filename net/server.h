// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SERVER_H_
#define WEFT_NET_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/closure.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/net/connection.h"
#include "weft/net/resolver.h"
#include "weft/net/server_state.h"
#include "weft/net/socket.h"
#include "weft/net/socket_address.h"
#include "weft/net/socket_options.h"
#include "weft/net/tls_provider.h"

namespace weft {

struct ServerOptions {
  ServerOptions() {}

  // Only addresses of this family; kNone: of any.
  SocketAddress::Family family = SocketAddress::Family::kNone;

  int backlog = 100;          // How many may wait to be accepted.
  bool reuse_address = true;  // SO_REUSEADDR: a port is free right after its server.
  bool reuse_port = false;    // SO_REUSEPORT: several servers share a port.
  bool start_serving = true;  // Else Server::StartServing() does.

  // For what is accepted.
  bool no_delay = true;                 // TCP_NODELAY.
  std::optional<KeepAlive> keep_alive;  // SO_KEEPALIVE; none: off.

  // While there are so many connections, nobody is accepted. Of a server that listens at
  // several addresses each may have one by then that the kernel has accepted: it waits,
  // and is served when there is room.
  size_t max_connections = std::numeric_limits<size_t>::max();

  size_t limit = kDefaultStreamLimit;  // Of the readers.
  Resolver* resolver = nullptr;        // Null: the system's.

  // A server's TlsContext (tls_context.h), for connections by TLS; it has to live until
  // the server is started. The handler is called when the handshake is done.
  const TlsProvider* tls = nullptr;
  absl::Duration tls_handshake_timeout = kDefaultTlsHandshakeTimeout;
  absl::Duration tls_shutdown_timeout = kDefaultTlsShutdownTimeout;
  // Told of each handshake that fails, with a message that names the peer. If there is
  // none, nobody is: on a port that is open to all, half of them do.
  std::function<void(const absl::Status& error)> on_handshake_error;
};

// Server
//
// Listens, and runs a handler for every client, each in a task of its own. What
// StartServer() returns. (A handler that is no coroutine but a function which returns one
// is called when the client is accepted, after its handshake if there is TLS, and what it
// returns is run in the task.)
//
//   Coro<void> Echo(StreamReader reader, StreamWriter writer) { ... }
//
//   absl::StatusOr<Server> server = co_await StartServer(Echo, "127.0.0.1", 0);
//   if (!server.ok()) co_return server.status();
//   std::cout << "listening on " << server->addresses().front() << "\n";
//   co_await server->ServeForever();
//
// The connection is closed when its handler drops the writer, at the latest when
// it is over. What a handler throws is reported to the loop's exception handler,
// and its connection closed; that it was cancelled is no news. A KeyboardInterrupt ends
// the run besides.
//
// Closing, which the destructor does, ends listening. Connections that have been
// accepted go on, and so does the handler's closure, which is kept until the last
// has ended.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.Server.
class Server {
 public:
  Server(Server&&) noexcept = default;
  Server& operator=(Server&& other) noexcept {
    if (this != &other) {
      Close();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Server() { Close(); }

  // Where it listens, with the real ports; empty once it is closed.
  std::vector<SocketAddress> addresses() const;
  // The port of the first; 0 if there is none.
  uint16_t port() const;

  bool IsServing() const { return state_ && state_->is_serving(); }
  size_t connection_count() const { return state_->connection_count(); }

  // Begins to accept, if `start_serving` was false. Does nothing if it does.
  // Errors: the kernel's. RuntimeError "server is closed".
  absl::Status StartServing() { return state_->StartServing(); }

  // Serves until it is cancelled, or closed by another task; either way it throws
  // CancelledError, when the server is closed and all connections are.
  // Errors: RuntimeError if it is closed, or another task does the same.
  Coro<void> ServeForever() { return internal::ServeForever(state_); }

  // Listens no more: who connects is refused. Does nothing the second time.
  void Close() {
    if (state_) state_->Close();
  }

  // Closes the connections that there are, when what was written has been sent.
  void CloseClients() { state_->CloseClients(); }
  // Closes them now.
  void AbortClients() { state_->AbortClients(); }

  // Cancels the handlers that there are, and says how many. Their connections are
  // closed when they have cleaned up.
  size_t CancelClients() { return state_->CancelHandlers(); }

  // Awaitable of void: until the server is closed and the last connection is.
  internal::WaitServerClosedAwaiter WaitClosed() {
    return internal::WaitServerClosedAwaiter(state_);
  }

  // Awaitable of void: the same, and the last handler is over.
  Coro<void> WaitDone() { return internal::WaitServerDone(state_); }

  // -- For weft's own parts.
  explicit Server(internal::IntrusivePtr<internal::ServerState> state) : state_(std::move(state)) {}

 private:
  internal::IntrusivePtr<internal::ServerState> state_;
};

namespace internal {

// Where a server of these hosts is to listen, each address once.
Coro<absl::StatusOr<Addresses>> ResolveListening(std::vector<std::string> hosts, uint16_t port,
                                                 ServerOptions options);
// Sockets that are bound to all of them that this system has; one port for those with
// port 0. Errors: ValueError if there are none.
absl::StatusOr<std::vector<Socket>> BindListening(const Addresses& addresses,
                                                  const ServerOptions& options);

Coro<absl::StatusOr<Server>> StartTcpServer(ConnectionHandler handler,
                                            std::vector<std::string> hosts, uint16_t port,
                                            ServerOptions options);
Coro<absl::StatusOr<Server>> StartServerAt(ConnectionHandler handler, Addresses addresses,
                                           ServerOptions options);
Coro<absl::StatusOr<Server>> StartServerOn(ConnectionHandler handler, Socket listener,
                                           ServerOptions options);
Coro<absl::StatusOr<Server>> StartServerAtPath(ConnectionHandler handler, std::string path,
                                               ServerOptions options);

// Keeps what may be handed to a function that returns something to await.
template <class F>
ConnectionHandler KeepHandler(F&& handler) {
  WEFT_CHECK_CLOSURE(F);
  ClosureType<F> kept = KeepClosure(std::forward<F>(handler));
  if constexpr (std::is_assignable_v<ClosureType<F>&, std::nullptr_t>) {
    if (kept == nullptr) throw ValueError("handler: a callable was expected, got an empty one");
  }
  return ConnectionHandler(std::move(kept));
}

}  // namespace internal

// Starts a TCP server at all addresses of `host`: `handler(StreamReader,
// StreamWriter)`, which returns a Coro<void>, is called for every connection. An
// empty host stands for all interfaces, by IPv4 and IPv6. Port 0 picks one that is
// free, the same for all addresses.
//
// The handler is copied from an lvalue, or moved out of `Take(handler)`.
//
// Errors: the kernel's, with the address ("bind to 127.0.0.1:80: Address already in
// use [EADDRINUSE]"); what the resolver says. ValueError if `options.limit` is 0, for TLS
// options that do not fit, or for a handler that is an empty std::function or the like.
// Python: asyncio.start_server().
template <class F>
Coro<absl::StatusOr<Server>> StartServer(F&& handler, std::string host, uint16_t port,
                                         ServerOptions options = ServerOptions()) {
  return internal::StartTcpServer(internal::KeepHandler(std::forward<F>(handler)),
                                  std::vector<std::string>(1, std::move(host)), port,
                                  std::move(options));
}

// The same at all addresses of several hosts.
template <class F>
Coro<absl::StatusOr<Server>> StartServer(F&& handler, std::vector<std::string> hosts, uint16_t port,
                                         ServerOptions options = ServerOptions()) {
  return internal::StartTcpServer(internal::KeepHandler(std::forward<F>(handler)), std::move(hosts),
                                  port, std::move(options));
}

// The same at addresses that are known; all of them, or it fails. ValueError if there
// are none.
template <class F>
Coro<absl::StatusOr<Server>> StartServer(F&& handler, Addresses addresses,
                                         ServerOptions options = ServerOptions()) {
  return internal::StartServerAt(internal::KeepHandler(std::forward<F>(handler)),
                                 std::move(addresses), std::move(options));
}

// The same with a socket that is bound already, and may listen already.
template <class F>
Coro<absl::StatusOr<Server>> StartServer(F&& handler, Socket listener,
                                         ServerOptions options = ServerOptions()) {
  return internal::StartServerOn(internal::KeepHandler(std::forward<F>(handler)),
                                 std::move(listener), std::move(options));
}

// Starts a server at a Unix socket. A socket that an earlier server has left at
// `path` is replaced, anything else is not; the file goes when the server is closed,
// unless another has taken its place. A path that begins with a NUL is an abstract
// name.
// Python: asyncio.start_unix_server().
template <class F>
Coro<absl::StatusOr<Server>> StartUnixServer(F&& handler, std::string path,
                                             ServerOptions options = ServerOptions()) {
  return internal::StartServerAtPath(internal::KeepHandler(std::forward<F>(handler)),
                                     std::move(path), std::move(options));
}

}  // namespace weft

#endif  // WEFT_NET_SERVER_H_
