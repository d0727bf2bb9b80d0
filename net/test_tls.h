// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TEST_TLS_H_
#define WEFT_NET_TEST_TLS_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "weft/core/coro.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_certificates.h"
#include "weft/net/test_net.h"
#include "weft/net/tls_context.h"

namespace weft {

inline constexpr char kTestHost[] = "server.example";

// A test with an authority of its own, whom its clients believe.
class TlsTest : public NetTest {
 protected:
  TlsServerOptions ServerTls(const std::string& name = kTestHost) const {
    return ServerTls(authority_.Issue(name));
  }
  static TlsServerOptions ServerTls(const TestCertificate& certificate) {
    TlsServerOptions options;
    options.certificate_pem = certificate.certificate;
    options.private_key_pem = certificate.key;
    return options;
  }
  TlsClientOptions ClientTls() const {
    TlsClientOptions options;
    options.ca_pem = authority_.certificate();
    return options;
  }
  TlsContext ServerContext() const { return TlsContext::ForServer(ServerTls()).value(); }
  TlsContext ClientContext() const { return TlsContext::ForClient(ClientTls()).value(); }

  const TestAuthority authority_;
};

inline StartTlsOptions For(std::string server_hostname) {
  StartTlsOptions options;
  options.server_hostname = std::move(server_hostname);
  return options;
}

// Both ends of a connection by TLS, and what their handshakes said.
struct TlsEnds {
  Connection client;
  Connection server;
  absl::Status client_status;
  absl::Status server_status;

  bool ok() const { return client_status.ok() && server_status.ok(); }
};

inline Coro<absl::Status> SecureEnd(Connection& connection, const TlsContext& tls,
                                    StartTlsOptions options) {
  absl::Status status = co_await connection.writer.StartTls(tls, options);
  co_return status;
}

// A handshake over `pair`. An end that has failed is closed.
inline Coro<TlsEnds> Shake(std::pair<Socket, Socket> pair, const TlsContext& client,
                           const TlsContext& server, StartTlsOptions options = For(kTestHost)) {
  TlsEnds ends;
  ends.client = ToConnection(std::move(pair.first));
  ends.server = ToConnection(std::move(pair.second));
  StartTlsOptions server_options = options;
  server_options.server_hostname.clear();
  Task<absl::Status> serving =
      CreateTask(SecureEnd(ends.server, server, std::move(server_options)));
  ends.client_status = co_await SecureEnd(ends.client, client, std::move(options));
  if (!ends.client_status.ok()) ends.client.writer.Close();
  ends.server_status = co_await serving;
  if (!ends.server_status.ok()) ends.server.writer.Close();
  co_return ends;
}

inline Coro<TlsEnds> Shake(const TlsContext& client, const TlsContext& server,
                           StartTlsOptions options = For(kTestHost)) {
  std::pair<Socket, Socket> pair = co_await TcpPair();
  // In virtual time nobody waits for an acknowledgement that is delayed.
  pair.first.SetOption(SocketOption::kNoDelay, 1).IgnoreError();
  pair.second.SetOption(SocketOption::kNoDelay, 1).IgnoreError();
  co_return co_await Shake(std::move(pair), client, server, std::move(options));
}

// Says goodbye at both ends.
inline Coro<void> CloseBoth(TlsEnds& ends) {
  ends.client.writer.Close();
  ends.server.writer.Close();
  absl::Status client = co_await ends.client.writer.WaitClosed();
  absl::Status server = co_await ends.server.writer.WaitClosed();
  EXPECT_TRUE(client.ok()) << client;
  EXPECT_TRUE(server.ok()) << server;
}

// Sends `data` from one end, and reads it at the other.
inline Coro<void> Pass(std::string_view data, Connection& from, Connection& to) {
  from.writer.Write(data);
  absl::StatusOr<std::string> got =
      co_await to.reader.ReadExactly(static_cast<int64_t>(data.size()));
  EXPECT_TRUE(got.ok()) << got.status();
  if (got.ok()) {
    EXPECT_EQ(*got, data);
  }
}

}  // namespace weft

#endif  // WEFT_NET_TEST_TLS_H_
