// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The code of the guide that is about the network; see snippets_test.cc.

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/async_generator.h"
#include "weft/core/clock.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/datagram.h"
#include "weft/net/file.h"
#include "weft/net/lines.h"
#include "weft/net/resolver.h"
#include "weft/net/send_file.h"
#include "weft/net/server.h"
#include "weft/net/unix_socket.h"
#include "weft/poller/fault_injection.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

// [snippet net-handler]
Coro<> Upper(StreamReader reader, StreamWriter writer) {
  AsyncGenerator<absl::StatusOr<std::string>> lines = Lines(reader);
  while (true) {
    std::optional<absl::StatusOr<std::string>> line = co_await lines.Next();
    if (!line.has_value() || !line->ok()) co_return;  // The end, a reset, a line too long.
    for (char& c : **line) c = static_cast<char>(std::toupper(c));
    writer.Write(**line);
    absl::Status sent = co_await writer.Drain();  // Waits for a client that does not read.
    if (!sent.ok()) co_return;
  }
}
// [end]

// [snippet net-ask]
Coro<absl::StatusOr<std::string>> Ask(std::string host, uint16_t port, std::string question) {
  ConnectOptions options;
  options.timeout = absl::Seconds(5);                // The look-up included.
  options.keep_alive = KeepAlive(absl::Minutes(1));  // A dead peer is noticed.
  absl::StatusOr<Connection> connection = co_await OpenConnection(host, port, options);
  if (!connection.ok()) co_return connection.status();  // Says which addresses failed, and why.
  connection->writer.Write(question + "\n");
  co_return co_await WithTimeout(absl::Seconds(5), connection->reader.ReadLine());
}
// [end]

WEFT_TEST(NetGuideTest, ServerAndClient) {
  // [snippet net-server]
  ServerOptions options;
  options.max_connections = 1000;
  const std::vector<std::string> hosts = {"127.0.0.1", "::1"};
  absl::StatusOr<Server> server = co_await StartServer(Upper, hosts, /*port=*/0, options);
  // [end]
  WEFT_ASSERT_OK(server.status());
  absl::StatusOr<std::string> answer = co_await Ask("::1", server->port(), "hello");
  EXPECT_EQ(answer.value(), "HELLO\n");
}

// [snippet net-watch]
// Returns when the client hangs up, or is lost, though nobody reads what it says.
Coro<> WaitForHangup(StreamReader& reader) {
  while (true) {
    size_t unread = reader.Unread().size();
    absl::StatusOr<absl::Span<const char>> more = co_await reader.Fill(unread + 1);
    if (!more.ok() || more->size() == unread) co_return;
  }
}
// [end]

WEFT_TEST(NetGuideTest, Hangup) {
  std::pair<Socket, Socket> sockets = Socket::Pair().value();
  Connection a = ToConnection(std::move(sockets.first));
  Connection b = ToConnection(std::move(sockets.second));
  Task<> watching = CreateTask(WaitForHangup(b.reader));
  a.writer.Write("something");
  co_await NoThrow(WithTimeout(absl::Seconds(1), Shield(watching)));
  EXPECT_FALSE(watching.Done());
  a.writer.Close();
  co_await watching;
}

// [snippet net-datagram]
Coro<> AnswerDatagrams(Datagram& endpoint) {
  while (true) {
    absl::StatusOr<Packet> packet = co_await endpoint.Receive();
    if (!endpoint.is_open()) co_return;
    if (!packet.ok()) continue;  // What became of something that was sent; no reason to end.
    absl::Status sent = co_await endpoint.SendTo(packet->data, packet->from);
  }
}
// [end]

WEFT_TEST(NetGuideTest, Datagrams) {
  // [snippet net-open-datagram]
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  absl::StatusOr<Datagram> server = co_await OpenDatagram(options);
  const uint16_t port = server->LocalAddress()->port();
  absl::StatusOr<Datagram> client = co_await OpenDatagram("127.0.0.1", port);
  // [end]
  Task<> answering = CreateTask(AnswerDatagrams(*server));
  absl::Status sent = co_await client->Send("ping");
  absl::StatusOr<Packet> packet = co_await client->Receive();
  EXPECT_EQ(packet->data, "ping");
  server->Close();
  co_await answering;
}

WEFT_TEST(NetGuideTest, Files) {
  const std::string path = ::testing::TempDir() + "/net_guide";
  // [snippet net-files]
  absl::Status written = co_await WriteFile(path, "some text");
  absl::StatusOr<std::string> text = co_await ReadFile(path);
  // [end]
  EXPECT_EQ(text.value(), "some text");

  std::pair<Socket, Socket> sockets = Socket::Pair().value();
  Connection a = ToConnection(std::move(sockets.first));
  StreamWriter& writer = a.writer;
  // [snippet net-send-file]
  absl::StatusOr<File> file = co_await File::Open(path);
  writer.Write("here it comes: ");
  absl::StatusOr<int64_t> sent = co_await SendFile(writer, *file);
  // [end]
  EXPECT_EQ(sent.value(), 9);
  writer.Close();
  Connection b = ToConnection(std::move(sockets.second));
  text = co_await b.reader.Read();
  EXPECT_EQ(text.value(), "here it comes: some text");
}

WEFT_TEST_IN_REAL_TIME(NetGuideTest, Names) {
  // [snippet net-names]
  ResolveOptions options;
  options.timeout = absl::Seconds(5);
  absl::StatusOr<Addresses> found = co_await GetAddrInfo("localhost", 80, options);
  // [end]
  WEFT_EXPECT_OK(found.status());
}

// The debugging page.

Coro<> Program() {
  absl::StatusOr<std::pair<Socket, Socket>> pair = Socket::Pair();
  if (!pair.ok()) co_return;
  absl::Status sent = co_await pair->first.SendAll("x");
}

TEST(NetGuideTest, Faults) {
  uint32_t seed = 1;
  // [snippet faults]
  Faults faults = Faults::Random(seed, /*one_in=*/30);
  FaultyPoller poller(&faults);
  FaultySocketApi sockets(&faults);
  VirtualClock clock;  // A program that waits for ever fails at once.
  RunOptions options;
  options.environment.poller = &poller;
  options.environment.socket_api = &sockets;
  options.environment.clock = &clock;
  weft::Run(Program(), options);
  // [end]
  EXPECT_GT(faults.places(), 0u);
}

}  // namespace
}  // namespace weft
