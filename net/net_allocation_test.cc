// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all allocations: what is done again and again
// on a connection makes none.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_echo.h"
#include "weft/net/test_net.h"
#include "weft/testing/allocation_counter.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class NetAllocationTest : public NetTest {
 protected:
  // How many buffers are under way at once is the kernel's affair if it completes. Some more
  // than ever may be needed, but not one for each of a thousand trips.
  static int64_t MostNewBuffers() { return TestPollerCompletes() ? 8 : 0; }
};

WEFT_TEST_F_IN_REAL_TIME(NetAllocationTest, StreamsInTheirSteadyStateAllocateNothing) {
  const int64_t most = MostNewBuffers();
  for (size_t size : {64, 2000, 20000}) {
    StreamPair pair(co_await TcpPair());
    // As for a server's. What comes in two pieces would be echoed with a wait in between.
    for (Connection* connection : {&pair.a, &pair.b}) {
      EXPECT_TRUE(connection->writer.socket().SetOption(SocketOption::kNoDelay, 1).ok());
    }
    Task<void> echo = CreateTask(EchoByFill(pair.b));
    std::string buffer(size, 'x');
    co_await AskEcho(pair.a, buffer.data(), size, TestPollerCompletes() ? 100 : 20);
    const int64_t before = AllocationsSoFar();

    co_await AskEcho(pair.a, buffer.data(), size, 1000);

    if (kHasFreeLists) {
      EXPECT_LE(AllocationsSoFar() - before, most) << size;
    }
    pair.a.writer.Close();
    co_await echo;
  }
}

// Ready in the same round, all of them.
WEFT_TEST_F_IN_REAL_TIME(NetAllocationTest, SoDoManyConnectionsAtOnce) {
  for (size_t size : {64, 16384}) {
    std::vector<std::unique_ptr<StreamPair>> pairs;
    std::vector<Task<void>> echoes;
    std::vector<std::string> buffers(64, std::string(size, 'x'));
    for (size_t i = 0; i < buffers.size(); ++i) {
      pairs.push_back(std::make_unique<StreamPair>());
      echoes.push_back(CreateTask(EchoByFill(pairs[i]->b)));
    }
    const int64_t most = MostNewBuffers();
    int64_t before = 0;
    std::vector<Task<void>> asking(buffers.size());
    for (int round = 0; round < 3; ++round) {
      before = AllocationsSoFar();
      for (size_t i = 0; i < buffers.size(); ++i) {
        asking[i] = CreateTask(AskEcho(pairs[i]->a, buffers[i].data(), size, 50));
      }
      for (Task<void>& task : asking) co_await task;
    }
    if (kHasFreeLists) {
      EXPECT_LE(AllocationsSoFar() - before, most) << size;
    }
    for (auto& pair : pairs) pair->a.writer.Close();
    for (Task<void>& task : echoes) co_await task;
  }
}

WEFT_TEST_F_IN_REAL_TIME(NetAllocationTest, SocketsInTheirSteadyStateAllocateNothing) {
  auto [a, b] = Socket::Pair().value();
  auto echo = [](Socket& socket) -> Coro<void> {
    char buffer[100];
    while (true) {
      absl::StatusOr<size_t> count = co_await socket.Recv(absl::MakeSpan(buffer));
      if (!count.ok() || *count == 0) co_return;
      absl::Status sent = co_await socket.SendAll(std::string_view(buffer, *count));
    }
  };
  Task<void> echoing = CreateTask(echo, std::ref(b));
  int64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i == 20) before = AllocationsSoFar();
    char buffer[100];
    absl::Status sent = co_await a.SendAll("hello");
    absl::StatusOr<size_t> count = co_await a.Recv(absl::MakeSpan(buffer));
    EXPECT_EQ(count.value(), 5u);
  }
  if (kHasFreeLists) {
    EXPECT_EQ(AllocationsSoFar() - before, 0);
  }
  a.Close();
  co_await echoing;
}

}  // namespace
}  // namespace weft
