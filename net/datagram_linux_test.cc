// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What only Linux refuses.

#include <sys/socket.h>

#include <string>

#include "gtest/gtest.h"
#include "weft/net/datagram.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using MaybeDatagram = absl::StatusOr<Datagram>;
using MaybePacket = absl::StatusOr<Packet>;

class DatagramLinuxTest : public NetTest {};

// A socket without checksums cannot have the kernel cut.
WEFT_TEST_F(DatagramLinuxTest, SegmentsThatTheKernelRefusesToCut) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  MaybeDatagram server = co_await OpenDatagram(options);
  WEFT_ASSERT_OK(server.status());
  options.remote_address = server->LocalAddress().value();
  MaybeDatagram client = co_await OpenDatagram(options);
  WEFT_ASSERT_OK(client.status());
  const int on = 1;
  absl::Status set = client->socket().SetRawOption(SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on));
  WEFT_ASSERT_OK(set);

  absl::Status sent = co_await client->SendSegments("abcde", 2);

  WEFT_EXPECT_OK(sent);
  for (const std::string expected : {"ab", "cd", "e"}) {
    MaybePacket packet = co_await server->Receive();
    WEFT_ASSERT_OK(packet.status());
    EXPECT_EQ(packet->data, expected);
  }
}

}  // namespace
}  // namespace weft
