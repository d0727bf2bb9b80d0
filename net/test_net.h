// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TEST_NET_H_
#define WEFT_NET_TEST_NET_H_

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/core/sleep.h"
#include "weft/net/socket.h"
#include "weft/net/stream.h"
#include "weft/poller/native_handle.h"

namespace weft {

// How many descriptors this process has open; on Windows, of files and sockets.
int CountDescriptors();

// Whether child processes inherit it.
bool IsInherited(NativeHandle handle);

// Whether sockets may have an address in the file system.
bool HasUnixSockets();

// Whether several sockets may have one port.
bool CanSharePorts();

// Whether sockets may join groups.
bool HasMulticast();

// Whether a connection that is reset while nobody reads says so to the next who does.
bool KeepsResets();
// Whether this system tells a peer that had said all, and then hears no more, from one that
// has broken off: by EPIPE. Windows does not, and has what was unread go with the connection.
bool TellsEndsFromResets();

// Whether it is told for sure that nobody listens at the port a datagram was for: to whoever
// waits, or else to whoever sends or receives next.
bool TellsOfUnreachablePorts();

// A test that fails if it leaks a descriptor. A thread that has done something for a loop
// may hold that by which it was woken for a moment longer than the loop lives.
class NetTest : public ::testing::Test {
 protected:
  ~NetTest() override {
    const absl::Time late = absl::Now() + absl::Seconds(10);
    while (CountDescriptors() != descriptors_before_ && absl::Now() < late) {
      std::this_thread::yield();
    }
    EXPECT_EQ(CountDescriptors(), descriptors_before_) << "descriptors are leaked";
  }

 private:
  const int descriptors_before_ = CountDescriptors();
};

// One that needs Unix sockets, and is skipped where there are none.
class UnixNetTest : public NetTest {
 protected:
  void SetUp() override {
    if (!HasUnixSockets()) GTEST_SKIP() << "this system has no Unix sockets";
  }
};

// Two ends of a connection, as streams.
struct StreamPair {
  StreamPair() : StreamPair(Socket::Pair().value()) {}
  explicit StreamPair(std::pair<Socket, Socket> sockets, size_t limit = kDefaultStreamLimit)
      : a(ToConnection(std::move(sockets.first), limit)),
        b(ToConnection(std::move(sockets.second), limit)) {}

  Connection a;
  Connection b;
};

// The same over TCP.
inline Coro<std::pair<Socket, Socket>> TcpPair() {
  Socket listener = Socket::Open(SocketDomain::kInet).value();
  EXPECT_TRUE(listener.Bind(SocketAddress::Ipv4Loopback(0)).ok());
  EXPECT_TRUE(listener.Listen().ok());
  Socket client = Socket::Open(SocketDomain::kInet).value();
  absl::Status connected = co_await client.Connect(listener.LocalAddress().value());
  EXPECT_TRUE(connected.ok()) << connected;
  absl::StatusOr<Socket> accepted = co_await listener.Accept();
  EXPECT_TRUE(accepted.ok()) << accepted.status();
  co_return std::make_pair(std::move(client), *std::move(accepted));
}

// Bytes that tell where they stand.
inline std::string Pattern(size_t size, uint32_t seed = 1) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

// A directory with a short name: the path of a Unix socket may have no more than 107
// characters, and those of a test's own directories have.
class ShortDirectory {
 public:
  ShortDirectory();
  ~ShortDirectory();
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

// What is there, by value: `value()` of a temporary is a reference into it.
template <class T>
T Get(absl::StatusOr<T> maybe) {
  return *std::move(maybe);
}

// Lets the loop run so many rounds.
inline Coro<void> Rounds(int count) {
  for (int i = 0; i < count; ++i) co_await Yield();
}

}  // namespace weft

#endif  // WEFT_NET_TEST_NET_H_
