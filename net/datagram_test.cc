// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a Datagram promises. The numbers are those of the conformance list.

#include "weft/net/datagram.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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
#include "weft/poller/poller_registry.h"
#include "weft/sync/event.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using MaybePacket = absl::StatusOr<Packet>;
using MaybeDatagram = absl::StatusOr<Datagram>;

class DatagramTest : public NetTest {};
class UnixDatagramTest : public UnixNetTest {};

class UnreachablePortTest : public NetTest {
 protected:
  void SetUp() override {
    if (!TellsOfUnreachablePorts()) GTEST_SKIP() << "this system may not tell";
  }
};

class MulticastTest : public NetTest {
 protected:
  void SetUp() override {
    if (!HasMulticast()) GTEST_SKIP() << "this system has no multicast";
  }
};

Coro<Datagram> Open(DatagramOptions options = DatagramOptions()) {
  if (options.local_address.is_none()) options.local_address = SocketAddress::Ipv4Loopback(0);
  MaybeDatagram endpoint = co_await OpenDatagram(options);
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  co_return *std::move(endpoint);
}

Coro<Datagram> OpenTo(const SocketAddress& remote) {
  DatagramOptions options;
  options.remote_address = remote;
  Datagram endpoint = co_await Open(options);
  co_return endpoint;
}

SocketAddress AddressOf(const Datagram& endpoint) { return endpoint.LocalAddress().value(); }

// The next datagram, or why there is none.
Coro<std::string> Next(Datagram& endpoint) {
  MaybePacket packet = co_await endpoint.Receive();
  if (!packet.ok()) co_return std::string(packet.status().message());
  co_return packet->data;
}

Coro<bool> IsSilent(Datagram& endpoint) {
  Outcome<MaybePacket> outcome =
      co_await NoThrow(WithTimeout(absl::Milliseconds(10), endpoint.Receive()));
  co_return outcome.has_exception();
}

// UDP 261, SOCK 259.
WEFT_TEST_F(DatagramTest, CarriesTheSender) {
  Datagram server = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(server));

  absl::Status sent = co_await client.Send("ping");
  WEFT_EXPECT_OK(sent);
  MaybePacket packet = co_await server.Receive();
  WEFT_ASSERT_OK(packet.status());
  EXPECT_EQ(packet->data, "ping");
  EXPECT_EQ(packet->from, AddressOf(client));
  EXPECT_FALSE(packet->is_truncated);

  sent = co_await server.SendTo("pong", packet->from);
  WEFT_EXPECT_OK(sent);
  packet = co_await client.Receive();
  WEFT_ASSERT_OK(packet.status());
  EXPECT_EQ(packet->data, "pong");
  EXPECT_EQ(packet->from, AddressOf(server));
  EXPECT_EQ(client.PeerAddress().value(), AddressOf(server));
}

WEFT_TEST_F(DatagramTest, WorksOverIpv6AndByName) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv6Loopback(0);
  Datagram server = co_await Open(options);
  MaybeDatagram client = co_await OpenDatagram("::1", AddressOf(server).port());
  WEFT_ASSERT_OK(client.status());
  absl::Status sent = co_await client->Send("x");
  WEFT_EXPECT_OK(sent);
  std::string text = co_await Next(server);
  EXPECT_EQ(text, "x");
}

// Who waits is resumed by what comes.
WEFT_TEST_F(DatagramTest, WaitsForWhatComes) {
  Datagram server = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(server));
  Task<std::string> first = CreateTask(Next(server));
  Task<std::string> second = CreateTask(Next(server));
  co_await Rounds(3);
  for (const std::string text : {"a", "b", "c"}) {
    absl::Status sent = co_await client.Send(text);
    WEFT_EXPECT_OK(sent);
  }
  std::string a = co_await std::move(first);
  std::string b = co_await std::move(second);
  std::string c = co_await Next(server);
  EXPECT_EQ(a + b + c, "abc");
}

// UDP 262: the error is told, and that is all.
WEFT_TEST_F(UnreachablePortTest, IsAnErrorAndNotTheEnd) {
  Datagram gone = co_await Open();
  const SocketAddress address = AddressOf(gone);
  Datagram client = co_await OpenTo(address);
  gone.Close();
  co_await Rounds(2);

  for (int i = 0; i < 3; ++i) {
    absl::Status sent = co_await client.Send("x");
    WEFT_EXPECT_OK(sent);
    MaybePacket packet = co_await client.Receive();
    EXPECT_EQ(ErrnoOf(packet.status()), ECONNREFUSED);
    EXPECT_THAT(std::string(packet.status().message()), HasSubstr(address.ToString()));
  }
  absl::Status sent = co_await client.Send("x");
  WEFT_EXPECT_OK(sent);
  co_await Rounds(2);
  sent = co_await client.Send("y");
  EXPECT_EQ(ErrnoOf(sent), ECONNREFUSED);

  DatagramOptions options;
  options.local_address = address;
  Datagram back = co_await Open(options);
  sent = co_await client.Send("z");
  WEFT_EXPECT_OK(sent);
  std::string text = co_await Next(back);
  EXPECT_EQ(text, "z");
}

WEFT_TEST_F(UnreachablePortTest, TellsWhoWaits) {
  Datagram gone = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(gone));
  gone.Close();
  co_await Rounds(2);

  Task<std::string> waiting = CreateTask(Next(client));
  co_await Rounds(3);
  absl::Status sent = co_await client.Send("x");
  WEFT_EXPECT_OK(sent);
  std::string end = co_await std::move(waiting);
  EXPECT_THAT(end, HasSubstr("ECONNREFUSED"));
}

// UDP 263.
WEFT_TEST_F(DatagramTest, EmptyDatagramsAreDatagrams) {
  Datagram server = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(server));
  for (const std::string text : {"", "x", "", ""}) {
    absl::Status sent = co_await client.Send(text);
    WEFT_EXPECT_OK(sent);
  }
  std::vector<size_t> sizes;
  for (int i = 0; i < 4; ++i) {
    MaybePacket packet = co_await server.Receive();
    WEFT_ASSERT_OK(packet.status());
    EXPECT_EQ(packet->from, AddressOf(client));
    sizes.push_back(packet->data.size());
  }
  EXPECT_THAT(sizes, ElementsAre(0, 1, 0, 0));
}

// UDP 264.
WEFT_TEST_F(DatagramTest, WhatIsTooLargeIsRefused) {
  Datagram server = co_await Open();
  Datagram client = co_await Open();
  absl::Status sent = co_await client.SendTo(std::string(70000, 'x'), AddressOf(server));
  EXPECT_EQ(ErrnoOf(sent), EMSGSIZE);
  EXPECT_THAT(std::string(sent.message()), HasSubstr(AddressOf(server).ToString()));
  const std::string largest = Pattern(65507);
  sent = co_await client.SendTo(largest, AddressOf(server));
  WEFT_EXPECT_OK(sent);
  std::string text = co_await Next(server);
  EXPECT_TRUE(text == largest);
}

WEFT_TEST_F(DatagramTest, WhatIsLongerThanTheRoomIsCutOff) {
  DatagramOptions options;
  options.max_size = 10;
  Datagram server = co_await Open(options);
  Datagram client = co_await OpenTo(AddressOf(server));
  for (const std::string text : {"0123456789", "0123456789x", "abc", "abcd"}) {
    absl::Status sent = co_await client.Send(text);
    WEFT_EXPECT_OK(sent);
  }
  MaybePacket packet = co_await server.Receive();
  EXPECT_EQ(packet->data, "0123456789");
  EXPECT_FALSE(packet->is_truncated);
  packet = co_await server.Receive();
  EXPECT_EQ(packet->data, "0123456789");
  EXPECT_TRUE(packet->is_truncated);
  char buffer[3];
  absl::StatusOr<Received> received = co_await server.ReceiveInto(absl::MakeSpan(buffer));
  EXPECT_EQ(std::string(buffer, received->size), "abc");
  EXPECT_FALSE(received->is_truncated);
  EXPECT_EQ(received->from, AddressOf(client));
  received = co_await server.ReceiveInto(absl::MakeSpan(buffer));
  EXPECT_EQ(received->size, 3u);
  EXPECT_TRUE(received->is_truncated);
}

// UDP 265.
WEFT_TEST_F(DatagramTest, ClosingTwiceIsClosingOnce) {
  Datagram endpoint = co_await Open();
  const SocketAddress address = AddressOf(endpoint);
  Task<std::string> waiting = CreateTask(Next(endpoint));
  co_await Rounds(2);
  EXPECT_TRUE(endpoint.is_open());
  endpoint.Close();
  endpoint.Close();
  EXPECT_FALSE(endpoint.is_open());
  std::string end = co_await std::move(waiting);
  EXPECT_THAT(end, HasSubstr("ECANCELED"));
  MaybePacket packet = co_await endpoint.Receive();
  EXPECT_EQ(ErrnoOf(packet.status()), EBADF);
  absl::Status sent = co_await endpoint.SendTo("x", address);
  EXPECT_EQ(ErrnoOf(sent), EBADF);
  std::vector<Outgoing> many(2, Outgoing("x", address));
  absl::StatusOr<size_t> count = co_await endpoint.SendMany(many);
  EXPECT_EQ(ErrnoOf(count.status()), EBADF);
  EXPECT_EQ(ErrnoOf(endpoint.JoinGroup(address)), EBADF);
}

// A Unix endpoint is used where the kernel has to run out of room: it drops nothing.
struct UnixPair {
  explicit UnixPair(const ShortDirectory& directory)
      : address(SocketAddress::FromUnixPath(directory.File("s")).value()) {}

  Coro<void> Open() {
    DatagramOptions options;
    options.local_address = address;
    receiver = co_await weft::Open(options);
    DatagramOptions to;
    to.remote_address = address;
    MaybeDatagram opened = co_await OpenDatagram(to);
    EXPECT_TRUE(opened.ok()) << opened.status();
    sender = *std::move(opened);
  }

  SocketAddress address;
  Datagram receiver;
  Datagram sender;
};

// Returns the first error.
Coro<absl::Status> SendNumbers(Datagram& endpoint, int from, int count, int* sent) {
  for (int i = from; i < from + count; ++i) {
    const std::string text = absl::StrCat(i);
    absl::Status status = co_await endpoint.Send(text);
    if (!status.ok()) co_return status;
    ++*sent;
  }
  co_return absl::OkStatus();
}

// UDP 266.
WEFT_TEST_F(UnixDatagramTest, SendsThatWaitLeaveInTheirOrder) {
  ShortDirectory directory;
  UnixPair pair(directory);
  co_await pair.Open();
  int sent = 0;
  Task<absl::Status> first = CreateTask(SendNumbers(pair.sender, 0, 1000, &sent));
  co_await Rounds(200);
  EXPECT_FALSE(first.Done());
  const int room = sent;
  Task<absl::Status> second = CreateTask(SendNumbers(pair.sender, 1000, 1, &sent));
  std::vector<Outgoing> many = {Outgoing("1001"), Outgoing("1002")};
  Task<absl::StatusOr<size_t>> third = CreateTask(pair.sender.SendMany(many));
  co_await Rounds(3);
  EXPECT_EQ(sent, room);

  std::vector<int> got;
  while (got.size() < 1003) {
    std::string text = co_await Next(pair.receiver);
    got.push_back(std::stoi(text));
  }
  absl::Status status = co_await std::move(first);
  WEFT_EXPECT_OK(status);
  status = co_await std::move(second);
  WEFT_EXPECT_OK(status);
  absl::StatusOr<size_t> count = co_await std::move(third);
  EXPECT_EQ(count.value(), 2u);
  // Each in its own order, and those that waited when others came before those.
  std::vector<int> of_first, of_others;
  for (int number : got) (number < 1000 ? of_first : of_others).push_back(number);
  EXPECT_TRUE(std::is_sorted(of_first.begin(), of_first.end()));
  EXPECT_TRUE(std::is_sorted(of_others.begin(), of_others.end()));
  EXPECT_EQ(got[static_cast<size_t>(room)], room);
}

// UDP 265: what waits to be sent is sent first.
WEFT_TEST_F(UnixDatagramTest, CloseLetsSendsFinish) {
  ShortDirectory directory;
  UnixPair pair(directory);
  co_await pair.Open();
  int sent = 0;
  Task<absl::Status> sending = CreateTask(SendNumbers(pair.sender, 0, 1000, &sent));
  co_await Rounds(200);
  const int room = sent;
  // The one that waits is still sent, and the one after that refused.
  pair.sender.Close();
  for (int i = 0; i <= room; ++i) {
    std::string text = co_await Next(pair.receiver);
    EXPECT_EQ(text, absl::StrCat(i));
  }
  absl::Status end = co_await std::move(sending);
  EXPECT_EQ(ErrnoOf(end), EBADF);
  EXPECT_EQ(sent, room + 1);
  bool is_silent = co_await IsSilent(pair.receiver);
  EXPECT_TRUE(is_silent);
}

WEFT_TEST_F(UnixDatagramTest, AbortEndsSendsToo) {
  ShortDirectory directory;
  UnixPair pair(directory);
  co_await pair.Open();
  int sent = 0;
  Task<absl::Status> sending = CreateTask(SendNumbers(pair.sender, 0, 1000, &sent));
  co_await Rounds(200);
  pair.sender.Abort();
  absl::Status end = co_await std::move(sending);
  EXPECT_EQ(ErrnoOf(end), ECANCELED);
}

WEFT_TEST_F(DatagramTest, ManyAtOnce) {
  Datagram server = co_await Open();
  Datagram client = co_await Open();
  std::vector<std::string> texts;
  std::vector<Outgoing> many;
  for (int i = 0; i < 150; ++i) texts.push_back(absl::StrCat(i));
  for (const std::string& text : texts) many.emplace_back(text, AddressOf(server));
  absl::StatusOr<size_t> count = co_await client.SendMany(many);
  EXPECT_EQ(count.value(), 150u);
  for (const std::string& expected : texts) {
    std::string text = co_await Next(server);
    EXPECT_EQ(text, expected);
  }

  // As many as before the first that fails; an error if that is the first.
  const std::string large(70000, 'x');
  many[2].data = large;
  count = co_await client.SendMany(many);
  EXPECT_EQ(count.value(), 2u);
  absl::Span<const Outgoing> rest = absl::MakeConstSpan(many).subspan(2);
  count = co_await client.SendMany(rest);
  EXPECT_EQ(ErrnoOf(count.status()), EMSGSIZE);
  count = co_await client.SendMany(absl::Span<const Outgoing>());
  EXPECT_EQ(count.value(), 0u);
}

WEFT_TEST_F(DatagramTest, SegmentsAreDatagrams) {
  Datagram server = co_await Open();
  server.socket().SetOption(socket_option::kReceiveBuffer, 4 << 20).IgnoreError();
  Datagram client = co_await OpenTo(AddressOf(server));
  const std::string data = Pattern(150 * 1000 + 7);
  absl::Status sent = co_await client.SendSegments(data, 1000);
  WEFT_EXPECT_OK(sent);
  std::string all;
  for (int i = 0; i < 151; ++i) {
    std::string text = co_await Next(server);
    EXPECT_EQ(text.size(), i < 150 ? 1000u : 7u);
    all += text;
  }
  EXPECT_TRUE(all == data);

  // With an address; one that is shorter than a segment; none at all.
  Datagram other = co_await Open();
  sent = co_await other.SendSegments("abcde", 2, AddressOf(server));
  WEFT_EXPECT_OK(sent);
  sent = co_await other.SendSegments("f", 2, AddressOf(server));
  WEFT_EXPECT_OK(sent);
  sent = co_await other.SendSegments("", 2, AddressOf(server));
  WEFT_EXPECT_OK(sent);
  for (const std::string expected : {"ab", "cd", "e", "f"}) {
    std::string text = co_await Next(server);
    EXPECT_EQ(text, expected);
  }
  sent = co_await client.SendSegments(data, 70000);
  EXPECT_EQ(ErrnoOf(sent), EMSGSIZE);
  Coro<absl::Status> none = client.SendSegments(data, 0);
  WEFT_EXPECT_THROW(static_cast<void>(co_await std::move(none)), ValueError);
}

// Where the kernel cannot cut: a Unix socket.
WEFT_TEST_F(UnixDatagramTest, SegmentsWithoutTheKernelsHelp) {
  ShortDirectory directory;
  UnixPair pair(directory);
  co_await pair.Open();
  const std::string data = Pattern(100 * 10);
  Task<absl::Status> sending = CreateTask(pair.sender.SendSegments(data, 10));
  std::string all;
  while (all.size() < data.size()) {
    std::string text = co_await Next(pair.receiver);
    EXPECT_EQ(text.size(), 10u);
    all += text;
  }
  EXPECT_TRUE(all == data);
  absl::Status sent = co_await std::move(sending);
  WEFT_EXPECT_OK(sent);
}

// UDP 262, of every way to send: what has become of an earlier datagram is told, once,
// and is no reason to try it in another way.
WEFT_TEST_F(UnreachablePortTest, EveryWayToSendTellsWhatBecameOfTheLastOne) {
  Datagram gone = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(gone));
  gone.Close();
  co_await Rounds(2);
  std::vector<Outgoing> two(2, Outgoing("x"));

  for (int i = 0; i < 3; ++i) {
    absl::Status sent = co_await client.Send("x");  // The answer is here when it returns.
    WEFT_EXPECT_OK(sent);
    sent = co_await client.SendSegments("abcde", 2);
    EXPECT_EQ(ErrnoOf(sent), ECONNREFUSED);
    sent = co_await client.SendSegments("abcde", 2);
    WEFT_EXPECT_OK(sent);
    sent = co_await client.SendSegments("a", 2);
    EXPECT_EQ(ErrnoOf(sent), ECONNREFUSED);
    absl::StatusOr<size_t> count = co_await client.SendMany(two);
    WEFT_EXPECT_OK(count.status());
    count = co_await client.SendMany(two);
    EXPECT_EQ(ErrnoOf(count.status()), ECONNREFUSED);
    sent = co_await client.Send("x");
    WEFT_EXPECT_OK(sent);
    sent = co_await client.Send("x");
    EXPECT_EQ(ErrnoOf(sent), ECONNREFUSED);
  }
}

WEFT_TEST_F(DatagramTest, CancellingAReceiveLosesNothing) {
  Datagram server = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(server));
  int got = 0, cancelled = 0;
  for (int i = 0; i < 60; ++i) {
    Task<std::string> waiting = CreateTask(Next(server));
    co_await Rounds(i % 3);
    const std::string text = absl::StrCat(i);
    absl::Status sent = co_await client.Send(text);
    WEFT_EXPECT_OK(sent);
    co_await Rounds(i % 5);
    waiting.Cancel();
    Outcome<std::string> outcome = co_await NoThrow(std::move(waiting));
    std::string received;
    if (outcome.has_value()) {
      ++got;
      received = outcome.value();
    } else {
      ++cancelled;
      received = co_await Next(server);
    }
    EXPECT_EQ(received, text);
  }
  EXPECT_GT(got, 0);
  EXPECT_GT(cancelled, 0);
}

// Several receive, some are cancelled at any time, and each datagram comes to one of
// them, in the order in which they were sent as far as nobody was cancelled.
WEFT_TEST_F(DatagramTest, WhatACancelledReceiveHadIsPassedOn) {
  std::mt19937 random(3);
  Datagram server = co_await Open();
  Datagram client = co_await OpenTo(AddressOf(server));
  std::vector<int> got;
  auto receive = [&server, &got]() -> Coro<void> {
    while (true) {
      std::string text = co_await Next(server);
      got.push_back(std::stoi(text));
    }
  };
  std::vector<Task<void>> receivers;
  for (int i = 0; i < 4; ++i) receivers.push_back(CreateTask(receive));
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount;) {
    for (uint32_t burst = random() % 4; burst > 0 && i < kCount; --burst, ++i) {
      const std::string text = absl::StrCat(i);
      absl::Status sent = co_await client.Send(text);
      WEFT_EXPECT_OK(sent);
    }
    co_await Rounds(static_cast<int>(random() % 4));
    Task<void>& one = receivers[random() % receivers.size()];
    one.Cancel();
    if (random() % 2 == 0) co_await Yield();
    one = CreateTask(receive);
  }
  co_await Rounds(50);
  EXPECT_EQ(got.size(), static_cast<size_t>(kCount));
  std::sort(got.begin(), got.end());
  for (int i = 0; i < static_cast<int>(got.size()); ++i)
    WEFT_ASSERT_EQ(got[static_cast<size_t>(i)], i);
  for (Task<void>& one : receivers) {
    one.Cancel();
    co_await NoThrow(one);
  }
}

// An endpoint at the port of `address`, or at any if it has none.
Coro<Datagram> OpenMember(const SocketAddress& address) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Any(address.port());
  options.reuse_address = CanSharePorts();
  Datagram endpoint = co_await Open(options);
  co_return endpoint;
}

Coro<Datagram> OpenMulticastSender(uint32_t interface_number) {
  Datagram sender = co_await Open();
  WEFT_EXPECT_OK(sender.socket().SetOption(SocketOption::kMulticastInterface,
                                           static_cast<int>(interface_number)));
  co_return sender;
}

WEFT_TEST_F(MulticastTest, ReachesAMemberUntilItLeaves) {
  const uint32_t loopback = internal::InterfaceNumber("lo");
  SocketAddress group = SocketAddress::FromHost("239.255.77.7", 0).value();
  Datagram member = co_await OpenMember(group);
  group.set_port(AddressOf(member).port());
  WEFT_ASSERT_OK(member.JoinGroup(group, loopback));
  Datagram sender = co_await OpenMulticastSender(loopback);

  absl::Status sent = co_await sender.SendTo("all", group);
  WEFT_EXPECT_OK(sent);
  std::string text = co_await Next(member);
  EXPECT_EQ(text, "all");

  WEFT_EXPECT_OK(member.LeaveGroup(group, loopback));
  sent = co_await sender.SendTo("none", group);
  WEFT_EXPECT_OK(sent);
  bool is_silent = co_await IsSilent(member);
  EXPECT_TRUE(is_silent);
  EXPECT_FALSE(member.LeaveGroup(group, loopback).ok());
  absl::Status no_group = member.JoinGroup(SocketAddress::Ipv4Loopback(0), loopback);
  EXPECT_THAT(std::string(no_group.message()), HasSubstr("127.0.0.1"));
}

WEFT_TEST_F(MulticastTest, ReachesAllMembers) {
  if (!CanSharePorts()) co_return;
  const uint32_t loopback = internal::InterfaceNumber("lo");
  SocketAddress group = SocketAddress::FromHost("239.255.77.7", 0).value();
  Datagram first = co_await OpenMember(group);
  group.set_port(AddressOf(first).port());
  Datagram second = co_await OpenMember(group);
  WEFT_ASSERT_OK(first.JoinGroup(group, loopback));
  WEFT_EXPECT_OK(second.JoinGroup(group, loopback));
  Datagram sender = co_await OpenMulticastSender(loopback);

  absl::Status sent = co_await sender.SendTo("all", group);
  WEFT_EXPECT_OK(sent);
  std::string one = co_await Next(first);
  std::string two = co_await Next(second);
  EXPECT_EQ(one + two, "allall");

  WEFT_EXPECT_OK(second.LeaveGroup(group, loopback));
  sent = co_await sender.SendTo("one", group);
  WEFT_EXPECT_OK(sent);
  one = co_await Next(first);
  EXPECT_EQ(one, "one");
  bool is_silent = co_await IsSilent(second);
  EXPECT_TRUE(is_silent);
}

WEFT_TEST_F(DatagramTest, BroadcastHasToBeAllowed) {
  const SocketAddress everybody = SocketAddress::FromHost("127.255.255.255", 9).value();
  Datagram shy = co_await Open();
  absl::Status sent = co_await shy.SendTo("x", everybody);
  EXPECT_EQ(ErrnoOf(sent), EACCES);
  DatagramOptions options;
  options.allow_broadcast = true;
  Datagram loud = co_await Open(options);
  sent = co_await loud.SendTo("x", everybody);
  WEFT_EXPECT_OK(sent);
}

WEFT_TEST_F(DatagramTest, APortInUseIsNamed) {
  Datagram first = co_await Open();
  DatagramOptions options;
  options.local_address = AddressOf(first);
  MaybeDatagram second = co_await OpenDatagram(options);
  EXPECT_EQ(ErrnoOf(second.status()), EADDRINUSE);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(AddressOf(first).ToString()));

  options.max_size = 0;
  Coro<MaybeDatagram> none = OpenDatagram(options);
  WEFT_EXPECT_THROW(static_cast<void>(co_await std::move(none)), ValueError);
}

WEFT_TEST_F(DatagramTest, SeveralMayShareAPort) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  options.reuse_port = true;
  MaybeDatagram first = co_await OpenDatagram(options);
  if (!CanSharePorts()) {
    EXPECT_EQ(first.status().code(), absl::StatusCode::kUnimplemented) << first.status();
    co_return;
  }
  WEFT_ASSERT_OK(first.status());
  options.local_address = AddressOf(*first);
  MaybeDatagram second = co_await OpenDatagram(options);
  WEFT_EXPECT_OK(second.status());
}

// UNIX 268, 269, for datagrams.
WEFT_TEST_F(UnixDatagramTest, AStaleSocketFileIsReplacedAndOnesOwnRemoved) {
  ShortDirectory directory;
  const std::string path = directory.File("s");
  DatagramOptions options;
  options.local_address = SocketAddress::FromUnixPath(path).value();
  {
    Socket stale = Socket::Open(SocketDomain::kUnix, SocketType::kDatagram).value();
    WEFT_EXPECT_OK(stale.Bind(options.local_address));
  }
  Datagram endpoint = co_await Open(options);
  struct stat status;
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  endpoint.Close();
  EXPECT_NE(::stat(path.c_str(), &status), 0);

  std::ofstream(path) << "a file";
  MaybeDatagram refused = co_await OpenDatagram(options);
  EXPECT_EQ(ErrnoOf(refused.status()), EADDRINUSE);
  EXPECT_EQ(::unlink(path.c_str()), 0);
}

// Runs `main` with each of the backends that work here.
template <class F>
void OnEachPoller(const F& main) {
  for (const PollerInfo& info : AvailablePollers()) {
    if (!info.status.ok()) continue;
    SCOPED_TRACE(info.name);
    RunOptions options;
    options.poller = info.name;
    Run(main(), options);
  }
}

Coro<void> CountReceived(Datagram& endpoint, int* got) {
  while (true) {
    MaybePacket packet = co_await endpoint.Receive();
    if (!packet.ok()) co_return;
    ++*got;
  }
}

// Lets the loop run, until so many have come or it has polled many times: not every
// round does.
Coro<void> Until(const int& got, int count) {
  for (int i = 0; i < 1000 && got < count; ++i) co_await Yield();
}

// One waits, something comes, and another comes to wait before the first has looked:
// the kernel has told what it had to tell, and what the first leaves is the other's.
TEST_F(DatagramTest, WhoComesToWaitLateMissesNothing) {
  OnEachPoller([]() -> Coro<void> {
    for (int count = 1; count <= 20; ++count) {
      for (int rounds = 0; rounds < 4; ++rounds) {
        Datagram server = co_await Open();
        Datagram client = co_await OpenTo(AddressOf(server));
        int got = 0;
        std::vector<Task<void>> tasks;
        tasks.push_back(CreateTask(CountReceived(server, &got)));
        co_await Rounds(2);
        for (int i = 0; i < count; ++i) {
          absl::Status sent = co_await client.Send("x");
          WEFT_EXPECT_OK(sent);
        }
        co_await Rounds(rounds);
        tasks.push_back(CreateTask(CountReceived(server, &got)));
        tasks.push_back(CreateTask(CountReceived(server, &got)));
        co_await Until(got, count);
        EXPECT_EQ(got, count) << "another came after " << rounds << " rounds";
        server.Close();
        for (Task<void>& task : tasks) co_await std::move(task);
      }
    }
  });
}

// Receivers come and go at any time: nothing is here while one waits.
TEST_F(DatagramTest, ReceiversThatComeAndGoMissNothing) {
  OnEachPoller([]() -> Coro<void> {
    std::mt19937 random(5);
    Datagram server = co_await Open();
    Datagram client = co_await OpenTo(AddressOf(server));
    int sent_count = 0, got = 0;
    std::vector<Task<void>> tasks;
    for (int step = 0; step < 2000; ++step) {
      for (uint32_t burst = random() % 25; burst > 20; --burst, ++sent_count) {
        absl::Status sent = co_await client.Send("x");
        WEFT_EXPECT_OK(sent);
      }
      if (tasks.size() < 5 && random() % 2 == 0) {
        tasks.push_back(CreateTask(CountReceived(server, &got)));
      }
      co_await Rounds(static_cast<int>(random() % 3));
      if (!tasks.empty() && random() % 3 == 0) {
        const size_t index = random() % tasks.size();
        tasks[index].Cancel();
        co_await NoThrow(tasks[index]);
        tasks.erase(tasks.begin() + static_cast<std::ptrdiff_t>(index));
      }
      if (step % 20 != 0) continue;
      if (tasks.empty()) tasks.push_back(CreateTask(CountReceived(server, &got)));
      co_await Until(got, sent_count);
      WEFT_ASSERT_EQ(got, sent_count);
    }
    server.Close();
    for (Task<void>& task : tasks) co_await NoThrow(task);
  });
}

// Closing a loop ends what is in flight.
TEST_F(UnixDatagramTest, LoopClosesInTheMidstOfEverything) {
  ShortDirectory directory;
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
  auto main = [](const ShortDirectory& in) -> Coro<void> {
    UnixPair pair(in);
    co_await pair.Open();
    int sent = 0;
    Task<absl::Status> sending = CreateTask(SendNumbers(pair.sender, 0, 1000, &sent));
    Task<std::string> waiting = CreateTask(Next(pair.sender));
    co_await Rounds(200);
    pair.sender.Close();
    Event never;
    co_await never.Wait();
  };
  Task<void> running = loop->CreateTask(main(directory));
  for (int i = 0; i < 500; ++i) loop->RunOnce(absl::ZeroDuration());
  loop->Close();
}

}  // namespace
}  // namespace weft
