// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A socket option of Linux makes the kernel refuse what it does otherwise.

#include <sys/socket.h>

#include <string>

#include "gtest/gtest.h"
#include "weft/net/datagram.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class DatagramLinuxTest : public NetTest {};

// A socket without checksums.
WEFT_TEST_F(DatagramLinuxTest, SegmentsThatTheKernelRefusesToCut) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  Datagram server = Get(co_await OpenDatagram(options));
  options.remote_address = server.LocalAddress().value();
  Datagram client = Get(co_await OpenDatagram(options));
  const int on = 1;
  absl::Status set = client.socket().SetRawOption(SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
  WEFT_ASSERT_OK(set);
  absl::Status sent = co_await client.SendSegments("abcde", 2);
  WEFT_EXPECT_OK(sent);
  for (const std::string expected : {"ab", "cd", "e"}) {
    Packet packet = Get(co_await server.Receive());
    EXPECT_EQ(packet.data, expected);
  }
}

}  // namespace
}  // namespace weft
