// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a request and its answer cost, both ends in one loop: the kernel's part and
// ours. By streams in the three ways of reading, and by bare sockets; over TCP and
// over a pair of Unix sockets; for one connection, which waits for each answer, and
// for many, which share the polls. `allocs` counts the calls of operator new per
// round trip, and is to be 0 but where a string is returned that does not fit into
// itself.
//
//   tools/bazel run -c opt //net:echo_benchmark

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/bench/allocations.h"
#include "weft/core/coro.h"
#include "weft/core/task.h"
#include "weft/loop/run.h"
#include "weft/net/socket.h"
#include "weft/net/stream.h"

namespace weft {
namespace {

using bench::AllocationCount;

enum Transport { kUnixPair, kTcp };

Coro<std::pair<Socket, Socket>> MakePair(Transport transport) {
  if (transport == kUnixPair) co_return Socket::Pair().value();
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  listener.Bind(SocketAddress::Ipv4Loopback(0)).IgnoreError();
  listener.Listen().IgnoreError();
  Socket client = Socket::Open(SocketDomain::kInet).value();
  client.SetOption(SocketOption::kNoDelay, 1).IgnoreError();
  absl::Status connected = co_await client.Connect(listener.LocalAddress().value());
  absl::StatusOr<Socket> accepted = co_await listener.Accept();
  accepted->SetOption(SocketOption::kNoDelay, 1).IgnoreError();
  co_return std::make_pair(std::move(client), *std::move(accepted));
}

// -- The server's end of a connection.

Coro<void> EchoByFill(Socket socket) {
  Connection connection = ToConnection(std::move(socket));
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await connection.reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    const size_t count = unread->size();
    connection.writer.Write(std::string_view(unread->data(), count));
    connection.reader.Consume(count);
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<void> EchoByReadInto(Socket socket) {
  Connection connection = ToConnection(std::move(socket));
  const auto buffer = std::make_unique<char[]>(65536);
  while (true) {
    absl::StatusOr<size_t> count =
        co_await connection.reader.ReadInto(absl::MakeSpan(buffer.get(), 65536));
    if (!count.ok() || *count == 0) co_return;
    connection.writer.Write(std::string_view(buffer.get(), *count));
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<void> EchoByRead(Socket socket) {
  Connection connection = ToConnection(std::move(socket));
  while (true) {
    absl::StatusOr<std::string> some = co_await connection.reader.Read(65536);
    if (!some.ok() || some->empty()) co_return;
    connection.writer.Write(*some);
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<void> EchoBySocket(Socket socket) {
  const auto buffer = std::make_unique<char[]>(65536);
  while (true) {
    absl::StatusOr<size_t> count = co_await socket.Recv(absl::MakeSpan(buffer.get(), 65536));
    if (!count.ok() || *count == 0) co_return;
    absl::Status sent = co_await socket.SendAll(std::string_view(buffer.get(), *count));
    if (!sent.ok()) co_return;
  }
}

// -- The client's: bare sockets, the same for all.

struct Client {
  Socket socket;
  std::unique_ptr<char[]> buffer;
};

Coro<void> RoundTrips(Client& client, size_t size, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    absl::Status sent = co_await client.socket.SendAll(std::string_view(client.buffer.get(), size));
    for (size_t received = 0; received < size;) {
      absl::StatusOr<size_t> some =
          co_await client.socket.Recv(absl::MakeSpan(client.buffer.get(), size - received));
      if (!some.ok() || *some == 0) co_return;
      received += *some;
    }
  }
}

using EchoFunction = Coro<void> (*)(Socket);

Coro<void> RunEcho(benchmark::State& state, EchoFunction echo) {
  const Transport transport = static_cast<Transport>(state.range(0));
  const size_t size = static_cast<size_t>(state.range(1));
  const int64_t connections = state.range(2);
  constexpr int64_t kTrips = 100;  // Of each connection, in an iteration.
  std::vector<Client> clients(static_cast<size_t>(connections));
  std::vector<Task<void>> servers;
  for (Client& client : clients) {
    std::pair<Socket, Socket> pair = co_await MakePair(transport);
    client.socket = std::move(pair.first);
    client.buffer = std::make_unique<char[]>(size);
    servers.push_back(CreateTask(echo, std::move(pair.second)));
  }
  std::vector<Task<void>> trips;
  trips.reserve(clients.size());
  const auto all = [&]() -> Coro<void> {
    trips.clear();
    for (Client& client : clients) trips.push_back(CreateTask(RoundTrips(client, size, kTrips)));
    for (Task<void>& task : trips) co_await task;
  };
  co_await all();  // Fills the free lists.
  AllocationCount allocations(state);
  for (auto _ : state) co_await all();
  allocations.Report(kTrips * connections);
  state.SetBytesProcessed(state.items_processed() * static_cast<int64_t>(size));
  for (Client& client : clients) client.socket.Close();
  for (Task<void>& server : servers) co_await server;
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"tcp", "bytes", "connections"});
  for (int64_t transport : {kUnixPair, kTcp}) {
    benchmark->Args({transport, 64, 1});
    benchmark->Args({transport, 64, 64});
    benchmark->Args({transport, 16384, 64});
  }
  benchmark->Args({kTcp, 64, 1000});
  benchmark->Unit(benchmark::kMillisecond);
}

void BM_StreamFill(benchmark::State& state) { Run(RunEcho(state, &EchoByFill)); }
void BM_StreamReadInto(benchmark::State& state) { Run(RunEcho(state, &EchoByReadInto)); }
void BM_StreamRead(benchmark::State& state) { Run(RunEcho(state, &EchoByRead)); }
void BM_Socket(benchmark::State& state) { Run(RunEcho(state, &EchoBySocket)); }
BENCHMARK(BM_StreamFill)->Apply(Sizes);
BENCHMARK(BM_StreamReadInto)->Apply(Sizes);
BENCHMARK(BM_StreamRead)->Apply(Sizes);
BENCHMARK(BM_Socket)->Apply(Sizes);

}  // namespace
}  // namespace weft
