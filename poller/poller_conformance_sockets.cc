// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What sockets do through a poller: connections that come, go, break and half
// close; streams byte for byte; datagrams.

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

using ::testing::AnyOf;

namespace {

// Bytes of which every position tells where it is.
std::string Pattern(size_t size) {
  std::string bytes(size, '\0');
  uint32_t state = 1;
  for (char& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

}  // namespace

// --- Connections ---

TEST_P(PollerConformanceTest, ConnectsAndAcceptsWithTheAddressOfThePeer) {
  SockAddr address, peer, name;
  const NativeHandle listener = Listener(&address);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation accept, connect;
  accept.PrepareAccept(listener, &peer);
  connect.PrepareConnect(client, &address);
  Start(&accept);
  Start(&connect);

  EXPECT_EQ(RunUntilDone(&connect), 0);
  const NativeHandle server = Own(RunUntilDone(&accept));

  EXPECT_EQ(sockets_->GetSockName(client, &name), 0);
  ASSERT_EQ(peer.length, name.length);
  EXPECT_TRUE(std::equal(peer.bytes, peer.bytes + peer.length, name.bytes));
  SendAll(client, "ping");
  EXPECT_EQ(ReceiveAll(server, 4), "ping");
}

TEST_P(PollerConformanceTest, ConnectingToNobodyIsRefused) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  Retire(listener);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation connect;
  connect.PrepareConnect(client, &address);

  EXPECT_EQ(Do(&connect), -ECONNREFUSED);
}

TEST_P(PollerConformanceTest, SendsStartedWhileConnectingFollowTheConnect) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation accept, connect(&order_), send(&order_);
  accept.PrepareAccept(listener);
  connect.PrepareConnect(client, &address);
  send.PrepareSend(client, "hi", 2);
  Start(&accept);
  Start(&connect);
  Start(&send);

  EXPECT_EQ(RunUntilDone(&send), 2);
  const NativeHandle server = Own(RunUntilDone(&accept));

  EXPECT_THAT(order_, ::testing::ElementsAre(&connect, &send));
  EXPECT_EQ(ReceiveAll(server, 2), "hi");
}

TEST_P(PollerConformanceTest, AcceptsABurstUntilNobodyIsLeft) {
  constexpr int kClients = 100;
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  std::vector<std::unique_ptr<TestOperation>> connects;
  for (int i = 0; i < kClients; ++i) {
    const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
    connects.push_back(std::make_unique<TestOperation>());
    connects.back()->PrepareConnect(client, &address);
    Start(connects.back().get());
  }
  for (auto& connect : connects) EXPECT_EQ(RunUntilDone(connect.get()), 0);

  for (int i = 0; i < kClients; ++i) {
    TestOperation accept;
    accept.PrepareAccept(listener);
    Own(Do(&accept));
  }

  TestOperation accept;
  accept.PrepareAccept(listener);
  Start(&accept);
  EXPECT_EQ(Round(), 0);
}

// --- The end of a stream ---

TEST_P(PollerConformanceTest, TheEndOfAStreamIsZeroEveryTimeOneAsks) {
  const Pair pair = TcpPair();
  char byte;
  TestOperation waiting;
  waiting.PrepareRecv(pair.a, &byte, 1);
  Start(&waiting);

  sockets_->Shutdown(pair.b, ShutdownHow::kWrite);

  EXPECT_EQ(RunUntilDone(&waiting), 0);
  for (int i = 0; i < 3; ++i) {
    TestOperation recv;
    recv.PrepareRecv(pair.a, &byte, 1);
    EXPECT_EQ(Do(&recv), 0);
  }
}

TEST_P(PollerConformanceTest, AfterTheEndOneCanStillSend) {
  const Pair pair = TcpPair();
  sockets_->Shutdown(pair.b, ShutdownHow::kWrite);
  EXPECT_EQ(ReceiveAll(pair.a, 1), "");

  SendAll(pair.a, "the answer");

  EXPECT_EQ(ReceiveAll(pair.b, 10), "the answer");
}

// The read is short, and still there is more to come: the end.
TEST_P(PollerConformanceTest, DataAndEndInOneReportAreBothDelivered) {
  for (int i = 0; i < 50; ++i) {
    const Pair pair = i % 2 == 0 ? TcpPair() : StreamPair();
    char buffer[64];
    TestOperation recv, end;
    recv.PrepareRecv(pair.a, buffer, sizeof(buffer));
    end.PrepareRecv(pair.a, buffer, sizeof(buffer));
    Start(&recv);

    SendNow(pair.b, "last words");
    sockets_->Shutdown(pair.b, ShutdownHow::kWrite);

    ASSERT_EQ(RunUntilDone(&recv), 10);
    ASSERT_EQ(Do(&end), 0);
    Retire(pair.a);
    Retire(pair.b);
  }
}

TEST_P(PollerConformanceTest, TheEndThatComesAfterAShortReadIsDelivered) {
  const Pair pair = TcpPair();
  char buffer[64];
  TestOperation first, recv, end;
  first.PrepareRecv(pair.a, buffer, sizeof(buffer));
  recv.PrepareRecv(pair.a, buffer, sizeof(buffer));
  end.PrepareRecv(pair.a, buffer, sizeof(buffer));
  Start(&first);
  SendNow(pair.b, "words");
  ASSERT_EQ(RunUntilDone(&first), 5);
  Start(&recv);
  EXPECT_EQ(Round(In(1)), 0);

  SendNow(pair.b, "more");
  ASSERT_EQ(RunUntilDone(&recv), 4);
  Start(&end);
  Retire(pair.b);

  EXPECT_EQ(RunUntilDone(&end), 0);
}

TEST_P(PollerConformanceTest, AResetIsAnErrorToReaderAndWriter) {
  const Pair pair = TcpPair();
  char byte;
  TestOperation recv, send;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);

  sockets_->SetOption(pair.b, SocketOption::kLinger, 0);
  Retire(pair.b);

  EXPECT_EQ(RunUntilDone(&recv), -ECONNRESET);
  send.PrepareSend(pair.a, "x", 1);
  EXPECT_THAT(Do(&send), AnyOf(-EPIPE, -ECONNRESET));
}

TEST_P(PollerConformanceTest, AWriterThatWaitsIsToldThatThePeerHasGone) {
  const Pair pair = StreamPair();
  const std::string filling(1 << 20, '.');
  while (SendNow(pair.a, filling) > 0) {
  }
  TestOperation send;
  send.PrepareSend(pair.a, "x", 1);
  Start(&send);

  Retire(pair.b);

  EXPECT_THAT(RunUntilDone(&send), AnyOf(-EPIPE, -ECONNRESET));
}

// POLL 332
TEST_P(PollerConformanceTest, OnesOwnShutdownIsEpipe) {
  const Pair pair = TcpPair();
  sockets_->Shutdown(pair.a, ShutdownHow::kWrite);
  TestOperation send;
  send.PrepareSend(pair.a, "x", 1);

  EXPECT_EQ(Do(&send), -EPIPE);
}

// --- Streams, byte for byte ---

// Sends through a small buffer, so that nearly every send is partial.
TEST_P(PollerConformanceTest, PartialSendsLoseAndRepeatNothing) {
  const Pair pair = TcpPair();
  sockets_->SetOption(pair.a, SocketOption::kSendBuffer, 4'096);
  const std::string bytes = Pattern(2'000'000);
  std::string got(bytes.size(), '\0');
  size_t sent = 0, received = 0;
  TestOperation send, recv;

  while (received < bytes.size()) {
    if (send.state != Operation::State::kPending && sent < bytes.size()) {
      send.PrepareSend(pair.a, bytes.data() + sent, bytes.size() - sent);
      send.runs = 0;
      Start(&send);
    }
    if (recv.state != Operation::State::kPending) {
      recv.PrepareRecv(pair.b, got.data() + received, got.size() - received);
      recv.runs = 0;
      Start(&recv);
    }
    if (send.runs + recv.runs == 0) Round(In(10'000));
    ASSERT_TRUE(send.runs + recv.runs > 0);
    if (send.runs > 0) {
      ASSERT_GT(send.result, 0);
      sent += static_cast<size_t>(send.result);
      send.runs = 0;
    }
    if (recv.runs > 0) {
      ASSERT_GT(recv.result, 0);
      received += static_cast<size_t>(recv.result);
      recv.runs = 0;
    }
  }

  EXPECT_TRUE(got == bytes);
}

TEST_P(PollerConformanceTest, PiecesAreSentInOrderWhereverTheyAreSplit) {
  const Pair pair = TcpPair();
  sockets_->SetOption(pair.a, SocketOption::kSendBuffer, 4'096);
  std::string bytes = Pattern(300'000);
  std::string got(bytes.size(), '\0');
  std::mt19937 random(7);
  size_t sent = 0, received = 0;
  std::vector<Buffer> pieces;
  TestOperation send, recv;

  while (received < bytes.size()) {
    if (send.state != Operation::State::kPending && sent < bytes.size()) {
      pieces.clear();
      for (size_t at = sent; at < bytes.size() && pieces.size() < 100;) {
        const size_t size = std::min<size_t>(random() % 700, bytes.size() - at);  // Also 0.
        pieces.push_back({bytes.data() + at, size});
        at += size;
      }
      send.PrepareSendMsg(pair.a, pieces.data(), pieces.size());
      send.runs = 0;
      Start(&send);
    }
    if (recv.state != Operation::State::kPending) {
      recv.PrepareRecv(pair.b, got.data() + received,
                       std::min<size_t>(1 + random() % 5'000, got.size() - received));
      recv.runs = 0;
      Start(&recv);
    }
    if (send.runs + recv.runs == 0) Round(In(10'000));
    if (send.runs > 0) {
      ASSERT_GE(send.result, 0);
      sent += static_cast<size_t>(send.result);
      send.runs = 0;
    }
    if (recv.runs > 0) {
      ASSERT_GT(recv.result, 0);
      received += static_cast<size_t>(recv.result);
      recv.runs = 0;
    }
  }

  EXPECT_TRUE(got == bytes);
}

// Many streams at once, with cancelling at random; each stays whole.
TEST_P(PollerConformanceTest, StreamsStayWholeUnderRandomCancelling) {
  constexpr int kPairs = 20, kSteps = 4'000;
  struct Stream {
    Pair pair;
    std::string sent, got;
    char buffer[200];
    TestOperation recv;
  };
  std::mt19937 random(11);
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kPairs; ++i) {
    streams.push_back(std::make_unique<Stream>());
    streams.back()->pair = i % 2 == 0 ? TcpPair() : StreamPair();
  }
  const auto harvest = [](Stream* stream) {
    if (stream->recv.runs == 0) return;
    stream->recv.runs = 0;
    if (stream->recv.result > 0) {
      stream->got.append(stream->buffer, static_cast<size_t>(stream->recv.result));
    }
  };

  for (int step = 0; step < kSteps; ++step) {
    Stream* stream = streams[random() % kPairs].get();
    switch (random() % 4) {
      case 0: {
        const std::string piece = Pattern(1 + random() % 300);
        ASSERT_EQ(SendNow(stream->pair.b, piece), static_cast<int64_t>(piece.size()));
        stream->sent += piece;
        break;
      }
      case 1:
        if (stream->recv.state == Operation::State::kPending || stream->recv.is_linked()) break;
        stream->recv.PrepareRecv(stream->pair.a, stream->buffer, sizeof(stream->buffer));
        Start(&stream->recv);
        harvest(stream);
        break;
      case 2:
        poller().Cancel(&stream->recv);
        break;
      case 3:
        Round();
        for (auto& each : streams) harvest(each.get());
        break;
    }
  }

  for (auto& stream : streams) {
    poller().Cancel(&stream->recv);
    RunUntilQuiet();
    harvest(stream.get());
    stream->got += ReceiveAll(stream->pair.a, stream->sent.size() - stream->got.size());
    EXPECT_TRUE(stream->got == stream->sent);
  }
}

// --- Many ---

TEST_P(PollerConformanceTest, FourHundredReadyAtOnceAreAllServedOnce) {
  constexpr int kPairs = 400;
  std::vector<Pair> pairs;
  std::vector<std::unique_ptr<TestOperation>> ops;
  std::string bytes(kPairs, '\0');
  for (int i = 0; i < kPairs; ++i) {
    pairs.push_back(StreamPair());
    ops.push_back(std::make_unique<TestOperation>());
    ops.back()->PrepareRecv(pairs.back().a, &bytes[i], 1);
    Start(ops.back().get());
  }

  for (const Pair& pair : pairs) SendNow(pair.b, "x");
  for (auto& op : ops) ASSERT_EQ(RunUntilDone(op.get()), 1);
  RunUntilQuiet();

  EXPECT_EQ(bytes, std::string(kPairs, 'x'));
  for (auto& op : ops) EXPECT_EQ(op->runs, 1);
}

// POLL 327, A-13
TEST_P(PollerConformanceTest, OneBusyAmongManyIdleIsServed) {
  constexpr int kIdle = 2'500;  // Pairs: 5,000 handles.
  std::vector<std::unique_ptr<TestOperation>> ops;
  char byte;
  for (int i = 0; i < kIdle; ++i) {
    const Pair pair = StreamPair();
    for (const NativeHandle handle : {pair.a, pair.b}) {
      ops.push_back(std::make_unique<TestOperation>());
      ops.back()->PrepareRecv(handle, &byte, 1);
      Start(ops.back().get());
    }
  }
  const Pair busy = StreamPair();

  for (int i = 0; i < 1'000; ++i) {
    TestOperation recv;
    recv.PrepareRecv(busy.a, &byte, 1);
    Start(&recv);
    SendNow(busy.b, "x");
    ASSERT_EQ(RunUntilDone(&recv), 1);
  }

  for (auto& op : ops) EXPECT_EQ(op->runs, 0);
}

// --- Datagrams ---

TEST_P(PollerConformanceTest, AnEmptyDatagramIsAMessageAndNotTheEnd) {
  SockAddr address1, address2, source;
  const NativeHandle one = Datagram(&address1);
  const NativeHandle two = Datagram(&address2);
  char buffer[8];
  const Buffer piece = {buffer, sizeof(buffer)};
  TestOperation waiting, empty, full;
  waiting.PrepareRecvMsg(two, &piece, 1, &source);
  empty.PrepareSendMsg(one, nullptr, 0, &address2);
  Start(&waiting);

  EXPECT_EQ(Do(&empty), 0);
  EXPECT_EQ(RunUntilDone(&waiting), 0);

  ASSERT_EQ(source.length, address1.length);
  EXPECT_TRUE(std::equal(source.bytes, source.bytes + source.length, address1.bytes));
  const Buffer hello = {const_cast<char*>("hello"), 5};
  full.PrepareSendMsg(one, &hello, 1, &address2);
  EXPECT_EQ(Do(&full), 5);
  TestOperation recv;
  recv.PrepareRecv(two, buffer, sizeof(buffer));
  EXPECT_EQ(Do(&recv), 5);
}

// Each read is short, and nothing is lost: short says nothing about datagrams.
TEST_P(PollerConformanceTest, DatagramsThatComeTogetherAreAllReceived) {
  SockAddr address1, address2;
  const NativeHandle one = Datagram(&address1);
  const NativeHandle two = Datagram(&address2);
  TestOperation connect;
  connect.PrepareConnect(one, &address2);
  ASSERT_EQ(Do(&connect), 0);
  char buffer[64];

  for (int round = 0; round < 20; ++round) {
    TestOperation first;
    first.PrepareRecv(two, buffer, sizeof(buffer));
    Start(&first);
    for (int i = 0; i < 10; ++i) ASSERT_EQ(SendNow(one, std::string(i, 'd')), i);
    EXPECT_EQ(RunUntilDone(&first), 0);
    for (int i = 1; i < 10; ++i) {
      TestOperation recv;
      recv.PrepareRecv(two, buffer, sizeof(buffer));
      ASSERT_EQ(Do(&recv), i);
    }
  }
}

TEST_P(PollerConformanceTest, ADatagramIsTruncatedAndSaysSo) {
  SockAddr address1, address2;
  const NativeHandle one = Datagram(&address1);
  const NativeHandle two = Datagram(&address2);
  char buffer[4];
  const Buffer piece = {buffer, sizeof(buffer)};
  const Buffer hello = {const_cast<char*>("hello"), 5};
  TestOperation send, recv;
  send.PrepareSendMsg(one, &hello, 1, &address2);
  recv.PrepareRecvMsg(two, &piece, 1);
  Do(&send);

  EXPECT_EQ(Do(&recv), 4);
  EXPECT_NE(recv.message_flags, 0);
}

TEST_P(PollerConformanceTest, ARefusedDatagramIsAnErrorAndTheSocketStaysUsable) {
  SockAddr address1, address2;
  const NativeHandle one = Datagram(&address1);
  const NativeHandle gone = Datagram(&address2);
  TestOperation connect;
  connect.PrepareConnect(one, &address2);
  ASSERT_EQ(Do(&connect), 0);
  Retire(gone);
  char byte;
  TestOperation recv;
  recv.PrepareRecv(one, &byte, 1);
  Start(&recv);

  SendNow(one, "x");

  EXPECT_EQ(RunUntilDone(&recv), -ECONNREFUSED);
  const NativeHandle back = Own(sockets_->Open(SocketDomain::kInet, SocketType::kDatagram));
  ASSERT_EQ(sockets_->Bind(back, address2), 0);
  TestOperation send;
  send.PrepareSend(one, "again", 5);
  EXPECT_EQ(Do(&send), 5);
  EXPECT_EQ(ReceiveAll(back, 5), "again");
}

}  // namespace weft
