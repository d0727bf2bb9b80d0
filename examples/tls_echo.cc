// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An echo server by TLS.                      Python: asyncio.start_server(ssl=context)
//
//   tools/bazel run -c opt //examples:tls_echo -- --port=7443
//   openssl s_client -connect localhost:7443
//
// With --cert and --key it shows that certificate; without, one that it makes itself and
// that nobody believes who is not told to. Ctrl-C or SIGTERM shut it down.

#include <csignal>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/self_signed.h"
#include "weft/loop/run.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/net/tls_context.h"
#include "weft/sync/event.h"

namespace {

using weft::Coro;

// One client. It is called when the handshake is done.
Coro<> Echo(weft::StreamReader reader, weft::StreamWriter writer) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> data = co_await reader.Fill();
    if (!data.ok()) std::cerr << data.status().message() << std::endl;  // As a cut-off stream.
    if (!data.ok() || data->empty()) break;
    writer.Write(std::string_view(data->data(), data->size()));
    reader.Consume(data->size());
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) break;
  }
  writer.Close();
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port,
                const weft::TlsContext& tls) {
  weft::Event stop;
  for (const int signal : {SIGINT, SIGTERM}) {
    const absl::Status handled =
        weft::GetRunningLoop().AddSignalHandler(signal, [&stop] { stop.Set(); });
    if (!handled.ok()) co_return flags.Fail(handled.message());
  }

  weft::ServerOptions options;
  options.tls = &tls;
  options.on_handshake_error = [](const absl::Status& error) {
    std::cerr << error.message() << std::endl;
  };
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(Echo, host, port, options);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }

  co_await stop.Wait();
  server->Close();
  server->CloseClients();  // Sends what there is to send, and says goodbye.
  auto ended = co_await weft::NoThrow(weft::WithTimeout(absl::Seconds(2), server->WaitClosed()));
  const size_t left = server->connection_count();
  if (!ended.has_value()) {
    server->AbortClients();
    co_await server->WaitClosed();
  }
  std::cout << "done: " << left << " connections cut off" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 7443;
  weft::TlsServerOptions tls;
  weft::Flags flags("tls_echo");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("cert", &tls.certificate_file, "a file with the certificate and its chain, as PEM");
  flags.Add("key", &tls.private_key_file, "its private key; empty: it is in the same file");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.ParseAll(argc, argv);

  weft::RunOptions options;
  options.poller = poller;
  try {
    if (tls.certificate_file.empty() && tls.private_key_file.empty()) {
      weft::SelfSigned made = weft::MakeSelfSigned({"localhost", "127.0.0.1", "::1"});
      tls.certificate_pem = std::move(made.certificate);
      tls.private_key_pem = std::move(made.private_key);
    }
    absl::StatusOr<weft::TlsContext> context = weft::TlsContext::ForServer(tls);
    if (!context.ok()) return flags.Fail(context.status().message());
    return weft::Run(Serve(flags, host, port, *context), options);
  } catch (const weft::ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller, or no certificate to the key.
  }
}
