// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/server.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/no_throw.h"
#include "weft/net/connect.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_net.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  while (true) {
    absl::StatusOr<std::string> some = co_await reader.Read(65536);
    if (!some.ok() || some->empty()) break;
    writer.Write(*some);
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) break;
  }
  writer.Close();
}

// 234.
TEST(ServerTest, EchoesWhatAClientSends) {
  RunTest([]() -> Coro<void> {
    absl::StatusOr<Server> server = co_await StartServer(Echo, "127.0.0.1", 0);
    EXPECT_TRUE(server.ok()) << server.status();
    EXPECT_NE(server->port(), 0);
    EXPECT_TRUE(server->IsServing());

    absl::StatusOr<Connection> client = co_await OpenConnection("127.0.0.1", server->port());
    EXPECT_TRUE(client.ok()) << client.status();
    client->writer.Write("hello\nworld\n");
    client->writer.WriteEof();
    absl::StatusOr<std::string> all = co_await client->reader.Read();

    EXPECT_TRUE(all.ok()) << all.status();
    EXPECT_EQ(*all, "hello\nworld\n");
    server->Close();
    co_await server->WaitClosed();
  });
}

}  // namespace
}  // namespace weft
