// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What goes wrong above the system calls: each operation and each call of the socket
// API fails once, with each error that it can fail with, and all of them at random.
// The program that runs has to end, by success or by an error, without a hang, a leak or
// a wrong byte. In virtual time: a program that waits for ever fails at once.

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/exception_context.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/datagram.h"
#include "weft/net/errno_status.h"
#include "weft/net/file.h"
#include "weft/net/send_file.h"
#include "weft/net/server.h"
#include "weft/net/test_net.h"
#include "weft/net/unix_socket.h"
#include "weft/poller/fault_injection.h"
#include "weft/poller/poller_wrapper.h"
#include "weft/testing/test_poller.h"

namespace weft {
namespace {

using Text = absl::StatusOr<std::string>;

// A program of which things go wrong. Returns its first error.
using Program = Coro<absl::Status> (*)();

// Virtual time moves when nothing comes from the kernel for a moment. Without TCP_NODELAY,
// which may fail, a small write waits for the peer's acknowledgement, and that comes 40 ms
// later; so each moment is longer than that here.
class PatientPoller final : public PollerWrapper {
 public:
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override {
    const bool is_moment =
        pending() > 0 && deadline > SteadyClock::Read() && deadline != TimePoint::InfiniteFuture();
    return PollerWrapper::Wait(is_moment ? deadline + absl::Milliseconds(200) : deadline, done);
  }
};

class NetFaultsTest : public NetTest {
 protected:
  // Runs it once: OK, or the error that it returned.
  absl::Status RunOnce(Program program, Faults* faults) {
    const int before = CountDescriptors();
    absl::Status status;
    {
      FaultyPoller poller(faults, std::make_unique<PatientPoller>());
      FaultySocketApi sockets(faults);
      VirtualClock clock;
      RunOptions options;
      options.environment.poller = &poller;
      options.environment.socket_api = &sockets;
      options.environment.clock = &clock;
      auto main = [program, &status]() -> Coro<void> {
        EventLoop& loop = GetRunningLoop();
        loop.SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
        Coro<absl::Status> running = program();
        Outcome<absl::Status> outcome =
            co_await NoThrow(WithTimeout(absl::Minutes(10), std::move(running)));
        EXPECT_FALSE(outcome.has_exception()) << DescribeException(outcome.exception());
        if (outcome.has_value()) status = std::move(outcome).value();
        co_await Rounds(5);
        EXPECT_EQ(AllTasks().size(), 1u) << "tasks are left";
        EXPECT_EQ(loop.slab_pool().outstanding_count(), 0u) << "slabs are left";
      };
      weft::Run(main(), options);
      EXPECT_EQ(poller.pending(), 0u);
    }
    EXPECT_EQ(CountDescriptors(), before) << "descriptors are leaked";
    return status;
  }

  // Each place, each error.
  void FailEverywhere(Program program) {
    Faults none = Faults::At(~uint64_t{0}, 0);
    absl::Status status = RunOnce(program, &none);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_GT(none.places(), 10u);

    int runs = 0, errors = 0;
    for (uint64_t place = 0;; ++place) {
      bool was_reached = true;
      for (uint32_t which = 0;; ++which) {
        SCOPED_TRACE(absl::StrCat("place ", place, ", error ", which));
        Faults faults = Faults::At(place, which);
        status = RunOnce(program, &faults);
        ++runs;
        if (!status.ok()) ++errors;
        if (faults.count() > 0) continue;
        // There is no such error, or no such place.
        EXPECT_TRUE(status.ok()) << status;
        was_reached = faults.was_reached();
        break;
      }
      if (!was_reached || ::testing::Test::HasFailure()) break;
    }
    EXPECT_GT(errors, 0);
    EXPECT_LT(errors, runs);
  }

  // Many things at random.
  void FailAtRandom(Program program, int runs) {
    std::set<int> seen;
    int good = 0;
    // How many calls a run makes is the kernel's affair; so on until both have come.
    const auto has_seen_both = [&] { return seen.count(ENOBUFS) == 1 && seen.count(ENOMEM) == 1; };
    int seed = 1;
    for (; seed <= 10 * runs && !::testing::Test::HasFailure(); ++seed) {
      if (seed > runs && has_seen_both()) break;
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      Faults faults = Faults::Random(static_cast<uint32_t>(seed), /*one_in=*/30);
      if (RunOnce(program, &faults).ok()) ++good;
      seen.insert(faults.seen().begin(), faults.seen().end());
    }
    EXPECT_GT(good, 0);
    EXPECT_LT(good, seed - 1);
    EXPECT_TRUE(has_seen_both());
  }
};

// -- Streams.

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  while (true) {
    Text line = co_await reader.ReadLine();
    if (!line.ok() || line->empty()) co_return;
    writer.Write(*line);
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<absl::Status> Talk(SocketAddress address) {
  absl::StatusOr<Connection> connection = co_await OpenConnection(std::move(address));
  if (!connection.ok()) co_return connection.status();
  for (int i = 0; i < 3; ++i) {
    const std::string question = absl::StrCat(Pattern(5000, 7 + static_cast<uint32_t>(i)), i);
    std::string line;
    for (char c : question) line += c == '\n' ? ' ' : c;
    line += '\n';
    connection->writer.Write(line);
    absl::Status sent = co_await connection->writer.Drain();
    if (!sent.ok()) co_return sent;
    Outcome<Text> waited =
        co_await NoThrow(WithTimeout(absl::Minutes(1), connection->reader.ReadLine()));
    if (!waited.has_value()) {
      // What was to be sent was lost after Drain(), and neither end knows of that.
      EXPECT_TRUE(TestPollerCompletes()) << DescribeException(waited.exception());
      co_return absl::DeadlineExceededError("no answer");
    }
    Text answer = std::move(waited).value();
    if (!answer.ok()) co_return answer.status();
    if (answer->empty()) co_return absl::DataLossError("the end came early");
    EXPECT_EQ(*answer, line.substr(0, answer->size()));
    if (*answer != line) co_return absl::DataLossError("the end came within a line");
  }
  connection->writer.WriteEof();
  Text rest = co_await connection->reader.Read();
  if (!rest.ok()) co_return rest.status();
  EXPECT_EQ(*rest, "");
  connection->writer.Close();
  co_return co_await connection->writer.WaitClosed();
}

Coro<absl::Status> TalkToAServer() {
  absl::StatusOr<Server> server = co_await StartServer(Echo, "127.0.0.1", 0);
  if (!server.ok()) co_return server.status();
  absl::Status talked = co_await Talk(server->addresses().front());
  server->Close();
  server->CloseClients();
  Outcome<void> closed = co_await NoThrow(WithTimeout(absl::Seconds(5), server->WaitClosed()));
  EXPECT_TRUE(closed.has_value()) << server->connection_count() << " connections are left";
  co_return talked;
}

TEST_F(NetFaultsTest, StreamsEverywhere) { FailEverywhere(&TalkToAServer); }
TEST_F(NetFaultsTest, StreamsAtRandom) { FailAtRandom(&TalkToAServer, 300); }

// -- Several addresses.

class Resolved final : public Resolver {
 public:
  Coro<absl::StatusOr<Addresses>> Resolve(std::string, uint16_t port, ResolveOptions) override {
    Addresses both;
    both.push_back(SocketAddress::Ipv4Loopback(port));
    both.push_back(SocketAddress::Ipv6Loopback(port));
    co_return both;
  }
};

Coro<absl::Status> ConnectToOneOfTwo() {
  Resolved resolver;
  ServerOptions server_options;
  server_options.resolver = &resolver;
  absl::StatusOr<Server> server = co_await StartServer(Echo, "both", 0, server_options);
  if (!server.ok()) co_return server.status();
  ConnectOptions options;
  options.resolver = &resolver;
  options.keep_alive = KeepAlive(absl::Seconds(10));
  absl::Status status;
  {
    absl::StatusOr<Connection> connection =
        co_await OpenConnection("both", server->port(), options);
    status = connection.status();
  }
  server->Close();
  server->AbortClients();
  co_await server->WaitClosed();
  co_return status;
}

TEST_F(NetFaultsTest, HappyEyeballsEverywhere) { FailEverywhere(&ConnectToOneOfTwo); }

// -- Datagrams.

Coro<absl::Status> SendDatagrams() {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  absl::StatusOr<Datagram> server = co_await OpenDatagram(options);
  if (!server.ok()) co_return server.status();
  absl::StatusOr<SocketAddress> address = server->LocalAddress();
  if (!address.ok()) co_return address.status();
  options.remote_address = *address;
  absl::StatusOr<Datagram> client = co_await OpenDatagram(options);
  if (!client.ok()) co_return client.status();

  absl::Status sent = co_await client->Send("0");
  if (!sent.ok()) co_return sent;
  std::vector<Outgoing> many = {Outgoing("1"), Outgoing("2"), Outgoing("3")};
  absl::Span<const Outgoing> rest = many;
  while (!rest.empty()) {
    absl::StatusOr<size_t> count = co_await client->SendMany(rest);
    if (!count.ok()) co_return count.status();
    rest.remove_prefix(*count);
  }
  sent = co_await client->SendSegments("45", 1);
  if (!sent.ok()) co_return sent;
  for (int i = 0; i < 6; ++i) {
    absl::StatusOr<Packet> packet = co_await server->Receive();
    if (!packet.ok()) co_return packet.status();
    EXPECT_EQ(packet->data, absl::StrCat(i));
  }
  co_return absl::OkStatus();
}

TEST_F(NetFaultsTest, DatagramsEverywhere) { FailEverywhere(&SendDatagrams); }
TEST_F(NetFaultsTest, DatagramsAtRandom) { FailAtRandom(&SendDatagrams, 300); }

// -- Files and descriptors on their way.

Coro<absl::Status> SendAFile() {
  absl::StatusOr<std::pair<Socket, Socket>> sockets = Socket::Pair();
  if (!sockets.ok()) co_return sockets.status();
  const std::string data = Pattern(300'000);
  const std::string path = ::testing::TempDir() + "/net_faults_test";
  absl::Status written = co_await WriteFile(path, data);
  if (!written.ok()) co_return written;
  absl::StatusOr<File> file = co_await File::Open(path);
  ::unlink(path.c_str());
  if (!file.ok()) co_return file.status();

  StreamPair pair(*std::move(sockets));
  auto send = [](StreamWriter* writer, const File* from) -> Coro<absl::Status> {
    writer->Write("before");
    absl::StatusOr<int64_t> sent = co_await SendFile(*writer, *from);
    writer->Close();
    co_return sent.status();
  };
  Task<absl::Status> sending = CreateTask(send, &pair.a.writer, &*file);
  Text all = co_await pair.b.reader.Read();
  if (!all.ok()) pair.b.writer.Abort();
  absl::Status sent = co_await std::move(sending);
  if (!all.ok()) co_return all.status();
  EXPECT_TRUE(*all == ("before" + data).substr(0, all->size()));
  if (sent.ok() && all->size() < data.size()) co_return absl::DataLossError("the end came early");
  co_return sent;
}

TEST_F(NetFaultsTest, FilesEverywhere) { FailEverywhere(&SendAFile); }
TEST_F(NetFaultsTest, FilesAtRandom) { FailAtRandom(&SendAFile, 100); }

Coro<absl::Status> PassADescriptor() {
  absl::StatusOr<std::pair<Socket, Socket>> sockets = Socket::Pair();
  if (!sockets.ok()) co_return sockets.status();
  absl::StatusOr<PeerCredentials> peer = GetPeerCredentials(sockets->first);
  if (!peer.ok()) co_return peer.status();
  for (int i = 0; i < 5; ++i) {
    const std::vector<NativeHandle> handles(3, sockets->first.handle());
    absl::StatusOr<size_t> sent = co_await SendHandles(sockets->first, "x", handles);
    if (!sent.ok()) co_return sent.status();
    char buffer[10];
    absl::StatusOr<ReceivedHandles> received =
        co_await ReceiveHandles(sockets->second, absl::MakeSpan(buffer), 2);
    if (!received.ok()) co_return received.status();
    EXPECT_EQ(received->handles.size(), 2u);
  }
  co_return absl::OkStatus();
}

TEST_F(NetFaultsTest, DescriptorsEverywhere) {
  if (!HasUnixSockets()) GTEST_SKIP() << "this system has no Unix sockets";
  FailEverywhere(&PassADescriptor);
}

}  // namespace
}  // namespace weft
