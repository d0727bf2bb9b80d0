// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Stands between clients and a TCP server, and passes on what either says.
//
//   tools/bazel run -c opt //examples:proxy -- --port=8080 --to=example.org:80
//   curl -H 'Host: example.org' http://localhost:8080/
//
// Each direction ends by itself: a client that has said all it has to say still hears
// the answer. A side that is slow slows down the other, and no more than some 64 KiB a
// direction are ever held.
//
// Ctrl-C or SIGTERM end it; connections get a little time to come to their end.

#include <csignal>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connect.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/sync/event.h"

namespace {

using weft::Coro;

struct Target {
  std::string host;
  uint16_t port = 0;
  weft::ConnectOptions options;
};

struct Totals {
  int64_t connections = 0;
  int64_t up = 0;    // Bytes, from clients.
  int64_t down = 0;  // To them.
};

// One direction, until `from` has no more. If either side is lost there is nobody to
// tell the other: it is cut off, and with it the other direction.
Coro<> Copy(weft::StreamReader& from, weft::StreamWriter& to, weft::StreamWriter& back,
            int64_t* bytes) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> data = co_await from.Fill();
    if (!data.ok()) break;
    if (data->empty()) {
      to.WriteEof();
      co_return;
    }
    to.Write(std::string_view(data->data(), data->size()));
    *bytes += static_cast<int64_t>(data->size());
    from.Consume(data->size());
    if (absl::Status sent = co_await to.Drain(); !sent.ok()) break;
  }
  to.Abort();
  back.Abort();
}

Coro<> PassOn(weft::StreamReader reader, weft::StreamWriter writer, const Target& target,
              Totals* totals) {
  ++totals->connections;
  absl::StatusOr<weft::Connection> server =
      co_await weft::OpenConnection(target.host, target.port, target.options);
  if (!server.ok()) {
    std::cerr << "proxy: " << server.status().message() << std::endl;
    co_return;
  }
  co_await weft::Gather(Copy(reader, server->writer, writer, &totals->up),
                        Copy(server->reader, writer, server->writer, &totals->down));
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port, Target target,
                absl::Duration grace) {
  weft::Event stop;
  for (const int signal : {SIGINT, SIGTERM}) {
    const absl::Status handled =
        weft::GetRunningLoop().AddSignalHandler(signal, [&stop] { stop.Set(); });
    if (!handled.ok()) co_return flags.Fail(handled.message());
  }

  Totals totals;
  const auto handler = [&target, &totals](weft::StreamReader reader, weft::StreamWriter writer) {
    return PassOn(std::move(reader), std::move(writer), target, &totals);
  };
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(handler, host, port);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }

  co_await stop.Wait();
  server->Close();
  auto ended = co_await weft::NoThrow(weft::WithTimeout(grace, server->WaitClosed()));
  const size_t left = server->connection_count();
  if (!ended.has_value()) {
    server->AbortClients();
    co_await server->WaitClosed();
  }
  std::cout << "done: " << totals.connections << " connections, " << totals.up << " bytes up, "
            << totals.down << " bytes down, " << left << " connections cut off" << std::endl;
  co_return 0;
}

// "example.org:80", "[::1]:80"; false if it is no such thing.
bool ParseTarget(std::string_view text, Target* target) {
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == std::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return false;
  }
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  target->host = std::string(host);
  target->port = static_cast<uint16_t>(port);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", to, poller;
  uint16_t port = 8080;
  int grace = 2000, timeout = 10'000;
  weft::Flags flags("proxy --to=HOST:PORT");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("to", &to, "the server, HOST:PORT");
  flags.Add("timeout", &timeout, 1, 3'600'000, "ms that connecting to it may take");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.Add("grace", &grace, 0, 3'600'000, "ms that connections have to end, at the end");
  flags.ParseAll(argc, argv);
  Target target;
  if (!ParseTarget(to, &target)) return flags.Fail("--to=HOST:PORT: not \"" + to + "\"");
  target.options.timeout = absl::Milliseconds(timeout);

  return weft::RunOn(poller, Serve(flags, host, port, target, absl::Milliseconds(grace)), flags);
}
