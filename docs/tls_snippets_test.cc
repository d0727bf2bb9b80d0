// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The code of the pages that needs TLS; apart, for machines that have no OpenSSL. See
// snippets_test.cc.

#include <functional>
#include <iostream>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_tls.h"
#include "weft/net/tls_context.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class TlsGuideTest : public TlsTest {};

// [snippet tls-client]
Coro<absl::StatusOr<std::string>> Ask(const TlsContext& tls, std::string host, uint16_t port) {
  ConnectOptions options;
  options.tls = &tls;
  absl::StatusOr<Connection> connection = co_await OpenConnection(host, port, options);
  if (!connection.ok()) co_return connection.status();  // Its message says why not.
  connection->writer.Write("hello\n");
  co_return co_await connection->reader.ReadLine();
}
// [end]

// [snippet tls-server]
absl::StatusOr<TlsContext> ServersContext(std::string certificate, std::string key) {
  TlsServerOptions options;
  options.certificate_pem = std::move(certificate);  // Or certificate_file, private_key_file.
  options.private_key_pem = std::move(key);
  options.alpn_protocols = {"h2", "http/1.1"};
  return TlsContext::ForServer(options);
}

Coro<absl::StatusOr<Server>> Serve(const TlsContext& tls) {
  ServerOptions options;
  options.tls = &tls;
  options.on_handshake_error = [](const absl::Status& error) { std::cerr << error << "\n"; };
  const auto echo = [](StreamReader reader, StreamWriter writer) -> Coro<> {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (line.ok()) writer.Write(*line);
  };
  co_return co_await StartServer(echo, "127.0.0.1", 0, options);
}
// [end]

// [snippet starttls]
Coro<absl::Status> Secure(Connection& connection, const TlsContext& tls) {
  connection.writer.Write("STARTTLS\r\n");
  absl::StatusOr<std::string> answer = co_await connection.reader.ReadLine();
  if (!answer.ok()) co_return answer.status();
  StartTlsOptions options;
  options.server_hostname = "mail.example.org";
  co_return co_await connection.writer.StartTls(tls, options);
}
// [end]

WEFT_TEST_F_IN_REAL_TIME(TlsGuideTest, ClientAndServer) {
  const TestCertificate certificate = authority_.Issue("127.0.0.1");
  const TlsContext server_tls = ServersContext(certificate.certificate, certificate.key).value();
  const TlsContext client_tls = ClientContext();
  absl::StatusOr<Server> server = co_await Serve(server_tls);
  absl::StatusOr<std::string> answer = co_await Ask(client_tls, "127.0.0.1", server->port());

  EXPECT_EQ(answer.value_or("?"), "hello\n") << answer.status();
  server->Close();
  co_await server->WaitClosed();
}

WEFT_TEST_F(TlsGuideTest, StartTls) {
  StreamPair pair;
  const TlsContext server_tls = TlsContext::ForServer(ServerTls("mail.example.org")).value();
  const TlsContext client_tls = ClientContext();
  const auto serve = [](Connection& connection, const TlsContext& tls) -> Coro<void> {
    absl::StatusOr<std::string> line = co_await connection.reader.ReadLine();
    connection.writer.Write("220 go ahead\r\n");
    absl::Status secured = co_await connection.writer.StartTls(tls);
    EXPECT_TRUE(secured.ok()) << secured;
  };
  Task<void> serving = CreateTask(serve, std::ref(pair.b), std::cref(server_tls));
  const absl::Status secured = co_await Secure(pair.a, client_tls);
  co_await serving;

  EXPECT_TRUE(secured.ok()) << secured;
}

}  // namespace
}  // namespace weft
