// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all calls of operator new: what is done again and
// again on a connection by TLS makes none. (OpenSSL has malloc of its own, for the buffer
// of a record while it is at work.)

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_echo.h"
#include "weft/net/test_tls.h"
#include "weft/testing/allocation_counter.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class TlsAllocationTest : public TlsTest {};

WEFT_TEST_F_IN_REAL_TIME(TlsAllocationTest, TheSteadyStateAllocatesNothing) {
  const TlsContext client = ClientContext(), server = ServerContext();
  for (size_t size : {64, 2000, 20000}) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    TlsEnds ends = co_await Shake(std::move(pair), client, server);
    Task<void> echo = CreateTask(EchoByFill(ends.server));
    std::string buffer(size, 'x');
    co_await AskEcho(ends.client, buffer.data(), size, 50);
    const int64_t before = AllocationsSoFar();

    co_await AskEcho(ends.client, buffer.data(), size, 1000);

    if (kHasFreeLists) {
      EXPECT_EQ(AllocationsSoFar() - before, 0) << size;
    }
    ends.client.writer.Close();
    co_await echo;
    ends.server.writer.Close();
  }
}

}  // namespace
}  // namespace weft
