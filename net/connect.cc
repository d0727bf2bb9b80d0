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

namespace weft {
namespace {

// A socket to connect with. What the options ask for and the kernel refuses is no
// error, but for the local address.
absl::StatusOr<Socket> Prepare(const SocketAddress& address, const ConnectOptions& options) {
  absl::StatusOr<Socket> socket = Socket::Open(address.domain());
  if (!socket.ok()) return socket.status();
  if (address.is_ip()) {
    if (options.no_delay) socket->SetOption(SocketOption::kNoDelay, 1).IgnoreError();
    if (options.keep_alive) socket->SetOption(SocketOption::kKeepAlive, 1).IgnoreError();
  }
  if (!options.local_address.is_none()) {
    absl::Status bound = socket->Bind(options.local_address);
    if (!bound.ok()) return bound;
  }
  return socket;
}

// What is to be said of several attempts, none of which succeeded.
absl::Status Summarize(const std::vector<absl::Status>& errors, const std::string& what) {
  if (errors.size() == 1) return errors.front();
  const std::string all = absl::StrJoin(errors, "; ", [](std::string* out, const auto& error) {
    absl::StrAppend(out, error.message());
  });
  return absl::Status(
      errors.front().code(),
      absl::StrCat("connect to ", what, ": all of ", errors.size(), " addresses failed: ", all));
}

StartTlsOptions TlsOptions(std::string host, const ConnectOptions& options) {
  StartTlsOptions tls;
  tls.server_hostname = options.server_hostname.empty() ? std::move(host) : options.server_hostname;
  tls.handshake_timeout = options.tls_handshake_timeout;
  tls.shutdown_timeout = options.tls_shutdown_timeout;
  return tls;
}

// The last step: TLS, if that is asked for.
Coro<absl::StatusOr<Connection>> Secure(Socket socket, std::string host, ConnectOptions options) {
  Connection connection = ToConnection(std::move(socket), options.limit);
  const StartTlsOptions tls = TlsOptions(std::move(host), options);
  absl::Status secured = co_await connection.writer.StartTls(*options.tls, tls);
  if (!secured.ok()) co_return secured;
  co_return connection;
}

Coro<absl::StatusOr<Connection>> Open(std::string host, uint16_t port, ConnectOptions options) {
  ResolveOptions resolve;
  resolve.family = options.family;
  absl::StatusOr<Addresses> addresses = co_await GetAddrInfo(host, port, resolve, options.resolver);
  if (!addresses.ok()) co_return addresses.status();
  absl::StatusOr<Socket> socket = co_await ConnectSocket(
      *std::move(addresses), absl::StrCat("\"", host, "\" port ", port), options);
  if (!socket.ok()) co_return socket.status();
  if (options.tls == nullptr) co_return ToConnection(*std::move(socket), options.limit);
  co_return co_await Secure(*std::move(socket), std::move(host), options);
}

Coro<absl::StatusOr<Connection>> Open(SocketAddress address, ConnectOptions options) {
  std::string what = address.ToString();
  std::string host = address.host();
  Addresses addresses(1, std::move(address));
  absl::StatusOr<Socket> socket =
      co_await ConnectSocket(std::move(addresses), std::move(what), options);
  if (!socket.ok()) co_return socket.status();
  if (options.tls == nullptr) co_return ToConnection(*std::move(socket), options.limit);
  co_return co_await Secure(*std::move(socket), std::move(host), options);
}

// `open`, for as long as the options allow.
Coro<absl::StatusOr<Connection>> OpenInTime(Coro<absl::StatusOr<Connection>> open, std::string what,
                                            absl::Duration timeout) {
  Outcome<absl::StatusOr<Connection>> outcome =
      co_await NoThrow(WithTimeout(timeout, std::move(open)));
  if (!outcome.has_exception() || outcome.cancelled()) co_return std::move(outcome).value();
  try {
    std::rethrow_exception(outcome.exception());
  } catch (const TimeoutError&) {
    co_return absl::DeadlineExceededError(
        absl::StrCat("connect to ", what, ": timed out after ", absl::FormatDuration(timeout)));
  }
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
  for (const SocketAddress& address : addresses) {
    if (!options.local_address.is_none() && options.local_address.family() != address.family()) {
      errors.push_back(absl::InvalidArgumentError(
          absl::StrCat("connect to ", address.ToString(), ": the local address ",
                       options.local_address.ToString(), " is of another family")));
      continue;
    }
    absl::StatusOr<Socket> socket = Prepare(address, options);
    if (socket.ok()) {
      absl::Status connected = co_await socket->Connect(address);
      if (connected.ok()) co_return socket;
      errors.push_back(std::move(connected));
    } else {
      errors.push_back(socket.status());
    }
  }
  if (errors.empty()) errors.push_back(absl::NotFoundError(absl::StrCat(what, " has no address")));
  co_return Summarize(errors, what);
}

Coro<absl::StatusOr<Connection>> OpenConnection(std::string host, uint16_t port,
                                                ConnectOptions options) {
  CheckOptions(options, host);
  if (options.timeout == absl::InfiniteDuration()) return Open(std::move(host), port, options);
  std::string what = absl::StrCat("\"", host, "\" port ", port);
  return OpenInTime(Open(std::move(host), port, options), std::move(what), options.timeout);
}

Coro<absl::StatusOr<Connection>> OpenConnection(SocketAddress address, ConnectOptions options) {
  if (address.is_none()) throw ValueError("address: there is none");
  CheckOptions(options, address.host());
  if (options.timeout == absl::InfiniteDuration()) return Open(std::move(address), options);
  std::string what = address.ToString();
  return OpenInTime(Open(std::move(address), options), std::move(what), options.timeout);
}

Coro<absl::StatusOr<Connection>> OpenUnixConnection(std::string path, ConnectOptions options) {
  absl::StatusOr<SocketAddress> address = SocketAddress::FromUnixPath(path);
  if (!address.ok()) co_return address.status();
  Coro<absl::StatusOr<Connection>> open = OpenConnection(*std::move(address), std::move(options));
  co_return co_await std::move(open);
}

}  // namespace weft
