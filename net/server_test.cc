// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a server promises. The numbers are those of the conformance list.

#include "weft/net/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_net.h"
#include "weft/poller/fake_poller.h"
#include "weft/poller/poller_registry.h"
#include "weft/sync/event.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ServerTest : public NetTest {};

using MaybeServer = absl::StatusOr<Server>;
using MaybeConnection = absl::StatusOr<Connection>;
using Text = absl::StatusOr<std::string>;

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  while (true) {
    Text some = co_await reader.Read(65536);
    if (!some.ok() || some->empty()) break;
    writer.Write(*some);
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) break;
  }
  writer.Close();
}

// Sends a line, and gets one back.
Coro<std::string> Ask(Connection& connection, std::string line) {
  connection.writer.Write(line + "\n");
  Text answer = co_await connection.reader.ReadLine();
  if (!answer.ok()) co_return std::string(answer.status().message());
  co_return *answer;
}

Coro<Connection> Connect(const Server& server) {
  MaybeConnection connection = co_await OpenConnection(server.addresses().front());
  EXPECT_TRUE(connection.ok()) << connection.status();
  co_return *std::move(connection);
}

// SRV 234
WEFT_TEST_F(ServerTest, EchoesWhatAClientSends) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  WEFT_ASSERT_OK(server.status());
  EXPECT_NE(server->port(), 0);
  EXPECT_TRUE(server->IsServing());

  MaybeConnection client = co_await OpenConnection("127.0.0.1", server->port());
  WEFT_ASSERT_OK(client.status());
  client->writer.Write("hello\nworld\n");
  client->writer.WriteEof();
  Text all = co_await client->reader.Read();

  EXPECT_EQ(all.value(), "hello\nworld\n");
  server->Close();
  co_await server->WaitClosed();
}

WEFT_TEST_F(ServerTest, EachConnectionHasATaskOfItsOwn) {
  std::vector<TaskRef> tasks;
  auto handler = [&tasks](StreamReader reader, StreamWriter writer) -> Coro<void> {
    tasks.push_back(CurrentTask());
    co_await Echo(std::move(reader), std::move(writer));
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection a = co_await Connect(*server);
  Connection b = co_await Connect(*server);
  std::string first = co_await Ask(a, "x");
  std::string second = co_await Ask(b, "y");
  EXPECT_EQ(first + second, "x\ny\n");
  EXPECT_EQ(tasks.size(), 2u);
  EXPECT_FALSE(tasks[0] == tasks[1]);
  EXPECT_EQ(server->connection_count(), 2u);
}

WEFT_TEST_F(ServerTest, AnEmptyHandlerIsRefused) {
  const std::function<Coro<>(StreamReader, StreamWriter)> none;
  const auto start = [&none] { return StartServer(none, "127.0.0.1", 0); };
  EXPECT_THROW(static_cast<void>(start()), ValueError);
  Coro<> (*const null)(StreamReader, StreamWriter) = nullptr;
  const auto start_unix = [null] { return StartUnixServer(null, "a path"); };
  EXPECT_THROW(static_cast<void>(start_unix()), ValueError);
  co_return;
}

// SRV 235
WEFT_TEST_F(ServerTest, APortInUseIsNamed) {
  MaybeServer first = co_await StartServer(Echo, "127.0.0.1", 0);
  MaybeServer second = co_await StartServer(Echo, "127.0.0.1", first->port());
  EXPECT_EQ(ErrnoOf(second.status()), EADDRINUSE);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("127.0.0.1:", first->port())));
}

// SRV 236
WEFT_TEST_F(ServerTest, ClosingRefusesNewClientsAndKeepsTheOld) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  SocketAddress address = server->addresses().front();
  Connection old = co_await Connect(*server);
  std::string answer = co_await Ask(old, "x");

  server->Close();

  MaybeConnection late = co_await OpenConnection(address);
  EXPECT_EQ(ErrnoOf(late.status()), ECONNREFUSED);
  answer = co_await Ask(old, "y");
  EXPECT_EQ(answer, "y\n");
}

// SRV 237
WEFT_TEST_F(ServerTest, WaitClosedWaitsForTheLastConnection) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  std::string answer = co_await Ask(client, "x");
  server->Close();
  WEFT_EXPECT_THROW(co_await WithTimeout(absl::Seconds(1), server->WaitClosed()), TimeoutError);
  client.writer.Close();
  co_await server->WaitClosed();
  co_await server->WaitClosed();
}

// SRV 238
WEFT_TEST_F(ServerTest, CloseClientsEndsTheConnections) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  Connection a = co_await Connect(*server);
  Connection b = co_await Connect(*server);
  std::string answer = co_await Ask(a, "x");
  answer = co_await Ask(b, "x");
  server->Close();
  server->CloseClients();
  Text text = co_await a.reader.Read();
  EXPECT_EQ(text.value(), "");
  co_await server->WaitClosed();
}

WEFT_TEST_F(ServerTest, AbortClientsDropsWhatTheyHadToGet) {
  auto handler = [](StreamReader, StreamWriter writer) -> Coro<void> {
    writer.Write(std::string(10 << 20, 'x'));
    absl::Status sent = co_await writer.Drain();
    absl::Status closed = co_await writer.WaitClosed();
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  Text some = co_await client.reader.Read(1);
  server->Close();
  server->AbortClients();
  co_await server->WaitClosed();
  Text rest = co_await client.reader.Read();
  EXPECT_TRUE(!rest.ok() || rest->size() < size_t{10} << 20);
}

// SRV 239
WEFT_TEST_F(ServerTest, ClosingTwiceIsClosingOnce) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  server->Close();
  server->Close();
  EXPECT_FALSE(server->IsServing());
  EXPECT_THAT(server->addresses(), IsEmpty());
  EXPECT_EQ(server->port(), 0);
  co_await server->WaitClosed();
  WEFT_EXPECT_THROW(server->StartServing().IgnoreError(), RuntimeError);
  WEFT_EXPECT_THROW(co_await server->ServeForever(), RuntimeError);
}

// SRV 240
WEFT_TEST_F(ServerTest, ServesWhenItIsTold) {
  ServerOptions options;
  options.start_serving = false;
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0, options);
  EXPECT_FALSE(server->IsServing());
  MaybeConnection early = co_await OpenConnection("127.0.0.1", server->port());
  EXPECT_EQ(ErrnoOf(early.status()), ECONNREFUSED);

  EXPECT_TRUE(server->StartServing().ok());
  EXPECT_TRUE(server->StartServing().ok());

  Connection client = co_await Connect(*server);
  std::string answer = co_await Ask(client, "x");
  EXPECT_EQ(answer, "x\n");
}

// SRV 241
WEFT_TEST_F(ServerTest, ServeForeverEndsWhenItIsCancelled) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  Task<void> serving = CreateTask(server->ServeForever());
  Connection client = co_await Connect(*server);
  std::string answer = co_await Ask(client, "x");
  WEFT_EXPECT_THROW(co_await server->ServeForever(), RuntimeError);
  client.writer.Close();
  serving.Cancel();
  co_await NoThrow(serving);
  EXPECT_TRUE(serving.Cancelled());
  EXPECT_FALSE(server->IsServing());
}

WEFT_TEST_F(ServerTest, ServeForeverEndsWhenTheServerIsClosed) {
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
  Task<void> serving = CreateTask(server->ServeForever());
  co_await Rounds(3);
  server->Close();
  co_await NoThrow(serving);
  EXPECT_TRUE(serving.Cancelled());
}

// SRV 242, 243: whatever accept() says, the server goes on.
TEST_F(ServerTest, ErrorsOfAcceptAreSurvived) {
  FakePoller poller;
  VirtualClock clock;
  RunOptions options;
  options.environment.poller = &poller;
  options.environment.clock = &clock;
  auto main = [&poller]() -> Coro<void> {
    std::vector<std::string> reports;
    GetRunningLoop().SetExceptionHandler([&reports](EventLoop&, const ExceptionContext& context) {
      reports.push_back(context.message);
    });
    MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0);
    EXPECT_EQ(poller.started().size(), 1u);
    for (int error : {ECONNABORTED, EINTR, EPROTO, EPERM, ENETUNREACH}) {
      poller.Finish(poller.started().front(), -error);
      co_await Rounds(2);
      EXPECT_EQ(poller.started().size(), 1u) << error;
      EXPECT_THAT(reports, IsEmpty());
    }
    for (int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EOPNOTSUPP}) {
      poller.Finish(poller.started().front(), -error);
      co_await Sleep(absl::Milliseconds(900));
      EXPECT_EQ(poller.started().size(), 0u) << error;
      co_await Sleep(absl::Milliseconds(200));
      EXPECT_EQ(poller.started().size(), 1u) << error;
    }
    EXPECT_THAT(reports,
                ElementsAre("socket.accept() out of system resource",
                            "socket.accept() out of system resource",
                            "socket.accept() out of system resource",
                            "socket.accept() out of system resource", "socket.accept() failed"));
    // Closed while it pauses.
    poller.Finish(poller.started().front(), -EMFILE);
    co_await Rounds(3);
    server->Close();
    co_await Sleep(absl::Seconds(2));
    EXPECT_EQ(poller.started().size(), 0u);
    GetRunningLoop().SetExceptionHandler(nullptr);
  };
  weft::Run(main(), options);
  for (NativeHandle handle : poller.retired()) SystemSocketApi()->Close(handle);
}

// SRV 244
WEFT_TEST_F(ServerTest, SeveralMayShareAPort) {
  ServerOptions options;
  options.reuse_port = true;
  MaybeServer first = co_await StartServer(Echo, "127.0.0.1", 0, options);
  if (!CanSharePorts()) {
    EXPECT_EQ(first.status().code(), absl::StatusCode::kUnimplemented) << first.status();
    co_return;
  }
  MaybeServer second = co_await StartServer(Echo, "127.0.0.1", first->port(), options);
  EXPECT_TRUE(second.ok()) << second.status();
}

// SRV 245
WEFT_TEST_F(ServerTest, WhoWaitsIsAcceptedInOrder) {
  std::vector<std::string> order;
  auto handler = [&order](StreamReader reader, StreamWriter writer) -> Coro<void> {
    order.push_back(writer.PeerAddress().ToString());
    Text text = co_await reader.Read();
  };
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  EXPECT_TRUE(listener.Listen(100).ok());
  SocketAddress address = listener.LocalAddress().value();
  std::vector<std::string> expected;
  std::vector<Socket> clients;
  for (int i = 0; i < 80; ++i) {
    Socket client = Socket::Open(SocketDomain::kInet).value();
    absl::Status connected = co_await client.Connect(address);
    EXPECT_TRUE(connected.ok());
    expected.push_back(client.LocalAddress()->ToString());
    clients.push_back(std::move(client));
  }
  MaybeServer server = co_await StartServer(handler, std::move(listener));
  // Some kernels give one in a round.
  for (int i = 0; i < 1000 && order.size() < expected.size(); ++i) co_await Yield();
  EXPECT_EQ(order, expected);
}

// SRV 246
WEFT_TEST_F(ServerTest, AllInterfacesByBothFamiliesOnOnePort) {
  MaybeServer server = co_await StartServer(Echo, "", 0);
  WEFT_ASSERT_OK(server.status());
  EXPECT_EQ(server->addresses().size(), 2u);
  for (const char* host : {"127.0.0.1", "::1"}) {
    MaybeConnection client = co_await OpenConnection(host, server->port());
    WEFT_ASSERT_OK(client.status());
    std::string answer = co_await Ask(*client, host);
    EXPECT_EQ(answer, std::string(host) + "\n");
  }
  MaybeServer v4 = co_await StartServer(Echo, "127.0.0.1", 0);
  MaybeServer v6 = co_await StartServer(Echo, "::1", v4->port());
  EXPECT_TRUE(v6.ok()) << v6.status();
}

WEFT_TEST_F(ServerTest, SeveralHostsOnOnePort) {
  const std::vector<std::string> hosts = {"127.0.0.1", "::1", "127.0.0.2", "127.0.0.1"};
  MaybeServer server = co_await StartServer(Echo, hosts, 0);
  WEFT_ASSERT_OK(server.status());
  WEFT_ASSERT_EQ(server->addresses().size(), 3u);  // One was named twice.
  for (const SocketAddress& address : server->addresses()) {
    EXPECT_EQ(address.port(), server->port());
    MaybeConnection client = co_await OpenConnection(address);
    WEFT_ASSERT_OK(client.status());
    std::string answer = co_await Ask(*client, address.host());
    EXPECT_EQ(answer, address.host() + "\n");
  }

  // All of them, or none: what was open is closed, and the error names the host.
  const int before = CountDescriptors();
  const std::vector<std::string> others = {"127.0.0.3", "127.0.0.2"};
  MaybeServer second = co_await StartServer(Echo, others, server->port());
  EXPECT_EQ(ErrnoOf(second.status()), EADDRINUSE);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("127.0.0.2"));
  EXPECT_EQ(CountDescriptors(), before);

  Coro<MaybeServer> nowhere = StartServer(Echo, std::vector<std::string>(), 0);
  WEFT_EXPECT_THROW(static_cast<void>(co_await std::move(nowhere)), ValueError);
}

WEFT_TEST_F(ServerTest, KeepsConnectionsAlive) {
  std::vector<absl::Duration> idle;
  auto handler = [&idle](StreamReader, StreamWriter writer) -> Coro<void> {
    if (writer.socket().GetOption(socket_option::kKeepAlive).value()) {
      absl::StatusOr<absl::Duration> each =
          writer.socket().GetOption(socket_option::kKeepAliveIdle);
      // Wine 8 cannot say.
      idle.push_back(ErrnoOf(each.status()) == ENOPROTOOPT ? absl::Minutes(5) : each.value());
    }
    co_return;
  };
  ServerOptions options;
  options.keep_alive = KeepAlive(absl::Minutes(5));
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0, options);
  Connection client = co_await Connect(*server);
  Text all = co_await client.reader.Read();
  EXPECT_EQ(all.value(), "");
  EXPECT_THAT(idle, ElementsAre(absl::Minutes(5)));
}

WEFT_TEST_F(ServerTest, WhatAHandlerThrowsIsReportedAndItsConnectionClosed) {
  std::vector<std::string> reports;
  GetRunningLoop().SetExceptionHandler([&reports](EventLoop&, const ExceptionContext& context) {
    reports.push_back(absl::StrCat(context.message, ": ", DescribeException(context.exception)));
  });
  StreamWriter kept;
  auto handler = [&kept](StreamReader reader, StreamWriter writer) -> Coro<void> {
    Text line = co_await reader.ReadLine();
    kept = std::move(writer);  // Even if it is kept elsewhere.
    throw ValueError(*line);
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  client.writer.Write("oops\n");
  Text all = co_await client.reader.Read();
  EXPECT_EQ(all.value(), "");
  EXPECT_THAT(reports, ElementsAre(HasSubstr("Unhandled exception in client_connected_cb")));
  EXPECT_THAT(reports.at(0), HasSubstr("oops"));
}

// One that is no coroutine itself, and throws before there is one.
WEFT_TEST_F(ServerTest, WhatAHandlerThrowsAtOnceIsReportedAndItsConnectionClosed) {
  std::vector<std::string> reports;
  GetRunningLoop().SetExceptionHandler([&reports](EventLoop&, const ExceptionContext& context) {
    reports.push_back(absl::StrCat(context.message, ": ", DescribeException(context.exception)));
  });
  auto handler = [](StreamReader, StreamWriter) -> Coro<void> { throw ValueError("at once"); };
  auto function = [&handler, calls = 0](StreamReader reader, StreamWriter writer) mutable {
    if (++calls == 1) throw ValueError("before");
    return handler(std::move(reader), std::move(writer));
  };
  MaybeServer server = co_await StartServer(std::move(function), "127.0.0.1", 0);
  for (int i = 0; i < 2; ++i) {
    Connection client = co_await Connect(*server);
    Text all = co_await client.reader.Read();
    EXPECT_EQ(all.value(), "");
  }
  EXPECT_THAT(reports, ElementsAre(AllOf(HasSubstr("client_connected_cb"), HasSubstr("before")),
                                   AllOf(HasSubstr("client_connected_cb"), HasSubstr("at once"))));
}

// Also if its client was there first.
WEFT_TEST_F(ServerTest, AHandlerIsCalledWhenTheServerIsThere) {
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  WEFT_ASSERT_OK(listener.Bind(SocketAddress::Ipv4Loopback(0)));
  WEFT_ASSERT_OK(listener.Listen());
  MaybeConnection client = co_await OpenConnection(listener.LocalAddress().value());
  WEFT_ASSERT_OK(client.status());
  MaybeServer server = absl::UnavailableError("not yet");
  bool was_there = false;
  auto function = [&](StreamReader reader, StreamWriter writer) {
    was_there = server.ok();
    return Echo(std::move(reader), std::move(writer));
  };
  server = co_await StartServer(std::move(function), std::move(listener));
  std::string answer = co_await Ask(*client, "x");
  EXPECT_EQ(answer, "x\n");
  EXPECT_TRUE(was_there);
}

// As with asyncio, the task is the handler's own.
WEFT_TEST_F(ServerTest, TheTaskIsTheHandlers) {
  std::string repr;
  auto handler = [&repr](StreamReader, StreamWriter writer) -> Coro<void> {
    repr = CurrentTask().ToString();
    writer.Close();
    co_return;
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  Text all = co_await client.reader.Read();
  EXPECT_THAT(repr, HasSubstr("TheTaskIsTheHandlers"));
}

WEFT_TEST_F(ServerTest, AHandlerThatIsCancelledIsNoNews) {
  TaskRef task;
  auto handler = [&task](StreamReader reader, StreamWriter) -> Coro<void> {
    task = CurrentTask();
    absl::StatusOr<std::string> all = co_await reader.Read();
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  co_await Rounds(10);
  task.Cancel();
  Text all = co_await client.reader.Read();
  EXPECT_EQ(all.value(), "");
  EXPECT_TRUE(task.Cancelled());
}

// The closure lives as long as a connection, though the server does not.
WEFT_TEST_F(ServerTest, TheHandlerOutlivesTheServer) {
  Connection client;
  {
    auto greeting = std::make_unique<std::string>("hello ");
    auto handler = [greeting = std::move(greeting)](StreamReader reader,
                                                    StreamWriter writer) -> Coro<void> {
      while (true) {
        Text line = co_await reader.ReadLine();
        if (!line.ok() || line->empty()) break;
        writer.WriteLines(std::vector<std::string>(1, *greeting + *line));
      }
    };
    MaybeServer server = co_await StartServer(Take(handler), "127.0.0.1", 0);
    client = co_await Connect(*server);
    std::string answer = co_await Ask(client, "you");
    EXPECT_EQ(answer, "hello you\n");
  }
  std::string answer = co_await Ask(client, "again");
  EXPECT_EQ(answer, "hello again\n");
}

WEFT_TEST_F(ServerTest, AtMostSoManyConnections) {
  ServerOptions options;
  options.max_connections = 2;
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0, options);
  Connection a = co_await Connect(*server);
  Connection b = co_await Connect(*server);
  Connection c = co_await Connect(*server);
  std::string answer = co_await Ask(a, "a");
  answer = co_await Ask(b, "b");
  c.writer.Write("c\n");
  Outcome<Text> none = co_await NoThrow(WithTimeout(absl::Seconds(1), c.reader.ReadLine()));
  EXPECT_TRUE(none.has_exception());
  EXPECT_EQ(server->connection_count(), 2u);
  a.writer.Close();
  Text text = co_await c.reader.ReadLine();
  EXPECT_EQ(text.value(), "c\n");
}

// Of all listeners together; whom the second has accepted by then is served later.
TEST_F(ServerTest, AtMostSoManyConnectionsByAllListeners) {
  auto main = []() -> Coro<void> {
    constexpr size_t kRoom = 2;
    Server* running = nullptr;
    size_t most = 0, served = 0;
    auto handler = [&](StreamReader reader, StreamWriter writer) -> Coro<void> {
      most = std::max(most, running->connection_count());
      ++served;
      co_await Echo(std::move(reader), std::move(writer));
    };
    ServerOptions options;
    options.max_connections = kRoom;
    Addresses addresses;
    for (uint8_t i = 1; i <= 3; ++i) {
      addresses.push_back(SocketAddress::Ipv4({127, 0, 0, i}, 0));
    }
    MaybeServer server = co_await StartServer(Take(handler), addresses, options);
    WEFT_ASSERT_OK(server.status());
    running = &*server;
    auto client = [](SocketAddress address) -> Coro<std::string> {
      MaybeConnection connection = co_await OpenConnection(address);
      if (!connection.ok()) co_return std::string(connection.status().message());
      std::string answer = co_await Ask(*connection, "x");
      co_return answer;
    };
    std::vector<Task<std::string>> clients;
    for (int i = 0; i < 30; ++i) {
      clients.push_back(CreateTask(client, server->addresses()[static_cast<size_t>(i % 3)]));
    }
    for (Task<std::string>& task : clients) {
      std::string answer = co_await task;
      EXPECT_EQ(answer, "x\n");
    }
    EXPECT_EQ(served, 30u);
    EXPECT_LE(most, kRoom);

    // What waits for room when the server is closed is closed.
    std::vector<Connection> open;
    for (int i = 0; i < 5; ++i) {
      const SocketAddress address = server->addresses()[static_cast<size_t>(i % 3)];
      MaybeConnection one = co_await OpenConnection(address);
      WEFT_ASSERT_OK(one.status());
      open.push_back(*std::move(one));
    }
    co_await Rounds(1000);
    EXPECT_EQ(server->connection_count(), kRoom);
    server->Close();
    size_t answered = 0;
    for (Connection& one : open) {
      one.writer.Write("y\n");
      Text text = co_await one.reader.ReadLine();
      if (text.ok() && *text == "y\n") ++answered;
    }
    EXPECT_EQ(answered, kRoom);
    open.clear();
    co_await server->WaitClosed();
  };
  for (const PollerInfo& info : AvailablePollers()) {
    if (!info.status.ok()) continue;
    SCOPED_TRACE(info.name);
    RunOptions options;
    options.poller = info.name;
    weft::Run(main(), options);
  }
}

// Nothing is left if the loop goes while somebody waits for room.
TEST_F(ServerTest, LoopClosesWhileAConnectionWaitsForRoom) {
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
  auto main = []() -> Coro<void> {
    ServerOptions options;
    options.max_connections = 1;
    Addresses addresses = {SocketAddress::Ipv4Loopback(0), SocketAddress::Ipv4({127, 0, 0, 2}, 0)};
    MaybeServer server = co_await StartServer(Echo, addresses, options);
    WEFT_ASSERT_OK(server.status());
    MaybeConnection a = co_await OpenConnection(server->addresses()[0]);
    MaybeConnection b = co_await OpenConnection(server->addresses()[1]);
    Event never;
    co_await never.Wait();
  };
  Task<void> running = loop->CreateTask(main());
  for (int i = 0; i < 500; ++i) loop->RunOnce(absl::ZeroDuration());
  loop->Close();
}

// As in CPython: it is reported, and the run ends with it.
TEST_F(ServerTest, AHandlersKeyboardInterruptEndsTheRun) {
  std::vector<std::string> reports;
  bool at_once = false;  // By the function that is to make the coroutine.
  bool goes_on = false;
  auto main = [&]() -> Coro<void> {
    GetRunningLoop().SetExceptionHandler([&reports](EventLoop&, const ExceptionContext& context) {
      reports.push_back(context.message);
    });
    auto handler = [](StreamReader reader, StreamWriter) -> Coro<void> {
      Text line = co_await reader.ReadLine();
      throw KeyboardInterrupt();
    };
    auto function = [&](StreamReader reader, StreamWriter writer) {
      if (at_once) throw KeyboardInterrupt();
      return handler(std::move(reader), std::move(writer));
    };
    MaybeServer server = co_await StartServer(function, "127.0.0.1", 0);
    Connection client = co_await Connect(*server);
    std::string none = co_await Ask(client, "x");
    co_await Sleep(absl::Seconds(1));
    goes_on = true;
  };

  for (const bool now : {false, true}) {
    at_once = now;
    reports.clear();

    EXPECT_THROW(weft::Run(main()), KeyboardInterrupt);

    EXPECT_FALSE(goes_on);
    EXPECT_THAT(reports, ElementsAre("Unhandled exception in client_connected_cb"));
  }
}

WEFT_TEST_F(ServerTest, AThousandConnectionsAtOnce) {
  ServerOptions options;
  options.backlog = 1000;
  MaybeServer server = co_await StartServer(Echo, "127.0.0.1", 0, options);
  auto client = [](SocketAddress address, int number) -> Coro<int> {
    MaybeConnection connection = co_await OpenConnection(address);
    if (!connection.ok()) co_return 0;
    int answers = 0;
    for (int i = 0; i < 5; ++i) {
      const std::string line = absl::StrCat("client ", number, " line ", i);
      std::string answer = co_await Ask(*connection, line);
      if (answer == line + "\n") ++answers;
    }
    co_return answers;
  };
  std::vector<Task<int>> clients;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(CreateTask(client, server->addresses().front(), i));
  }
  int answers = 0;
  for (Task<int>& task : clients) answers += co_await task;
  EXPECT_EQ(answers, 5000);
  server->Close();
  co_await server->WaitClosed();
  EXPECT_EQ(server->connection_count(), 0u);
}

WEFT_TEST_F(ServerTest, AcceptedConnectionsHaveNoDelay) {
  int no_delay = -1;
  auto handler = [&no_delay](StreamReader, StreamWriter writer) -> Coro<void> {
    no_delay = writer.socket().GetOption(SocketOption::kNoDelay).value();
    co_return;
  };
  MaybeServer server = co_await StartServer(handler, "127.0.0.1", 0);
  Connection client = co_await Connect(*server);
  Text all = co_await client.reader.Read();
  EXPECT_EQ(no_delay, 1);
}

TEST_F(ServerTest, LoopClosesWhileItServes) {
  std::unique_ptr<Server> kept;
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
  auto serve = [](std::unique_ptr<Server>* keep) -> Coro<void> {
    MaybeServer inside = co_await StartServer(Echo, "127.0.0.1", 0);
    MaybeServer outside = co_await StartServer(Echo, "127.0.0.1", 0);
    *keep = std::make_unique<Server>(*std::move(outside));
    Connection client = co_await Connect(*inside);
    Connection other = co_await Connect(**keep);
    std::string answer = co_await Ask(client, "x");
    co_await inside->ServeForever();
  };
  Task<void> task = loop->CreateTask(serve(&kept));
  for (int i = 0; i < 50; ++i) loop->RunOnce(absl::ZeroDuration());
  loop->Close();
  loop.reset();
  kept.reset();
}

// -- Unix sockets.

class UnixServerTest : public UnixNetTest {};

bool Exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

// UNIX 267, 269
WEFT_TEST_F(UnixServerTest, UnixSocketsWorkAsTcpDoes) {
  ShortDirectory directory;
  const std::string path = directory.File("s");
  MaybeServer server = co_await StartUnixServer(Echo, path);
  WEFT_ASSERT_OK(server.status());
  EXPECT_EQ(server->addresses().front().ToString(), "unix:" + path);
  MaybeConnection client = co_await OpenUnixConnection(path);
  WEFT_ASSERT_OK(client.status());
  std::string answer = co_await Ask(*client, "x");
  EXPECT_EQ(answer, "x\n");
  EXPECT_TRUE(Exists(path));
  server->Close();
  EXPECT_FALSE(Exists(path));

  MaybeConnection missing = co_await OpenUnixConnection(path);
  EXPECT_EQ(ErrnoOf(missing.status()), ENOENT);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("unix:" + path));
}

// UNIX 268, 269
WEFT_TEST_F(UnixServerTest, AStaleSocketFileIsReplacedAndNothingElse) {
  ShortDirectory directory;
  const std::string path = directory.File("s");
  Socket stale = Socket::Open(SocketDomain::kUnix).value();
  EXPECT_TRUE(stale.Bind(SocketAddress::FromUnixPath(path).value()).ok());
  stale.Close();
  EXPECT_TRUE(Exists(path));
  MaybeServer first = co_await StartUnixServer(Echo, path);
  EXPECT_TRUE(first.ok()) << first.status();
  MaybeServer second = co_await StartUnixServer(Echo, path);
  EXPECT_TRUE(second.ok()) << second.status();
  first->Close();
  EXPECT_TRUE(Exists(path));  // It is the second's.
  second->Close();
  EXPECT_FALSE(Exists(path));

  std::ofstream(path) << "a plain file";
  MaybeServer third = co_await StartUnixServer(Echo, path);
  EXPECT_EQ(ErrnoOf(third.status()), EADDRINUSE);
  EXPECT_TRUE(Exists(path));
  ::unlink(path.c_str());
}

// UNIX 270
WEFT_TEST_F(UnixServerTest, AUnixPathMayBeTooLong) {
  const std::string path = "/tmp/" + std::string(200, 'x');
  MaybeServer server = co_await StartUnixServer(Echo, path);
  EXPECT_THAT(std::string(server.status().message()), HasSubstr("AF_UNIX path too long"));
  MaybeConnection client = co_await OpenUnixConnection(path);
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("AF_UNIX path too long"));
}

// UNIX 271
WEFT_TEST_F(UnixServerTest, AbstractNamesNeedNoFile) {
  const std::string name = absl::StrCat(std::string(1, '\0'), "weft-server-test-", ::getpid());
  MaybeServer server = co_await StartUnixServer(Echo, name);
  WEFT_ASSERT_OK(server.status());
  MaybeConnection client = co_await OpenUnixConnection(name);
  WEFT_ASSERT_OK(client.status());
  std::string answer = co_await Ask(*client, "x");
  EXPECT_EQ(answer, "x\n");
}

}  // namespace
}  // namespace weft
