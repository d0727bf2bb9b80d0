// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program that was started without standard streams: nothing that weft opens takes the
// number of one, or what is written there would go to a peer.

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/datagram.h"
#include "weft/net/file.h"
#include "weft/net/pipe.h"
#include "weft/net/server.h"
#include "weft/net/socket.h"
#include "weft/net/test_net.h"
#include "weft/net/unix_socket.h"
#include "weft/poller/poller_registry.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::IsEmpty;

// As long as it lives there are none; so nothing can be said before its end.
class WithoutStandardStreams {
 public:
  WithoutStandardStreams() {
    for (int fd = 0; fd < 3; ++fd) kept_[fd] = ::fcntl(fd, F_DUPFD_CLOEXEC, 100);
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
  }
  ~WithoutStandardStreams() {
    for (int fd = 0; fd < 3; ++fd) {
      ::close(fd);
      if (kept_[fd] < 0) continue;
      ::dup2(kept_[fd], fd);
      ::close(kept_[fd]);
    }
  }

 private:
  int kept_[3];
};

using Complaints = std::vector<std::string>;

// All that opens something, with all of it open at the end.
class Opener {
 public:
  Opener(const ShortDirectory* directory, Complaints* complaints)
      : directory_(directory), complaints_(complaints) {}

  Coro<void> Run() {
    Look("the loop");
    co_await Rounds(3);
    GetRunningLoop().CallSoonThreadsafe([] {});
    co_await Rounds(100);
    Look("the loop, when it has polled");

    absl::StatusOr<std::pair<Socket, Socket>> pair = Socket::Pair();
    Check("a pair", pair.status());
    std::vector<Connection> accepted;
    auto handler = [&accepted](StreamReader reader, StreamWriter writer) -> Coro<void> {
      accepted.push_back(Connection(std::move(reader), std::move(writer)));
      co_return;
    };
    absl::StatusOr<Server> server = co_await StartServer(handler, "127.0.0.1", 0);
    Check("a server", server.status());
    absl::StatusOr<Connection> client = co_await OpenConnection("127.0.0.1", server->port());
    Check("a connection", client.status());
    while (accepted.empty()) co_await Yield();
    Look("an accepted connection");

    absl::StatusOr<Socket> listener = Socket::Open(SocketDomain::kInet);
    Check("a socket", listener.status());
    Check("to bind", listener->Bind(SocketAddress::Ipv4Loopback(0)));
    Check("to listen", listener->Listen());
    const SocketAddress address = listener->LocalAddress().value();
    absl::StatusOr<Connection> second = co_await OpenConnection(address);
    Check("a second connection", second.status());
    absl::StatusOr<Socket> taken = co_await listener->Accept();
    Check("an accepted socket", taken.status());

    absl::StatusOr<Datagram> datagram = co_await OpenDatagram("127.0.0.1", 9);
    Check("an endpoint for datagrams", datagram.status());

    const std::vector<NativeHandle> handles(3, listener->handle());
    absl::StatusOr<size_t> sent = co_await SendHandles(pair->first, "x", handles);
    Check("to send descriptors", sent.status());
    char byte;
    absl::StatusOr<ReceivedHandles> received =
        co_await ReceiveHandles(pair->second, absl::MakeSpan(&byte, 1), 3);
    Check("received descriptors", received.status());
    if (received.ok() && received->handles.size() != 3) Complain("not all were received");

    absl::StatusOr<Pipe> pipe = co_await OpenPipe();
    Check("a pipe", pipe.status());
    const std::string path = directory_->File("p");
    Check("to make a named pipe", MakeNamedPipe(path));
    absl::StatusOr<StreamReader> named = co_await OpenNamedPipeReader(path);
    Check("a named pipe", named.status());
    ::unlink(path.c_str());
    absl::StatusOr<File> file = co_await File::Open("/dev/null");
    Check("a file", file.status());

    server->Close();
  }

 private:
  void Complain(std::string what) { complaints_->push_back(std::move(what)); }
  void Look(std::string_view what) {
    for (int fd = 0; fd < 3; ++fd) {
      if (::fcntl(fd, F_GETFD) >= 0) Complain(absl::StrCat(what, " is descriptor ", fd));
    }
  }
  void Check(std::string_view what, const absl::Status& status) {
    if (!status.ok()) Complain(absl::StrCat(what, ": ", status.ToString()));
    Look(what);
  }

  const ShortDirectory* directory_;
  Complaints* complaints_;
};

class StandardStreamsTest : public NetTest {};

TEST_F(StandardStreamsTest, NothingTakesThePlaceOfOne) {
  for (const PollerInfo& info : AvailablePollers()) {
    if (!info.status.ok()) continue;
    const ShortDirectory directory;
    Complaints complaints;
    {
      const WithoutStandardStreams without;
      RunOptions options;
      options.poller = info.name;
      Opener opener(&directory, &complaints);
      weft::Run(opener.Run(), options);
    }
    EXPECT_THAT(complaints, IsEmpty()) << info.name;
  }
}

}  // namespace
}  // namespace weft
