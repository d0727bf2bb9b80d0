// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What TLS costs, both ends in one loop over a pair of Unix sockets: a handshake, whole
// and with a session that is taken up again; a request and its answer; bulk. The same
// without TLS is in echo_benchmark.
//
//   tools/bazel run -c opt //net:tls_benchmark

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "weft/bench/allocations.h"
#include "weft/core/task.h"
#include "weft/loop/run.h"
#include "weft/net/stream.h"
#include "weft/net/test_certificates.h"
#include "weft/net/tls_context.h"

namespace weft {
namespace {

using bench::AllocationCount;

struct Contexts {
  explicit Contexts(bool has_sessions) {
    const TestAuthority authority;
    const TestCertificate certificate = authority.Issue("server.example");
    TlsServerOptions s;
    s.certificate_pem = certificate.certificate;
    s.private_key_pem = certificate.key;
    s.session_tickets = has_sessions;
    server = TlsContext::ForServer(s).value();
    TlsClientOptions c;
    c.ca_pem = authority.certificate();
    client = TlsContext::ForClient(c).value();
  }

  TlsContext server, client;
};

Coro<void> Secure(Connection& connection, const TlsContext& tls, std::string host) {
  StartTlsOptions options;
  options.server_hostname = std::move(host);
  absl::Status status = co_await connection.writer.StartTls(tls, options);
  if (!status.ok()) std::abort();
}

struct Ends {
  Connection client, server;
};

Coro<Ends> Connect(const Contexts& contexts) {
  std::pair<Socket, Socket> pair = Socket::Pair().value();
  Ends ends;
  ends.client = ToConnection(std::move(pair.first));
  ends.server = ToConnection(std::move(pair.second));
  Task<void> serving = CreateTask(Secure(ends.server, contexts.server, ""));
  co_await Secure(ends.client, contexts.client, "server.example");
  co_await serving;
  co_return ends;
}

// And the goodbye of both.
Coro<void> Handshakes(benchmark::State& state) {
  const Contexts contexts(state.range(0) != 0);
  for (auto _ : state) {
    Ends ends = co_await Connect(contexts);
    ends.server.writer.Close();
    absl::StatusOr<std::string> end = co_await ends.client.reader.Read();  // The tickets, too.
    ends.client.writer.Close();
    absl::Status closed = co_await ends.server.writer.WaitClosed();
  }
  state.SetItemsProcessed(state.iterations());
}

Coro<void> Echo(Connection& connection) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await connection.reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    connection.writer.Write(std::string_view(unread->data(), unread->size()));
    connection.reader.Consume(unread->size());
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<void> RoundTrips(benchmark::State& state) {
  const Contexts contexts(/*has_sessions=*/true);
  const size_t size = static_cast<size_t>(state.range(0));
  Ends ends = co_await Connect(contexts);
  Task<void> echo = CreateTask(Echo(ends.server));
  const std::string request(size, 'x');
  const auto ask = [&]() -> Coro<void> {
    ends.client.writer.Write(request);
    for (size_t received = 0; received < size;) {
      absl::StatusOr<absl::Span<const char>> some = co_await ends.client.reader.Fill();
      if (!some.ok() || some->empty()) co_return;
      received += some->size();
      ends.client.reader.Consume(some->size());
    }
  };
  for (int i = 0; i < 100; ++i) co_await ask();
  AllocationCount allocations(state);
  for (auto _ : state) co_await ask();
  allocations.Report(1);
  state.SetBytesProcessed(2 * state.iterations() * static_cast<int64_t>(size));
  ends.client.writer.Close();
  co_await echo;
}

void BM_TlsHandshake(benchmark::State& state) { Run(Handshakes(state)); }
void BM_TlsRoundTrip(benchmark::State& state) { Run(RoundTrips(state)); }
BENCHMARK(BM_TlsHandshake)->ArgName("resumed")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_TlsRoundTrip)
    ->ArgName("bytes")
    ->Arg(64)
    ->Arg(16384)
    ->Arg(1 << 20)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace weft
