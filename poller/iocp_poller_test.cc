// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/iocp_poller.h"

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Iocp, PollerConformanceTest, ::testing::Values(&MakeIocpPoller));

namespace {

class IocpPollerTest : public PollerConformanceTest {};

// Drivers may cancel what a thread has asked for when it ends.
TEST_P(IocpPollerTest, WhatAThreadHasStartedThatHasEndedGoesOn) {
  const Pair pair = StreamPair();
  char byte = 0;
  TestOperation recv, wait;
  recv.PrepareRecv(pair.a, &byte, 1);
  wait.PrepareWaitReadable(pair.b);
  std::thread([&] {
    Start(&recv);
    Start(&wait);
    Round();
  }).join();

  EXPECT_EQ(Round(), 0);
  SendNow(pair.b, "x");
  SendNow(pair.a, "y");

  EXPECT_EQ(RunUntilDone(&recv), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(RunUntilDone(&wait), 0);
}

// The connection that comes while an accept is being cancelled is taken, or stays for the
// next; TearDown() counts the sockets that were made for it.
TEST_P(IocpPollerTest, AcceptsThatAreCancelledLeaveNoSocket) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  for (int i = 0; i < 20; ++i) {
    TestOperation accept;
    accept.PrepareAccept(listener);
    Start(&accept);
    if (i % 2 == 0) Round();
    poller().Cancel(&accept);
    EXPECT_EQ(RunUntilDone(&accept), -ECANCELED);
  }
}

// Those behind the first have to be started when it has ended, and not before.
TEST_P(IocpPollerTest, ReceivesOfAllKindsOnOneSocketEndInTheirOrder) {
  const Pair pair = TcpPair();
  std::vector<std::unique_ptr<TestOperation>> ops;
  std::vector<Operation*> started;
  char bytes[30] = {};
  const Buffer piece = {bytes, 1};
  for (int i = 0; i < 30; ++i) {
    ops.push_back(std::make_unique<TestOperation>(&order_));
    if (i % 3 == 0) ops.back()->PrepareRecv(pair.a, &bytes[i], 1);
    if (i % 3 == 1) ops.back()->PrepareRecvMsg(pair.a, &piece, 1);
    if (i % 3 == 2) ops.back()->PrepareRead(pair.a, &bytes[i], 1);
    started.push_back(ops.back().get());
    Start(ops.back().get());
  }

  SendNow(pair.b, std::string(30, 'x'));
  for (auto& op : ops) EXPECT_EQ(RunUntilDone(op.get()), 1);

  EXPECT_EQ(order_, started);
}

// Windows peeks only without waiting, so it is waited for in another way.
TEST_P(IocpPollerTest, APeekWaitsAndTakesNothing) {
  constexpr int kPeek = 2;  // MSG_PEEK.
  const Pair pair = TcpPair();
  char byte = 0;
  TestOperation peek;
  peek.PrepareRecv(pair.a, &byte, 1, kPeek);
  Start(&peek);
  EXPECT_EQ(Round(), 0);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&peek), 1);

  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(ReceiveAll(pair.a, 1), "x");
}

INSTANTIATE_TEST_SUITE_P(Iocp, IocpPollerTest, ::testing::Values(&MakeIocpPoller));

}  // namespace
}  // namespace weft
