// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The system calls themselves, as the poller makes them: this program has some of its
// own in place of the C library's. What a kernel may do at any time (be interrupted,
// have no room or nothing there, take or give less than asked for) has to go
// unnoticed, to the last byte; what it may refuse has to be an error. What lies above
// is in net_faults_test.cc.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/datagram.h"
#include "weft/net/errno_status.h"
#include "weft/net/server.h"
#include "weft/net/test_net.h"

namespace {

// What goes wrong. One loop, one thread: no locks.
struct Kernel {
  bool enabled = false;
  uint32_t one_in = 3;
  bool refuses_to_watch = false;  // epoll_ctl(EPOLL_CTL_ADD) fails, now and then.
  std::mt19937 random;
  uint64_t faults = 0;

  // How each descriptor is watched. A kernel that says EAGAIN reports when that is
  // over; one that only pretends has to be made to.
  struct Watch {
    int epoll_fd;
    epoll_event event;
  };
  std::map<int, Watch> watched;

  bool Chance() {
    if (!enabled || random() % one_in != 0) return false;
    ++faults;
    return true;
  }

  void ReportAgain(int fd) {
    const auto found = watched.find(fd);
    if (found == watched.end()) return;
    ::syscall(SYS_epoll_ctl, found->second.epoll_fd, EPOLL_CTL_MOD, fd, &found->second.event);
  }

  // An interruption, or EAGAIN; false for neither.
  bool Fails(int fd, bool may_block = true) {
    if (!Chance()) return false;
    if (!may_block || random() % 2 == 0) {
      errno = EINTR;
      return true;
    }
    ReportAgain(fd);
    errno = EAGAIN;
    return true;
  }

  size_t Shorten(int fd, size_t size) {
    if (size < 2 || !Chance()) return size;
    ReportAgain(fd);
    return 1 + random() % (size - 1);
  }
} kernel;

}  // namespace

extern "C" {

ssize_t recv(int fd, void* data, size_t size, int flags) {
  if (kernel.Fails(fd)) return -1;
  return ::syscall(SYS_recvfrom, fd, data, kernel.Shorten(fd, size), flags, nullptr, nullptr);
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  if (kernel.Fails(fd)) return -1;
  return ::syscall(SYS_sendto, fd, data, kernel.Shorten(fd, size), flags, nullptr, 0);
}

ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (kernel.Fails(fd)) return -1;
  msghdr header = *message;
  // One that has an address is a datagram.
  if (header.msg_name == nullptr) header.msg_iovlen = kernel.Shorten(fd, header.msg_iovlen);
  return ::syscall(SYS_sendmsg, fd, &header, flags);
}

ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (kernel.Fails(fd)) return -1;
  return ::syscall(SYS_recvmsg, fd, message, flags);
}

int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  if (kernel.Fails(fd)) return -1;
  count = static_cast<unsigned>(kernel.Shorten(fd, count));
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, messages, count, flags, timeout));
}

int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (kernel.Fails(fd)) return -1;
  count = static_cast<unsigned>(kernel.Shorten(fd, count));
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, messages, count, flags));
}

int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  if (kernel.Chance()) {
    // Of these accept(2) says to go on as if nothing had been there.
    constexpr int kErrors[] = {EINTR, EAGAIN, ECONNABORTED, EPROTO};
    errno = kErrors[kernel.random() % 4];
    kernel.ReportAgain(fd);
    return -1;
  }
  return static_cast<int>(::syscall(SYS_accept4, fd, address, length, flags));
}

int connect(int fd, const sockaddr* address, socklen_t length) {
  const int result = static_cast<int>(::syscall(SYS_connect, fd, address, length));
  if (result < 0 && errno == EINPROGRESS && kernel.Chance()) errno = EINTR;  // It goes on.
  return result;
}

int poll(pollfd* entries, nfds_t count, int timeout) {
  if (kernel.Fails(-1, /*may_block=*/false)) return -1;
  timespec limit = {timeout / 1000, timeout % 1000 * 1'000'000};
  return static_cast<int>(
      ::syscall(SYS_ppoll, entries, count, timeout < 0 ? nullptr : &limit, nullptr, 0));
}

int epoll_wait(int fd, epoll_event* events, int count, int timeout) {
  if (kernel.Fails(-1, /*may_block=*/false)) return -1;
  // Some now, and the others in the next call.
  if (count > 1 && kernel.Chance()) count = 1;
  return static_cast<int>(::syscall(SYS_epoll_pwait, fd, events, count, timeout, nullptr, 0));
}

int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) noexcept {
  if (kernel.refuses_to_watch && operation == EPOLL_CTL_ADD && kernel.Chance()) {
    errno = kernel.random() % 2 == 0 ? ENOMEM : ENOSPC;
    return -1;
  }
  const int result = static_cast<int>(::syscall(SYS_epoll_ctl, epoll_fd, operation, fd, event));
  if (result < 0) return result;
  if (operation == EPOLL_CTL_DEL) {
    kernel.watched.erase(fd);
  } else {
    kernel.watched[fd] = {epoll_fd, *event};
  }
  return result;
}

}  // extern "C"

namespace weft {
namespace {

using Text = absl::StatusOr<std::string>;
using MaybeConnection = absl::StatusOr<Connection>;

class SyscallFaultsTest : public NetTest {
 protected:
  void Begin(uint32_t seed) {
    kernel = Kernel();
    kernel.random.seed(seed);
    kernel.enabled = true;
  }
  ~SyscallFaultsTest() override { kernel = Kernel(); }
};

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> data = co_await reader.Fill();
    if (!data.ok() || data->empty()) co_return;
    writer.Write(std::string_view(data->data(), data->size()));
    reader.Consume(data->size());
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) co_return;
  }
}

// Sends `text` to an echo server, and gives what comes back.
Coro<Text> Ask(SocketAddress address, std::string text) {
  MaybeConnection connection = co_await OpenConnection(address);
  if (!connection.ok()) co_return connection.status();
  auto send = [](StreamWriter& writer, const std::string& data) -> Coro<void> {
    for (size_t begin = 0; begin < data.size(); begin += 7000) {
      writer.Write(std::string_view(data).substr(begin, 7000));
      absl::Status sent = co_await writer.Drain();
      if (!sent.ok()) co_return;
    }
    writer.WriteEof();
  };
  Task<void> sending = CreateTask(send, std::ref(connection->writer), std::cref(text));
  Text answer = co_await connection->reader.Read();
  sending.Cancel();
  co_await NoThrow(sending);
  co_return answer;
}

Coro<void> AskManyTimes(uint32_t seed, int* answered) {
  absl::StatusOr<Server> server = co_await StartServer(Echo, "127.0.0.1", 0);
  if (!server.ok()) co_return;
  std::vector<Task<Text>> asking;
  std::vector<std::string> texts;
  for (uint32_t i = 0; i < 5; ++i) {
    texts.push_back(Pattern(i * 40000 + 1, seed + i));
    asking.push_back(CreateTask(Ask(server->addresses().front(), texts.back())));
  }
  for (size_t i = 0; i < asking.size(); ++i) {
    Text answer = co_await std::move(asking[i]);
    if (!answer.ok()) continue;
    // With errors on the way, what has come may be less, but never something else.
    EXPECT_TRUE(*answer == texts[i].substr(0, answer->size())) << "seed " << seed;
    if (answer->size() == texts[i].size()) ++*answered;
  }
  server->Close();
  server->CloseClients();
  co_await server->WaitClosed();
}

// Runs it for so long, for a test that hangs to fail.
Coro<void> InTime(Coro<void> what, uint32_t seed) {
  Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(100), std::move(what)));
  // (A run that ends because the poller cannot go on cancels it.)
  EXPECT_TRUE(outcome.has_value() || outcome.cancelled()) << "seed " << seed << " hangs";
}

TEST_F(SyscallFaultsTest, WhatAKernelMayDoIsNotNoticed) {
  uint64_t faults = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    Begin(seed);
    int answered = 0;
    weft::Run(InTime(AskManyTimes(seed, &answered), seed));
    EXPECT_EQ(answered, 5) << "seed " << seed;
    faults += kernel.faults;
  }
  EXPECT_GT(faults, 1000u);
}

TEST_F(SyscallFaultsTest, WhatCannotBeWatchedIsAnError) {
  int answered = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Begin(seed);
    kernel.refuses_to_watch = true;
    kernel.one_in = 8;
    auto main = [&answered, seed]() -> Coro<void> {
      GetRunningLoop().SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
      Coro<void> asking = AskManyTimes(seed, &answered);
      co_await InTime(std::move(asking), seed);
    };
    try {
      weft::Run(main());
    } catch (const RuntimeError&) {
      // The poller could not watch its own descriptors: it cannot go on.
    }
  }
  EXPECT_GT(answered, 0);
  EXPECT_LT(answered, 60 * 5);
}

Coro<void> SendDatagrams(uint32_t seed, int* received) {
  DatagramOptions options;
  options.local_address = SocketAddress::Ipv4Loopback(0);
  absl::StatusOr<Datagram> server = co_await OpenDatagram(options);
  options.remote_address = server->LocalAddress().value();
  absl::StatusOr<Datagram> client = co_await OpenDatagram(options);
  std::vector<std::string> texts;
  for (int i = 0; i < 50; ++i) texts.push_back(absl::StrCat("datagram ", i));
  for (int i = 0; i < 20; ++i) {
    absl::Status sent = co_await client->Send(texts[static_cast<size_t>(i)]);
    EXPECT_TRUE(sent.ok()) << sent;
  }
  std::vector<Outgoing> many;
  for (int i = 20; i < 50; ++i) many.emplace_back(texts[static_cast<size_t>(i)]);
  absl::StatusOr<size_t> count = co_await client->SendMany(many);
  EXPECT_EQ(count.value(), 30u) << "seed " << seed;
  for (const std::string& text : texts) {
    absl::StatusOr<Packet> packet = co_await server->Receive();
    EXPECT_EQ(packet->data, text) << "seed " << seed;
    ++*received;
  }
}

TEST_F(SyscallFaultsTest, NorByDatagrams) {
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    Begin(seed);
    int received = 0;
    weft::Run(InTime(SendDatagrams(seed, &received), seed));
    EXPECT_EQ(received, 50);
  }
}

}  // namespace
}  // namespace weft
