// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A TCP server that sends back what it gets, to any number of clients at once.
//
//   tools/bazel run -c opt //examples:echo_server -- --port=7777
//   tools/bazel run //examples:echo_client -- --port=7777 hello     (or: nc localhost 7777)
//
// Ctrl-C or SIGTERM shut it down: it accepts nobody any more, gives the
// connections that there are a little time to end, and says how it went.

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

struct Totals {
  int64_t connections = 0;
  int64_t bytes = 0;
};

// One client. It runs in a task of its own, and everything it does not do itself
// ends it: that the client leaves, that it resets, that the server shuts down.
Coro<> Echo(weft::StreamReader reader, weft::StreamWriter writer, Totals* totals) {
  ++totals->connections;
  while (true) {
    absl::StatusOr<absl::Span<const char>> data = co_await reader.Fill();
    if (!data.ok() || data->empty()) co_return;  // Reset, or all has been said.
    writer.Write(std::string_view(data->data(), data->size()));
    totals->bytes += static_cast<int64_t>(data->size());
    reader.Consume(data->size());
    // Here a client waits that sends, and does not read what it gets back.
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) co_return;
  }
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port, absl::Duration grace) {
  Totals totals;
  const auto echo = [&totals](weft::StreamReader reader, weft::StreamWriter writer) {
    return Echo(std::move(reader), std::move(writer), &totals);
  };
  weft::ServerOptions options;
  options.backlog = 1024;  // Clients that come all at once.
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(echo, host, port, options);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }

  weft::ServeOptions ending;
  ending.grace = grace;
  ending.on_stopping = [&server] {
    std::cout << "shutting down, " << server->connection_count() << " connections are open"
              << std::endl;
  };
  weft::ShutdownReport report = co_await weft::ServeUntilSignal(*server, ending);
  std::cout << "done: " << totals.connections << " connections, " << totals.bytes << " bytes, "
            << report.cancelled << " connections cut off" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 7777;
  int grace = 2000;
  weft::Flags flags("echo_server");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.Add("grace", &grace, 0, 3'600'000, "ms that connections have to end, at the end");
  flags.ParseAll(argc, argv);

  return weft::RunOn(poller, Serve(flags, host, port, absl::Milliseconds(grace)), flags);
}
