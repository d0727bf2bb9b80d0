// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a datagram costs to send and to receive, over the loopback: one at a time
// (`Socket`, `Datagram::Send()`), many in a call (`SendMany()`), and cut by the kernel
// (`SendSegments()`); and a question with its answer. A batch is sent, and then
// received.
//
//   tools/bazel run -c opt //net:datagram_benchmark

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/core/coro.h"
#include "weft/core/task.h"
#include "weft/loop/run.h"
#include "weft/net/datagram.h"
#include "weft/net/socket.h"

namespace weft {
namespace {

constexpr int kBatch = 64;

Coro<Datagram> Open(SocketAddress remote = SocketAddress()) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  options.remote_address = std::move(remote);
  absl::StatusOr<Datagram> endpoint = co_await OpenDatagram(options);
  endpoint->socket().SetOption(socket_option::kReceiveBuffer, 4 << 20).IgnoreError();
  co_return *std::move(endpoint);
}

enum How { kOneByOne, kMany, kSegments };

Coro<void> SendAndReceive(benchmark::State& state, How how) {
  const auto size = static_cast<size_t>(state.range(0));
  Datagram receiver = co_await Open();
  Datagram sender = co_await Open(receiver.LocalAddress().value());
  const std::string data(size * kBatch, 'x');
  std::vector<Outgoing> many;
  for (size_t i = 0; i < kBatch; ++i)
    many.emplace_back(std::string_view(data).substr(i * size, size));
  std::vector<char> buffer(65536);
  for (auto _ : state) {
    if (how == kOneByOne) {
      for (const Outgoing& one : many) {
        absl::Status sent = co_await sender.Send(one.data);
      }
    } else if (how == kMany) {
      absl::StatusOr<size_t> sent = co_await sender.SendMany(many);
    } else {
      absl::Status sent = co_await sender.SendSegments(data, size);
    }
    for (int i = 0; i < kBatch; ++i) {
      absl::StatusOr<Received> got = co_await receiver.ReceiveInto(absl::MakeSpan(buffer));
      if (!got.ok() || got->size != size) state.SkipWithError("lost");
    }
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

// The same by sockets, which know nothing of many.
Coro<void> SendAndReceiveBySockets(benchmark::State& state) {
  const auto size = static_cast<size_t>(state.range(0));
  Socket receiver = Socket::Open(SocketDomain::kInet, SocketType::kDatagram).value();
  receiver.Bind(SocketAddress::Ipv4Loopback(0)).IgnoreError();
  receiver.SetOption(socket_option::kReceiveBuffer, 4 << 20).IgnoreError();
  Socket sender = Socket::Open(SocketDomain::kInet, SocketType::kDatagram).value();
  absl::Status connected = co_await sender.Connect(receiver.LocalAddress().value());
  const std::string data(size, 'x');
  std::vector<char> buffer(65536);
  for (auto _ : state) {
    for (int i = 0; i < kBatch; ++i) {
      absl::StatusOr<size_t> sent = co_await sender.Send(data);
    }
    for (int i = 0; i < kBatch; ++i) {
      absl::StatusOr<Received> got = co_await receiver.RecvFrom(absl::MakeSpan(buffer));
    }
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

Coro<void> EchoBack(Datagram& endpoint) {
  while (true) {
    absl::StatusOr<Packet> packet = co_await endpoint.Receive();
    if (!packet.ok()) co_return;
    absl::Status sent = co_await endpoint.SendTo(packet->data, packet->from);
  }
}

Coro<void> PingPong(benchmark::State& state) {
  Datagram server = co_await Open();
  Datagram client = co_await Open(server.LocalAddress().value());
  Task<void> echo = CreateTask(EchoBack(server));
  char buffer[100];
  for (auto _ : state) {
    absl::Status sent = co_await client.Send("0123456789abcdef");
    absl::StatusOr<Received> got = co_await client.ReceiveInto(absl::MakeSpan(buffer));
  }
  state.SetItemsProcessed(state.iterations());
}

void BM_Sockets(benchmark::State& state) { Run(SendAndReceiveBySockets(state)); }
BENCHMARK(BM_Sockets)->ArgName("size")->Arg(64)->Arg(1200);
void BM_OneByOne(benchmark::State& state) { Run(SendAndReceive(state, kOneByOne)); }
BENCHMARK(BM_OneByOne)->ArgName("size")->Arg(64)->Arg(1200);
void BM_Many(benchmark::State& state) { Run(SendAndReceive(state, kMany)); }
BENCHMARK(BM_Many)->ArgName("size")->Arg(64)->Arg(1200);
void BM_Segments(benchmark::State& state) { Run(SendAndReceive(state, kSegments)); }
BENCHMARK(BM_Segments)->ArgName("size")->Arg(64)->Arg(1000);
void BM_PingPong(benchmark::State& state) { Run(PingPong(state)); }
BENCHMARK(BM_PingPong);

}  // namespace
}  // namespace weft
