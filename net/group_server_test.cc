// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// One server on each loop of a group, at one address.

#include <atomic>
#include <cerrno>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/loop_group.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"
#include "weft/net/address_reservation.h"
#include "weft/net/connect.h"
#include "weft/net/errno_status.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/test_net.h"
#include "weft/poller/fault_injection.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class GroupServerTest : public NetTest {};
class AddressReservationTest : public NetTest {};

constexpr absl::Duration kPatience = absl::Seconds(60);

LoopGroupOptions Loops(int loops) {
  LoopGroupOptions options;
  options.loops = loops;
  return options;
}

ServerOptions Sharing() {
  ServerOptions options;
  options.reuse_port = true;
  return options;
}

using MaybeReserved = absl::StatusOr<AddressReservation>;

// Says which loop it is, and then sends back each line; "slow" only after a while.
struct NumberedEcho {
  explicit NumberedEcho(int number) : index(number) {}
  Coro<> operator()(StreamReader reader, StreamWriter writer) const {
    writer.Write(absl::StrCat(index, "\n"));
    while (true) {
      absl::StatusOr<std::string> line = co_await reader.ReadLine();
      if (!line.ok() || line->empty()) co_return;
      if (*line == "slow\n") co_await Sleep(absl::Milliseconds(50));
      writer.Write(*line);
      if (*line == "slow\n") co_return;
    }
  }
  int index;
};

// The main of each loop.
class Serve {
 public:
  Serve(const Addresses* addresses, std::latch* started, ShutdownOptions ending)
      : addresses_(addresses), started_(started), ending_(std::move(ending)) {}

  Coro<> operator()(int index) const {
    absl::StatusOr<Server> server =
        co_await StartServer(NumberedEcho(index), *addresses_, Sharing());
    EXPECT_TRUE(server.ok()) << server.status();
    started_->count_down();
    co_await ServeUntilCancelled(*server, ending_);
  }

 private:
  const Addresses* addresses_;
  std::latch* started_;
  ShutdownOptions ending_;
};

// A client, and which loop has it.
struct Client {
  Connection connection;
  int loop = -1;
};

Coro<Client> Connect(const Addresses& addresses) {
  Client client;
  absl::StatusOr<Connection> connection =
      co_await OpenConnection("127.0.0.1", addresses.front().port());
  EXPECT_TRUE(connection.ok()) << connection.status();
  client.connection = *std::move(connection);
  absl::StatusOr<std::string> line =
      co_await WithTimeout(kPatience, client.connection.reader.ReadLine());
  EXPECT_TRUE(line.ok()) << line.status();
  client.loop = std::stoi(*line);
  co_return client;
}

// One client of each loop, and as many more as it took.
Coro<std::vector<Client>> ConnectToAll(const Addresses& addresses, int loops) {
  std::vector<Client> clients;
  std::vector<bool> is_reached(static_cast<size_t>(loops), false);
  for (int left = loops; left > 0;) {
    Client client = co_await Connect(addresses);
    if (!is_reached[static_cast<size_t>(client.loop)]) --left;
    is_reached[static_cast<size_t>(client.loop)] = true;
    clients.push_back(std::move(client));
  }
  co_return clients;
}

Coro<std::string> Ask(Client& client, std::string line) {
  client.connection.writer.Write(line);
  absl::StatusOr<std::string> answer =
      co_await WithTimeout(kPatience, client.connection.reader.ReadLine());
  co_return answer.ok() ? *std::move(answer) : std::string(answer.status().message());
}

WEFT_TEST_F_IN_REAL_TIME(GroupServerTest, ConnectionsReachEveryLoop) {
  constexpr int kLoops = 3;
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
  WEFT_ASSERT_OK(reserved);
  std::latch started(kLoops);
  LoopGroup group(Loops(kLoops));
  group.RunOnEach(Serve(&reserved->addresses(), &started, ShutdownOptions()));
  co_await ToThread([&started] { started.wait(); });

  std::vector<Client> clients = co_await ConnectToAll(reserved->addresses(), kLoops);
  for (Client& client : clients) WEFT_EXPECT_EQ(co_await Ask(client, "hello\n"), "hello\n");

  clients.clear();
  group.Stop();
  auto done = co_await NoThrow(group.WaitDone());
  EXPECT_TRUE(done.has_value());
}

WEFT_TEST_F_IN_REAL_TIME(GroupServerTest, AGroupOfOneServesAsWell) {
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
  std::latch started(1);
  LoopGroup group(Loops(1));
  group.RunOnEach(Serve(&reserved->addresses(), &started, ShutdownOptions()));
  co_await ToThread([&started] { started.wait(); });

  Client client = co_await Connect(reserved->addresses());

  WEFT_EXPECT_EQ(co_await Ask(client, "hello\n"), "hello\n");
}

WEFT_TEST_F_IN_REAL_TIME(GroupServerTest, WhoIsBusyMayFinishWhenTheGroupStops) {
  constexpr int kLoops = 2;
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
  std::latch started(kLoops);
  std::atomic<size_t> open{0}, cancelled{0};
  std::latch stopping(kLoops);
  ShutdownOptions ending;
  ending.grace = absl::Hours(1);
  ending.on_stopping = [&stopping] { stopping.count_down(); };
  ending.on_stopped = [&](const ShutdownReport& report) {
    open += report.open;
    cancelled += report.cancelled;
  };
  LoopGroup group(Loops(kLoops));
  group.RunOnEach(Serve(&reserved->addresses(), &started, ending));
  co_await ToThread([&started] { started.wait(); });
  std::vector<Client> clients = co_await ConnectToAll(reserved->addresses(), kLoops);
  for (Client& client : clients) client.connection.writer.Write("slow\n");

  group.Stop();
  co_await ToThread([&stopping] { stopping.wait(); });
  for (Client& client : clients) WEFT_EXPECT_EQ(co_await Ask(client, ""), "slow\n");
  co_await group.WaitDone();

  EXPECT_EQ(open, clients.size());
  EXPECT_EQ(cancelled, 0u);
}

WEFT_TEST_F_IN_REAL_TIME(GroupServerTest, AbortingEndsThoseThatAreBusy) {
  constexpr int kLoops = 2;
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
  std::latch started(kLoops);
  ShutdownOptions ending;
  ending.grace = absl::Hours(1);
  LoopGroup group(Loops(kLoops));
  group.RunOnEach(Serve(&reserved->addresses(), &started, ending));
  co_await ToThread([&started] { started.wait(); });
  std::vector<Client> clients = co_await ConnectToAll(reserved->addresses(), kLoops);

  group.Stop();
  group.Abort();
  co_await group.WaitDone();

  for (Client& client : clients) WEFT_EXPECT_EQ(co_await Ask(client, ""), "");
}

// -- Reservations.

WEFT_TEST_F(AddressReservationTest, APortThatWasPickedIsTheSameForAll) {
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
  WEFT_ASSERT_OK(reserved);
  EXPECT_EQ(reserved->addresses().size(), 1u);
  const uint16_t port = reserved->addresses().front().port();
  EXPECT_NE(port, 0);

  std::vector<Server> servers;
  for (int i = 0; i < 3; ++i) {
    absl::StatusOr<Server> server =
        co_await StartServer(NumberedEcho(i), reserved->addresses(), Sharing());
    WEFT_ASSERT_OK(server);
    EXPECT_EQ(server->port(), port);
    servers.push_back(*std::move(server));
  }
}

WEFT_TEST_F(AddressReservationTest, NobodyIsListenedToByAReservationAlone) {
  MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);

  absl::StatusOr<Connection> connection =
      co_await OpenConnection("127.0.0.1", reserved->addresses().front().port());

  EXPECT_EQ(ErrnoOf(connection.status()), ECONNREFUSED) << connection.status();
}

WEFT_TEST_F(AddressReservationTest, WhereSomebodyListensIsRefusedThoughHeSharesThePort) {
  absl::StatusOr<Server> server = co_await StartServer(NumberedEcho(0), "127.0.0.1", 0, Sharing());

  MaybeReserved refused = co_await ReserveAddresses("127.0.0.1", server->port());
  MaybeReserved shared = co_await ReserveAddresses("127.0.0.1", server->port(), Sharing());

  EXPECT_EQ(ErrnoOf(refused.status()), EADDRINUSE);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat("bind to 127.0.0.1:", server->port())));
  WEFT_EXPECT_OK(shared);
}

WEFT_TEST_F(AddressReservationTest, AHostThatDoesNotExistIsAnError) {
  MaybeReserved reserved = co_await ReserveAddresses("300.1.2.3", 80);

  EXPECT_FALSE(reserved.ok());
  EXPECT_THAT(std::string(reserved.status().message()), HasSubstr("300.1.2.3"));
}

TEST_F(AddressReservationTest, ASystemThatCannotSharePortsSaysSo) {
  int unimplemented = 0;
  bool is_reached = true;
  for (uint64_t place = 0; is_reached; ++place) {
    Faults faults = Faults::At(place, /*which=*/1);  // ENOPROTOOPT, of an option.
    FaultySocketApi sockets(&faults);
    RunOptions options;
    options.environment.socket_api = &sockets;
    const auto reserve = []() -> Coro<absl::Status> {
      MaybeReserved reserved = co_await ReserveAddresses("127.0.0.1", 0);
      co_return reserved.status();
    };
    const absl::Status status = weft::Run(reserve(), options);
    if (absl::IsUnimplemented(status)) {
      ++unimplemented;
      EXPECT_THAT(std::string(status.message()), HasSubstr("cannot share a port"));
    }
    is_reached = faults.was_reached();
  }
  EXPECT_EQ(unimplemented, 1);
}

}  // namespace
}  // namespace weft
