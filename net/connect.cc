// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/connect.h"

#include <algorithm>
#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/net/happy_eyeballs.h"

namespace weft {
namespace {

// A socket to connect with. What the options ask for and the kernel refuses is no
// error, but for the local address.
absl::StatusOr<Socket> Prepare(const SocketAddress& address, const ConnectOptions& options) {
  absl::StatusOr<Socket> socket = Socket::Open(address.domain());
  if (!socket.ok()) return socket.status();
  if (address.is_ip()) {
    if (options.no_delay) socket->SetOption(socket_option::kNoDelay, true).IgnoreError();
    if (options.keep_alive) socket->SetKeepAlive(*options.keep_alive).IgnoreError();
  }
  if (!options.local_address.is_none()) {
    absl::Status bound = socket->Bind(options.local_address);
    if (!bound.ok()) return bound;
  }
  return socket;
}

Coro<absl::StatusOr<Socket>> ConnectTo(SocketAddress address, const ConnectOptions* options) {
  const SocketAddress& local = options->local_address;
  if (!local.is_none() && local.family() != address.family()) {
    co_return absl::InvalidArgumentError(absl::StrCat("connect to ", address.ToString(),
                                                      ": the local address ", local.ToString(),
                                                      " is of another family"));
  }
  absl::StatusOr<Socket> socket = Prepare(address, *options);
  if (!socket.ok()) co_return socket;
  absl::Status connected = co_await socket->Connect(address);
  if (!connected.ok()) co_return connected;
  co_return socket;
}

std::string Join(const std::vector<absl::Status>& errors) {
  return absl::StrJoin(errors, "; ", [](std::string* out, const absl::Status& error) {
    absl::StrAppend(out, error.message());
  });
}

// What is to be said of several attempts, none of which succeeded.
absl::Status Summarize(absl::StatusCode code, std::vector<absl::Status> errors,
                       const Addresses& addresses, const std::string& what) {
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i].ok()) continue;
    // Its task was cancelled, and not by us.
    errors[i] = absl::CancelledError(
        absl::StrCat("connect to ", addresses[i].ToString(), ": the attempt was cancelled"));
  }
  return absl::Status(code, absl::StrCat("connect to ", what, ": all of ", errors.size(),
                                         " addresses failed: ", Join(errors)));
}

// `errors` becomes why the attempts failed, also if this is cancelled.
Coro<absl::StatusOr<Socket>> ConnectToFirst(Addresses addresses, std::string what,
                                            const ConnectOptions* options,
                                            std::vector<absl::Status>* errors) {
  if (addresses.empty()) co_return absl::NotFoundError(absl::StrCat(what, " has no address"));
  if (addresses.size() == 1) co_return co_await ConnectTo(addresses.front(), options);
  addresses = internal::InterleaveFamilies(std::move(addresses), options->interleave);
  const auto attempt = [&addresses, options](size_t i) { return ConnectTo(addresses[i], options); };
  internal::ConnectAttempt attempts = attempt;
  absl::StatusOr<Socket> socket = co_await internal::RaceToConnect(
      addresses.size(), options->happy_eyeballs_delay, std::move(attempts), errors);
  if (socket.ok()) co_return socket;
  co_return Summarize(socket.status().code(), *errors, addresses, what);
}

StartTlsOptions TlsOptions(std::string host, const ConnectOptions& options) {
  StartTlsOptions tls;
  tls.server_hostname = options.server_hostname.empty() ? std::move(host) : options.server_hostname;
  tls.handshake_timeout = options.tls_handshake_timeout;
  tls.shutdown_timeout = options.tls_shutdown_timeout;
  return tls;
}

// The last step: TLS, if that is asked for.
Coro<absl::StatusOr<Connection>> Secure(Socket socket, std::string host,
                                        const ConnectOptions* options) {
  Connection connection = ToConnection(std::move(socket), options->limit);
  const StartTlsOptions tls = TlsOptions(std::move(host), *options);
  absl::Status secured = co_await connection.writer.StartTls(*options->tls, tls);
  if (!secured.ok()) co_return secured;
  co_return connection;
}

Coro<absl::StatusOr<Connection>> Open(std::string host, uint16_t port,
                                      const ConnectOptions* options,
                                      std::vector<absl::Status>* errors) {
  ResolveOptions resolve;
  resolve.family = options->family;
  absl::StatusOr<Addresses> addresses =
      co_await GetAddrInfo(host, port, resolve, options->resolver);
  if (!addresses.ok()) co_return addresses.status();
  absl::StatusOr<Socket> socket = co_await ConnectToFirst(
      *std::move(addresses), absl::StrCat("\"", host, "\" port ", port), options, errors);
  if (!socket.ok()) co_return socket.status();
  if (options->tls == nullptr) co_return ToConnection(*std::move(socket), options->limit);
  co_return co_await Secure(*std::move(socket), std::move(host), options);
}

Coro<absl::StatusOr<Connection>> OpenAt(SocketAddress address, const ConnectOptions* options) {
  std::string host = address.host();
  absl::StatusOr<Socket> socket = co_await ConnectTo(std::move(address), options);
  if (!socket.ok()) co_return socket.status();
  if (options->tls == nullptr) co_return ToConnection(*std::move(socket), options->limit);
  co_return co_await Secure(*std::move(socket), std::move(host), options);
}

// `open`, for as long as the options allow. `errors`: what has failed by then.
Coro<absl::StatusOr<Connection>> InTime(Coro<absl::StatusOr<Connection>> open,
                                        absl::Duration timeout, std::string what,
                                        const std::vector<absl::Status>* errors) {
  if (timeout == absl::InfiniteDuration()) co_return co_await std::move(open);
  Outcome<absl::StatusOr<Connection>> outcome =
      co_await NoThrow(WithTimeout(timeout, std::move(open)));
  if (!outcome.has_exception() || outcome.cancelled()) co_return std::move(outcome).value();
  try {
    std::rethrow_exception(outcome.exception());
  } catch (const TimeoutError&) {
    std::vector<absl::Status> failed;
    for (const absl::Status& error : *errors) {
      if (!error.ok()) failed.push_back(error);
    }
    co_return absl::DeadlineExceededError(
        absl::StrCat("connect to ", what, ": timed out after ", absl::FormatDuration(timeout),
                     failed.empty() ? "" : "; before that: ", Join(failed)));
  }
}

Coro<absl::StatusOr<Connection>> OpenInTime(std::string host, uint16_t port,
                                            ConnectOptions options) {
  std::vector<absl::Status> errors;
  std::string what = absl::StrCat("\"", host, "\" port ", port);
  Coro<absl::StatusOr<Connection>> open = Open(std::move(host), port, &options, &errors);
  co_return co_await InTime(std::move(open), options.timeout, std::move(what), &errors);
}

Coro<absl::StatusOr<Connection>> OpenAtInTime(SocketAddress address, ConnectOptions options) {
  const std::vector<absl::Status> errors;
  std::string what = address.ToString();
  Coro<absl::StatusOr<Connection>> open = OpenAt(std::move(address), &options);
  co_return co_await InTime(std::move(open), options.timeout, std::move(what), &errors);
}

// `host`: empty if there is none.
void CheckOptions(const ConnectOptions& options, std::string host) {
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  if (options.tls != nullptr) {
    internal::CheckTls(*options.tls, /*is_server=*/false, TlsOptions(std::move(host), options));
  } else if (!options.server_hostname.empty()) {
    throw ValueError("server_hostname is only meaningful with tls");
  }
}

}  // namespace

Coro<absl::StatusOr<Socket>> ConnectSocket(Addresses addresses, std::string what,
                                           ConnectOptions options) {
  std::vector<absl::Status> errors;
  co_return co_await ConnectToFirst(std::move(addresses), std::move(what), &options, &errors);
}

Coro<absl::StatusOr<Connection>> OpenConnection(std::string host, uint16_t port,
                                                ConnectOptions options) {
  CheckOptions(options, host);
  return OpenInTime(std::move(host), port, std::move(options));
}

Coro<absl::StatusOr<Connection>> OpenConnection(SocketAddress address, ConnectOptions options) {
  if (address.is_none()) throw ValueError("address: there is none");
  CheckOptions(options, address.host());
  return OpenAtInTime(std::move(address), std::move(options));
}

Coro<absl::StatusOr<Connection>> OpenUnixConnection(std::string path, ConnectOptions options) {
  absl::StatusOr<SocketAddress> address = SocketAddress::FromUnixPath(path);
  if (!address.ok()) co_return address.status();
  Coro<absl::StatusOr<Connection>> open = OpenConnection(*std::move(address), std::move(options));
  co_return co_await std::move(open);
}

}  // namespace weft
