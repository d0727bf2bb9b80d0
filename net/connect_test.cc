// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What OpenConnection() promises. The numbers are those of the conformance list.

#include "weft/net/connect.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class ConnectTest : public NetTest {};

using MaybeConnection = absl::StatusOr<Connection>;

// A socket that listens, or only keeps a port to itself.
Socket Listener(bool listening = true) {
  Socket socket = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(socket.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  if (listening) {
    EXPECT_TRUE(socket.Listen().ok());
  }
  return socket;
}

// Gives the addresses it was made with, after so many rounds.
class TestResolver final : public Resolver {
 public:
  explicit TestResolver(Addresses addresses, int rounds = 0)
      : addresses_(std::move(addresses)), rounds_(rounds) {}

  Coro<absl::StatusOr<Addresses>> Resolve(std::string host, uint16_t port,
                                          ResolveOptions) override {
    asked.push_back(absl::StrCat(host, ":", port));
    co_await Rounds(rounds_);
    if (addresses_.empty()) co_return absl::NotFoundError("no such host");
    co_return addresses_;
  }

  std::vector<std::string> asked;

 private:
  Addresses addresses_;
  int rounds_;
};

// CONN 228
WEFT_TEST_F(ConnectTest, WhereNobodyListensItIsRefused) {
  Socket closed = Listener(/*listening=*/false);
  SocketAddress address = closed.LocalAddress().value();
  MaybeConnection connection = co_await OpenConnection("127.0.0.1", address.port());
  EXPECT_EQ(connection.status().message(),
            "connect to " + address.ToString() + ": Connection refused [ECONNREFUSED]");
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kUnavailable);
}

// CONN 229
WEFT_TEST_F(ConnectTest, TriesOneAddressAfterTheOther) {
  Socket closed = Listener(/*listening=*/false);
  Socket open = Listener();
  Addresses addresses;
  addresses.push_back(closed.LocalAddress().value());
  addresses.push_back(open.LocalAddress().value());
  TestResolver resolver(addresses);
  ConnectOptions options;
  options.resolver = &resolver;

  MaybeConnection connection = co_await OpenConnection("example", 80, options);

  WEFT_ASSERT_OK(connection.status());
  EXPECT_EQ(connection->writer.PeerAddress(), addresses[1]);
  EXPECT_THAT(resolver.asked, ::testing::ElementsAre("example:80"));

  open.Close();
  connection = co_await OpenConnection("example", 80, options);
  for (const SocketAddress& address : addresses) {
    EXPECT_THAT(std::string(connection.status().message()), HasSubstr(address.ToString()));
  }
  EXPECT_THAT(std::string(connection.status().message()), HasSubstr("all of 2 addresses failed"));
  EXPECT_THAT(std::string(connection.status().message()), HasSubstr("example"));
}

// CONN 230
WEFT_TEST_F(ConnectTest, NoAddressIsRefused) {
  std::string error;
  try {
    Coro<MaybeConnection> open = OpenConnection(SocketAddress());
    MaybeConnection connection = co_await std::move(open);
  } catch (const ValueError& thrown) {
    error = thrown.what();
  }
  EXPECT_EQ(error, "address: there is none");
}

WEFT_TEST_F(ConnectTest, ComesFromALocalAddress) {
  Socket listener = Listener();
  SocketAddress address = listener.LocalAddress().value();
  Socket reserved = Listener(/*listening=*/false);
  ConnectOptions options;
  options.local_address = reserved.LocalAddress().value();
  reserved.Close();

  MaybeConnection connection = co_await OpenConnection(address, options);
  WEFT_ASSERT_OK(connection.status());
  absl::StatusOr<Socket> accepted = co_await listener.Accept();
  EXPECT_EQ(accepted->PeerAddress().value(), options.local_address);

  Socket taken = Listener();
  options.local_address = taken.LocalAddress().value();
  connection = co_await OpenConnection(address, options);
  EXPECT_EQ(ErrnoOf(connection.status()), EADDRINUSE);

  options.local_address = SocketAddress::Ipv6Loopback(0);
  connection = co_await OpenConnection(address, options);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kInvalidArgument);
}

// A listener whose backlog is full: connecting there takes for ever.
class FullListener {
 public:
  FullListener() : socket_(Socket::Open(SocketDomain::kInet).value()) {
    EXPECT_TRUE(socket_.Bind(SocketAddress::Ipv4Loopback(0)).ok());
    EXPECT_TRUE(socket_.Listen(0).ok());
  }
  Coro<void> Fill() {
    for (int i = 0; i < 10; ++i) {
      Socket client = Socket::Open(SocketDomain::kInet).value();
      Outcome<absl::Status> outcome =
          co_await NoThrow(WithTimeout(absl::Milliseconds(1), client.Connect(address())));
      clients_.push_back(std::move(client));
      if (outcome.has_exception()) co_return;
    }
    ADD_FAILURE() << "the backlog does not fill";
  }
  SocketAddress address() const { return socket_.LocalAddress().value(); }

 private:
  Socket socket_;
  std::vector<Socket> clients_;
};

// CONN 231
WEFT_TEST_F(ConnectTest, CancellingItClosesTheSocket) {
  FullListener listener;
  co_await listener.Fill();
  const int before = CountDescriptors();
  auto connect = [](SocketAddress address) -> Coro<void> {
    MaybeConnection connection = co_await OpenConnection(address);
    ADD_FAILURE() << "not reached: " << connection.status();
  };
  for (int rounds = 0; rounds < 6; ++rounds) {
    Task<void> connecting = CreateTask(connect, listener.address());
    co_await Rounds(rounds);
    connecting.Cancel();
    co_await NoThrow(connecting);
    EXPECT_TRUE(connecting.Cancelled());
    EXPECT_EQ(CountDescriptors(), before);
  }
}

// Wherever it is cancelled, also when the answer has come.
WEFT_TEST_F(ConnectTest, CancellingItAtAnyMomentLeaksNothing) {
  Socket listener = Listener();
  SocketAddress address = listener.LocalAddress().value();
  Addresses addresses(1, address);
  TestResolver resolver(addresses, /*rounds=*/2);
  ConnectOptions options;
  options.resolver = &resolver;
  // The poller's own descriptors are opened when first needed.
  MaybeConnection first = co_await OpenConnection(address);
  first->writer.Close();
  co_await Rounds(3);
  const int before = CountDescriptors();
  auto connect = [](ConnectOptions with) -> Coro<void> {
    MaybeConnection connection = co_await OpenConnection("example", 80, with);
    co_await Yield();
  };
  for (int rounds = 0; rounds < 12; ++rounds) {
    Task<void> connecting = CreateTask(connect, options);
    co_await Rounds(rounds);
    connecting.Cancel();
    co_await NoThrow(connecting);
    co_await Rounds(3);
    EXPECT_EQ(CountDescriptors(), before);
  }
}

// CONN 231
WEFT_TEST_F(ConnectTest, TimesOut) {
  FullListener listener;
  co_await listener.Fill();
  WEFT_EXPECT_THROW(
      static_cast<void>(co_await WithTimeout(absl::Seconds(1), OpenConnection(listener.address()))),
      TimeoutError);

  ConnectOptions options;
  options.timeout = absl::Seconds(1);
  MaybeConnection connection = co_await OpenConnection(listener.address(), options);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(connection.status().message()), HasSubstr(listener.address().ToString()));
}

// CONN 229: one address does not answer, and another attempt begins meanwhile.
WEFT_TEST_F(ConnectTest, AnAddressThatDoesNotAnswerHoldsNobodyUp) {
  FullListener silent;
  co_await silent.Fill();
  Socket open = Listener();
  Addresses addresses = {silent.address(), open.LocalAddress().value()};
  TestResolver resolver(addresses);
  ConnectOptions options;
  options.resolver = &resolver;
  const int before = CountDescriptors();
  const TimePoint start = GetRunningLoop().Time();

  MaybeConnection connection = co_await OpenConnection("example", 80, options);

  WEFT_ASSERT_OK(connection.status());
  EXPECT_EQ(connection->writer.PeerAddress(), addresses[1]);
  EXPECT_GE(GetRunningLoop().Time() - start, absl::Milliseconds(250));
  EXPECT_LT(GetRunningLoop().Time() - start, absl::Milliseconds(300));
  EXPECT_EQ(CountDescriptors(), before + 1);  // The other attempt has been closed.

  options.happy_eyeballs_delay = absl::InfiniteDuration();
  options.timeout = absl::Seconds(5);
  connection = co_await OpenConnection("example", 80, options);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kDeadlineExceeded);
}

// What has failed by then is told as well.
WEFT_TEST_F(ConnectTest, ATimeoutTellsOfTheAttempts) {
  FullListener silent;
  co_await silent.Fill();
  Socket closed = Listener(/*listening=*/false);
  Addresses addresses = {closed.LocalAddress().value(), silent.address()};
  TestResolver resolver(addresses);
  ConnectOptions options;
  options.resolver = &resolver;
  options.timeout = absl::Seconds(1);
  MaybeConnection connection = co_await OpenConnection("example", 80, options);
  EXPECT_EQ(connection.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(connection.status().message()),
              HasSubstr("timed out after 1s; before that: connect to " + addresses[0].ToString() +
                        ": Connection refused"));
}

// CONN 231: in the midst of the race.
WEFT_TEST_F(ConnectTest, CancellingARaceClosesAllSockets) {
  FullListener one, two;
  co_await one.Fill();
  co_await two.Fill();
  Addresses addresses = {one.address(), two.address()};
  TestResolver resolver(addresses);
  ConnectOptions options;
  options.resolver = &resolver;
  const int before = CountDescriptors();
  auto connect = [](ConnectOptions with) -> Coro<void> {
    MaybeConnection connection = co_await OpenConnection("example", 80, with);
  };
  for (const absl::Duration after : {absl::Milliseconds(100), absl::Milliseconds(300)}) {
    Task<void> connecting = CreateTask(connect, options);
    co_await Sleep(after);
    EXPECT_EQ(CountDescriptors(), before + (after < absl::Milliseconds(250) ? 1 : 2));
    connecting.Cancel();
    co_await NoThrow(connecting);
    EXPECT_TRUE(connecting.Cancelled());
    EXPECT_EQ(CountDescriptors(), before);
  }
}

// As by a program that ends all tasks but some of its own.
WEFT_TEST_F(ConnectTest, AttemptsThatSomebodyElseCancelsHaveFailed) {
  FullListener silent, other;
  co_await silent.Fill();
  co_await other.Fill();
  Socket closed = Listener(/*listening=*/false);
  const std::string refused = closed.LocalAddress()->ToString();
  struct Case {
    Addresses addresses;
    absl::StatusCode code;
    std::string message;
  };
  const std::string first = silent.address().ToString();
  const std::vector<Case> cases = {
      {{silent.address(), other.address()},
       absl::StatusCode::kCancelled,
       "connect to \"example\" port 80: all of 2 addresses failed: connect to " + first +
           ": the attempt was cancelled; connect to " + other.address().ToString() +
           ": the attempt was cancelled"},
      {{silent.address(), closed.LocalAddress().value()},
       absl::StatusCode::kUnavailable,
       "connect to \"example\" port 80: all of 2 addresses failed: connect to " + first +
           ": the attempt was cancelled; connect to " + refused +
           ": Connection refused [ECONNREFUSED]"}};
  for (const Case& one : cases) {
    TestResolver resolver(one.addresses);
    ConnectOptions options;
    options.resolver = &resolver;
    const auto connect = [](ConnectOptions with) -> Coro<absl::Status> {
      MaybeConnection connection = co_await OpenConnection("example", 80, with);
      co_return connection.status();
    };
    Task<absl::Status> connecting = CreateTask(connect, options);
    co_await Sleep(absl::Milliseconds(300));
    for (TaskRef& task : AllTasks()) {
      if (!(task == CurrentTask()) && !(task == TaskRef(connecting))) task.Cancel();
    }
    absl::Status status = co_await std::move(connecting);
    EXPECT_EQ(status.code(), one.code);
    EXPECT_EQ(status.message(), one.message);
  }
}

WEFT_TEST_F(ConnectTest, KeepsTheConnectionAlive) {
  Socket listener = Listener();
  ConnectOptions options;
  options.keep_alive = KeepAlive(absl::Minutes(1), absl::Milliseconds(9500), 4);
  MaybeConnection connection = co_await OpenConnection(listener.LocalAddress().value(), options);
  WEFT_ASSERT_OK(connection.status());
  const Socket& socket = connection->writer.socket();
  EXPECT_EQ(socket.GetOption(socket_option::kKeepAlive).value(), true);
  absl::StatusOr<absl::Duration> idle = socket.GetOption(socket_option::kKeepAliveIdle);
  if (ErrnoOf(idle.status()) == ENOPROTOOPT) co_return;  // Wine 8 cannot say.
  EXPECT_EQ(idle.value(), absl::Minutes(1));
  EXPECT_EQ(socket.GetOption(socket_option::kKeepAliveInterval).value(), absl::Seconds(10));
  EXPECT_EQ(socket.GetOption(socket_option::kKeepAliveCount).value(), 4);
}

// One that must not be asked.
class NoResolver final : public Resolver {
 public:
  Coro<absl::StatusOr<Addresses>> Resolve(std::string, uint16_t, ResolveOptions) override {
    throw RuntimeError("the resolver was asked");
  }
};

// CONN 232.
TEST_F(ConnectTest, NumericAddressesAskNoResolver) {
  NoResolver resolver;
  RunOptions options;
  options.environment.resolver = &resolver;
  auto body = []() -> Coro<void> {
    Socket listener = Listener();
    MaybeConnection connection =
        co_await OpenConnection("127.0.0.1", listener.LocalAddress()->port());
    EXPECT_TRUE(connection.ok()) << connection.status();
    WEFT_EXPECT_THROW(static_cast<void>(co_await OpenConnection("localhost", 1)), RuntimeError);
  };
  weft::Run(body(), options);
}

// CONN 233
WEFT_TEST_F(ConnectTest, HasNoDelayAndAddresses) {
  Socket listener = Listener();
  SocketAddress address = listener.LocalAddress().value();
  MaybeConnection connection = co_await OpenConnection("127.0.0.1", address.port());
  WEFT_ASSERT_OK(connection.status());
  EXPECT_EQ(connection->writer.socket().GetOption(SocketOption::kNoDelay).value(), 1);
  EXPECT_EQ(connection->writer.PeerAddress(), address);
  EXPECT_EQ(connection->writer.LocalAddress().host(), "127.0.0.1");
}

WEFT_TEST_F_IN_REAL_TIME(ConnectTest, NamesAreLookedUp) {
  Socket listener = Listener();
  ConnectOptions options;
  options.family = SocketAddress::Family::kIpv4;
  MaybeConnection connection =
      co_await OpenConnection("localhost", listener.LocalAddress()->port(), options);
  EXPECT_TRUE(connection.ok()) << connection.status();
}

WEFT_TEST_F(ConnectTest, WhatTheResolverSaysIsPassedOn) {
  Addresses none;
  TestResolver resolver(none);
  ConnectOptions options;
  options.resolver = &resolver;
  MaybeConnection connection = co_await OpenConnection("example", 80, options);
  EXPECT_EQ(connection.status().message(), "no such host");
}

}  // namespace
}  // namespace weft
