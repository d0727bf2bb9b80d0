// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket.h"

#include <fcntl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/late_cancel_poller.h"
#include "weft/net/test_net.h"
#include "weft/poller/poller_registry.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class SocketTest : public NetTest {};

Coro<std::string> RecvText(Socket& socket) {
  char buffer[100];
  absl::StatusOr<size_t> count = co_await socket.Recv(absl::MakeSpan(buffer));
  if (!count.ok()) co_return std::string(count.status().message());
  co_return std::string(buffer, *count);
}

// SOCK 260
WEFT_TEST_F(SocketTest, RecvFillsAtMostTheBuffer) {
  auto [a, b] = Socket::Pair().value();
  absl::StatusOr<size_t> sent = co_await a.Send("hello");
  EXPECT_EQ(sent.value(), 5u);

  char buffer[3];
  absl::StatusOr<size_t> first = co_await b.Recv(absl::MakeSpan(buffer));
  EXPECT_EQ(first.value(), 3u);
  EXPECT_EQ(std::string(buffer, 3), "hel");
  std::string rest = co_await RecvText(b);
  EXPECT_EQ(rest, "lo");
}

// SOCK 258
WEFT_TEST_F(SocketTest, RecvIsEmptyAtTheEnd) {
  auto [a, b] = Socket::Pair().value();
  a.Close();
  std::string text = co_await RecvText(b);
  EXPECT_EQ(text, "");
}

// SOCK 254
WEFT_TEST_F(SocketTest, CancelledRecvLosesNothing) {
  auto [a, b] = Socket::Pair().value();
  Task<std::string> reading = CreateTask(RecvText(b));
  co_await Rounds(3);
  reading.Cancel();
  co_await NoThrow(reading);
  EXPECT_TRUE(reading.Cancelled());

  absl::StatusOr<size_t> sent = co_await a.Send("data");
  EXPECT_EQ(sent.value(), 4u);
  std::string text = co_await RecvText(b);
  EXPECT_EQ(text, "data");
}

// As a future's, a cancellation is delivered in the next round; by a kernel that has to
// be asked first, in the one after its answer.
WEFT_TEST_F(SocketTest, CancellationTakesOneRound) {
  auto [a, b] = Socket::Pair().value();
  Task<std::string> reading = CreateTask(RecvText(b));
  co_await Rounds(3);

  reading.Cancel();
  const bool is_asked = TestPollerCompletes() || ResolvePollerName("") == "iocp";
  co_await Rounds(is_asked ? 3 : 1);

  EXPECT_TRUE(reading.Done());
}

// Bytes in the caller's own buffer cannot be given back: they win, and the
// cancellation comes with the next await. Whenever it comes, nothing is lost.
WEFT_TEST_F(SocketTest, WhatWasReceivedWinsOverACancellation) {
  auto body = [](Socket& socket, std::string* log) -> Coro<void> {
    std::string text = co_await RecvText(socket);
    *log += text;
    co_await Yield();
    *log += ", went on";
  };
  int wins = 0;
  for (int rounds = 0; rounds < 6; ++rounds) {
    auto [a, b] = Socket::Pair().value();
    std::string log;
    Task<void> reading = CreateTask(body, std::ref(b), &log);
    co_await Rounds(3);
    absl::StatusOr<size_t> sent = co_await a.Send("data");
    EXPECT_TRUE(sent.ok());

    co_await Rounds(rounds);
    const bool was_done = reading.Done();
    reading.Cancel();
    co_await NoThrow(reading);

    if (was_done) {
      EXPECT_EQ(log, "data, went on");
      continue;
    }
    EXPECT_TRUE(reading.Cancelled());
    if (log == "data") {
      ++wins;
    } else {
      EXPECT_EQ(log, "");
      std::string text = co_await RecvText(b);
      EXPECT_EQ(text, "data");
    }
  }
  EXPECT_GT(wins, 0);
}

// The same where cancelling takes time: the task waits for the end.
TEST_F(SocketTest, CancelsThatComeTooLateLoseNothing) {
  LateCancelPoller poller;
  RunOptions options;
  options.environment.poller = &poller;
  auto read = [](Socket& socket, std::string* log) -> Coro<void> {
    std::string text = co_await RecvText(socket);
    *log += text;
    co_await Yield();
    *log += ", went on";
  };
  auto main = [&read]() -> Coro<void> {
    int wins = 0;
    for (int rounds = 0; rounds < 6; ++rounds) {
      for (bool sends : {false, true}) {
        auto [a, b] = Socket::Pair().value();
        std::string log;
        Task<void> reading = CreateTask(read, std::ref(b), &log);
        co_await Rounds(3 + rounds);
        reading.Cancel();
        absl::StatusOr<size_t> sent = 0;
        if (sends) sent = co_await a.Send("data");
        co_await NoThrow(reading);
        EXPECT_TRUE(reading.Cancelled());
        if (log == "data") {
          ++wins;
          continue;
        }
        EXPECT_EQ(log, "");
        if (!sends) sent = co_await a.Send("data");
        std::string text = co_await RecvText(b);
        EXPECT_EQ(text, "data");
      }
    }
    EXPECT_GT(wins, 0);

    // One that is taken back is delivered all the same if it has ended the wait.
    auto [a, b] = Socket::Pair().value();
    Task<std::string> reading = CreateTask(RecvText(b));
    co_await Rounds(3);
    reading.Cancel();
    EXPECT_EQ(reading.Uncancel(), 0);
    co_await NoThrow(reading);
    EXPECT_TRUE(reading.Cancelled());
  };
  weft::Run(main(), options);
  EXPECT_EQ(poller.pending(), 0u);
}

// SOCK 255
WEFT_TEST_F(SocketTest, SendAllSendsAll) {
  auto [a, b] = Socket::Pair().value();
  EXPECT_TRUE(a.SetOption(SocketOption::kSendBuffer, 4096).ok());
  const std::string data = Pattern(8 << 20);
  auto receive = [](Socket& socket, size_t size) -> Coro<std::string> {
    std::string all;
    std::string buffer(100000, '\0');
    while (all.size() < size) {
      absl::StatusOr<size_t> count = co_await socket.Recv(absl::MakeSpan(&buffer[0], 100000));
      if (!count.ok() || *count == 0) break;
      all.append(buffer, 0, *count);
    }
    co_return all;
  };
  Task<std::string> receiving = CreateTask(receive, std::ref(b), data.size());

  absl::Status sent = co_await a.SendAll(data);

  EXPECT_TRUE(sent.ok()) << sent;
  std::string received = co_await std::move(receiving);
  EXPECT_TRUE(received == data);
}

WEFT_TEST_F(SocketTest, CancelledSendAllEnds) {
  auto [a, b] = Socket::Pair().value();
  const std::string data(8 << 20, 'x');
  auto send = [](Socket& socket, std::string_view text) -> Coro<absl::Status> {
    co_return co_await socket.SendAll(text);
  };
  Task<absl::Status> sending = CreateTask(send, std::ref(a), std::string_view(data));
  co_await Rounds(3);
  EXPECT_FALSE(sending.Done());

  sending.Cancel();
  co_await NoThrow(sending);

  EXPECT_TRUE(sending.Cancelled());
}

// SOCK 256
WEFT_TEST_F(SocketTest, ConnectToAClosedPortIsRefused) {
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  SocketAddress address = listener.LocalAddress().value();

  Socket socket = Socket::Open(SocketDomain::kInet).value();
  absl::Status status = co_await socket.Connect(address);

  EXPECT_EQ(ErrnoOf(status), ECONNREFUSED);
  EXPECT_EQ(status.message(),
            "connect to " + address.ToString() + ": Connection refused [ECONNREFUSED]");
}

// SOCK 257
WEFT_TEST_F(SocketTest, AcceptGivesASocketThatIsOurs) {
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  EXPECT_TRUE(listener.Listen().ok());
  auto accept = [](Socket& socket) -> Coro<absl::StatusOr<Socket>> {
    co_return co_await socket.Accept();
  };
  Task<absl::StatusOr<Socket>> accepting = CreateTask(accept, std::ref(listener));
  co_await Rounds(3);
  Socket client = Socket::Open(SocketDomain::kInet).value();
  absl::Status connected = co_await client.Connect(listener.LocalAddress().value());
  EXPECT_TRUE(connected.ok()) << connected;

  absl::StatusOr<Socket> accepted = co_await std::move(accepting);

  EXPECT_TRUE(accepted.ok()) << accepted.status();
  EXPECT_FALSE(IsInherited(accepted->handle()));
  // Nor does it block.
  char byte;
  DatagramSlot none;
  none.data = &byte;
  none.size = 1;
  EXPECT_EQ(SystemSocketApi()->ReceiveMany(accepted->handle(), &none, 1), -EAGAIN);
  EXPECT_EQ(accepted->PeerAddress().value(), client.LocalAddress().value());
  EXPECT_EQ(client.PeerAddress().value(), accepted->LocalAddress().value());
}

// SOCK 259, UDP 263
WEFT_TEST_F(SocketTest, DatagramsCarryTheirSender) {
  Socket a = Socket::Open(SocketDomain::kInet, SocketType::kDatagram).value();
  Socket b = Socket::Open(SocketDomain::kInet, SocketType::kDatagram).value();
  EXPECT_TRUE(a.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  EXPECT_TRUE(b.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  for (std::string text : {"hello", ""}) {
    absl::StatusOr<size_t> sent = co_await a.SendTo(text, b.LocalAddress().value());
    EXPECT_EQ(sent.value(), text.size());

    char buffer[100];
    absl::StatusOr<Received> received = co_await b.RecvFrom(absl::MakeSpan(buffer));

    EXPECT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(std::string(buffer, received->size), text);
    EXPECT_EQ(received->from, a.LocalAddress().value());
  }
}

WEFT_TEST_F(SocketTest, BindToAPortInUseNamesTheAddress) {
  Socket a = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(a.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  EXPECT_TRUE(a.Listen().ok());
  Socket b = Socket::Open(SocketDomain::kInet).value();

  absl::Status status = b.Bind(a.LocalAddress().value());

  EXPECT_EQ(ErrnoOf(status), EADDRINUSE);
  EXPECT_THAT(std::string(status.message()), HasSubstr(a.LocalAddress()->ToString()));
  co_return;
}

// Whoever waits when the socket is closed is told, and closing again is nothing.
WEFT_TEST_F(SocketTest, ClosingEndsWhatWaits) {
  auto [a, b] = Socket::Pair().value();
  Task<std::string> reading = CreateTask(RecvText(b));
  co_await Rounds(3);

  b.Close();
  b.Close();

  std::string text = co_await std::move(reading);
  EXPECT_THAT(text, HasSubstr("ECANCELED"));
  text = co_await RecvText(b);
  EXPECT_THAT(text, HasSubstr("EBADF"));
  text = co_await RecvText(a);
  EXPECT_EQ(text, "");
}

WEFT_TEST_F(SocketTest, MayBeDestroyedOrMovedWhileSomebodyWaits) {
  auto pair = std::make_unique<std::pair<Socket, Socket>>(Socket::Pair().value());
  Task<std::string> reading = CreateTask(RecvText(pair->second));
  co_await Rounds(3);
  Socket moved = std::move(pair->second);
  absl::StatusOr<size_t> sent = co_await pair->first.Send("x");
  EXPECT_TRUE(sent.ok());
  std::string text = co_await std::move(reading);
  EXPECT_EQ(text, "x");

  Task<std::string> again = CreateTask(RecvText(moved));
  co_await Rounds(3);
  moved = Socket();
  pair.reset();
  text = co_await std::move(again);
  EXPECT_THAT(text, HasSubstr("ECANCELED"));
}

// The number of a closed socket comes back for another, whose data is not the old
// one's.
WEFT_TEST_F(SocketTest, ANumberThatComesBackIsAnotherSocket) {
  auto [a, b] = Socket::Pair().value();
  Task<std::string> reading = CreateTask(RecvText(b));
  co_await Rounds(3);
  const NativeHandle number = b.handle();
  b.Close();
  if (TestPollerCompletes()) co_await Rounds(3);  // It is closed when the kernel is done with it.
  auto [c, d] = Socket::Pair().value();
  EXPECT_TRUE(c.handle() == number || d.handle() == number);
  Socket& reused = c.handle() == number ? c : d;
  Socket& other = c.handle() == number ? d : c;
  absl::StatusOr<size_t> sent = co_await other.Send("new");
  EXPECT_TRUE(sent.ok());

  std::string old = co_await std::move(reading);
  std::string text = co_await RecvText(reused);

  EXPECT_THAT(old, HasSubstr("ECANCELED"));
  EXPECT_EQ(text, "new");
}

WEFT_TEST_F(SocketTest, ReleaseGivesTheHandleUp) {
  auto [a, b] = Socket::Pair().value();
  absl::StatusOr<size_t> sent = co_await a.Send("x");
  EXPECT_TRUE(sent.ok());
  std::string text = co_await RecvText(b);

  Socket again = Socket::Adopt(b.Release());

  EXPECT_FALSE(b.is_open());
  sent = co_await a.Send("y");
  text = co_await RecvText(again);
  EXPECT_EQ(text, "y");
}

// A fast peer does not keep the others waiting.
WEFT_TEST_F(SocketTest, WhatIsDoneAtOnceYieldsInTheEnd) {
  auto [a, b] = Socket::Pair().value();
  int others = 0;
  auto other = [&others]() -> Coro<void> {
    while (true) {
      ++others;
      co_await Yield();
    }
  };
  Task<void> task = CreateTask(other);
  for (int i = 0; i < 1000; ++i) {
    absl::StatusOr<size_t> sent = co_await a.Send("x");
    EXPECT_TRUE(sent.ok());
    std::string text = co_await RecvText(b);
    EXPECT_EQ(text, "x");
  }
  EXPECT_GT(others, 1000 * 2 / 32 / 2);
  task.Cancel();
  co_await NoThrow(task);
}

WEFT_TEST_F(SocketTest, NoThrowAndTimeoutsWork) {
  auto [a, b] = Socket::Pair().value();
  char buffer[1];
  Outcome<absl::StatusOr<size_t>> outcome =
      co_await NoThrow(WithTimeout(absl::Seconds(1), b.Recv(absl::MakeSpan(buffer))));
  EXPECT_TRUE(outcome.has_exception());
  EXPECT_FALSE(outcome.cancelled());

  absl::StatusOr<size_t> sent = co_await a.Send("x");
  EXPECT_TRUE(sent.ok());
  absl::StatusOr<size_t> count =
      co_await WithTimeout(absl::Seconds(1), b.Recv(absl::MakeSpan(buffer)));
  EXPECT_EQ(count.value(), 1u);
}

TEST_F(SocketTest, IsOfNoUseInAnotherLoop) {
  Socket outer;
  std::pair<Socket, Socket> pair;
  auto open = [&]() -> Coro<void> {
    pair = Socket::Pair().value();
    co_return;
  };
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->RunUntilComplete(open());
  auto use = [&]() -> Coro<void> {
    WEFT_EXPECT_THROW(static_cast<void>(co_await pair.first.Send("x")), RuntimeError);
    Outcome<absl::StatusOr<size_t>> outcome = co_await NoThrow(pair.first.Send("x"));
    EXPECT_TRUE(outcome.has_exception());
  };
  weft::Run(use());
  loop->Close();
}

// A socket that outlives its loop, closed or destroyed, is closed as ever.
TEST_F(SocketTest, MayOutliveItsLoop) {
  std::pair<Socket, Socket> closed, destroyed;
  auto open = [](std::pair<Socket, Socket>& pair) -> Coro<void> {
    pair = Socket::Pair().value();
    absl::StatusOr<size_t> sent = co_await pair.first.Send("x");
    EXPECT_TRUE(sent.ok());
    std::string text = co_await RecvText(pair.second);
    EXPECT_EQ(text, "x");
  };
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->RunUntilComplete(open(closed));
  loop->RunUntilComplete(open(destroyed));
  loop->Close();
  closed = std::pair<Socket, Socket>();
  loop.reset();
  destroyed.first.Close();
}

// Closing a loop ends what is in flight, and destroys the frames.
TEST_F(SocketTest, LoopClosesWithOperationsInFlight) {
  auto wait = [](int which) -> Coro<void> {
    auto [a, b] = Socket::Pair().value();
    Socket listener = Socket::Open(SocketDomain::kInet).value();
    EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
    EXPECT_TRUE(listener.Listen().ok());
    const std::string data(8 << 20, 'x');
    if (which == 0) {
      std::string text = co_await RecvText(a);
    } else if (which == 1) {
      absl::Status sent = co_await a.SendAll(data);
    } else {
      absl::StatusOr<Socket> accepted = co_await listener.Accept();
    }
  };
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
  for (int which = 0; which < 3; ++which) {
    Task<void> task = loop->CreateTask(wait(which));
  }
  for (int i = 0; i < 5; ++i) loop->RunOnce(absl::ZeroDuration());
  loop->Close();
}

// An accepted connection that nobody takes any more is closed.
TEST_F(SocketTest, LoopClosesWithAConnectionAccepted) {
  auto wait = [](Socket& listener, SocketAddress* address) -> Coro<void> {
    listener = Socket::Open(SocketDomain::kInet).value();
    EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
    EXPECT_TRUE(listener.Listen().ok());
    *address = listener.LocalAddress().value();
    absl::StatusOr<Socket> accepted = co_await listener.Accept();
  };
  auto connect = [](Socket& client, SocketAddress* address) -> Coro<void> {
    client = Socket::Open(SocketDomain::kInet).value();
    absl::Status connected = co_await client.Connect(*address);
  };
  for (int rounds = 2; rounds < 8; ++rounds) {
    Socket listener, client;
    SocketAddress address;
    std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    Task<void> accepting = loop->CreateTask(wait(listener, &address));
    Task<void> connecting = loop->CreateTask(connect(client, &address));
    for (int i = 0; i < rounds; ++i) loop->RunOnce(absl::ZeroDuration());
    loop->Close();
  }
}

WEFT_TEST_F(SocketTest, OptionsHaveTypes) {
  Socket socket = Socket::Open(SocketDomain::kInet).value();
  WEFT_EXPECT_OK(socket.SetOption(socket_option::kNoDelay, true));
  EXPECT_EQ(socket.GetOption(socket_option::kNoDelay).value(), true);
  EXPECT_EQ(socket.GetOption(socket_option::kLinger).value(), std::nullopt);
  WEFT_EXPECT_OK(socket.SetOption(socket_option::kLinger, absl::Milliseconds(1500)));
  EXPECT_EQ(socket.GetOption(socket_option::kLinger).value(), absl::Seconds(2));  // Rounded up.
  WEFT_EXPECT_OK(socket.SetOption(socket_option::kLinger, std::nullopt));
  EXPECT_EQ(socket.GetOption(socket_option::kLinger).value(), std::nullopt);
  absl::Status set = socket.SetOption(socket_option::kUserTimeout, absl::Microseconds(30'000'001));
  if (ErrnoOf(set) != ENOPROTOOPT) {  // Not every system has it.
    WEFT_EXPECT_OK(set);
    EXPECT_EQ(socket.GetOption(socket_option::kUserTimeout).value(), absl::Milliseconds(30'001));
  }
  WEFT_EXPECT_OK(socket.SetOption(socket_option::kHopLimit, 7));
  EXPECT_EQ(socket.GetOption(socket_option::kHopLimit).value(), 7);
  Socket socket6 = Socket::Open(SocketDomain::kInet6, SocketType::kDatagram).value();
  WEFT_EXPECT_OK(socket6.SetOption(socket_option::kMulticastHopLimit, 3));
  EXPECT_EQ(socket6.GetOption(socket_option::kMulticastHopLimit).value(), 3);
  EXPECT_EQ(socket6.GetOption(socket_option::kMulticastLoop).value(), true);

  set = socket.SetOption(socket_option::kUserTimeout, absl::Seconds(-1));
  EXPECT_EQ(set.code(), absl::StatusCode::kInvalidArgument);
  set = socket.SetOption(socket_option::kKeepAliveIdle, absl::InfiniteDuration());
  EXPECT_EQ(set.code(), absl::StatusCode::kInvalidArgument);
  // Not of this kind of socket.
  set = socket6.SetOption(socket_option::kNoDelay, true);
  EXPECT_FALSE(set.ok());
  co_return;
}

}  // namespace
}  // namespace weft
