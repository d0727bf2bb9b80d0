// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/unix_socket.h"

#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connect.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/net/server.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using MaybeReceived = absl::StatusOr<ReceivedHandles>;
using Text = absl::StatusOr<std::string>;

class UnixSocketTest : public NetTest {};

// A pipe that has this in it: its read end.
UniqueHandle PipeWith(const std::string& text) {
  const internal::RawPipe ends = internal::OpenRawPipe().value();
  EXPECT_EQ(::write(static_cast<int>(ends.write_end), text.data(), text.size()),
            static_cast<ssize_t>(text.size()));
  internal::CloseRaw(ends.write_end);
  return UniqueHandle(ends.read_end);
}

std::string ReadAll(const UniqueHandle& handle) {
  char buffer[100];
  const ssize_t count = ::read(static_cast<int>(handle.get()), buffer, sizeof(buffer));
  return std::string(buffer, static_cast<size_t>(count < 0 ? 0 : count));
}

WEFT_TEST_F(UnixSocketTest, TheKernelSaysWhoThePeerIs) {
  std::pair<Socket, Socket> pair = Socket::Pair().value();
  absl::StatusOr<PeerCredentials> peer = GetPeerCredentials(pair.first);
  WEFT_ASSERT_OK(peer.status());
  EXPECT_EQ(peer->process, ::getpid());
  EXPECT_EQ(peer->user, ::getuid());
  EXPECT_EQ(peer->group, ::getgid());

  Socket tcp = Socket::Open(SocketDomain::kInet).value();
  EXPECT_FALSE(GetPeerCredentials(tcp).ok());
  Socket alone = Socket::Open(SocketDomain::kUnix).value();
  EXPECT_FALSE(GetPeerCredentials(alone).ok());
  EXPECT_FALSE(GetPeerCredentials(Socket()).ok());
  co_return;
}

WEFT_TEST_F(UnixSocketTest, AServerKnowsWhoItsClientIs) {
  PeerCredentials peer;
  auto handler = [&peer](StreamReader, StreamWriter writer) -> Coro<void> {
    peer = GetPeerCredentials(writer.socket()).value();
    co_return;
  };
  const std::string name = absl::StrCat(std::string(1, '\0'), "weft unix_socket_test ", ::getpid());
  absl::StatusOr<Server> server = co_await StartUnixServer(handler, name);
  absl::StatusOr<Connection> client = co_await OpenUnixConnection(name);
  WEFT_ASSERT_OK(client.status());
  Text all = co_await client->reader.Read();
  EXPECT_EQ(peer.process, ::getpid());
}

WEFT_TEST_F(UnixSocketTest, DescriptorsGoFromOneToTheOther) {
  std::pair<Socket, Socket> pair = Socket::Pair().value();
  UniqueHandle one = PipeWith("one"), two = PipeWith("two");
  const std::vector<NativeHandle> both = {one.get(), two.get()};

  absl::StatusOr<size_t> sent = co_await SendHandles(pair.first, "data", both);
  EXPECT_EQ(sent.value(), 4u);
  char buffer[100];
  MaybeReceived received = co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), 5);

  WEFT_ASSERT_OK(received.status());
  EXPECT_EQ(std::string(buffer, received->size), "data");
  EXPECT_FALSE(received->is_truncated);
  WEFT_ASSERT_EQ(received->handles.size(), 2u);
  EXPECT_NE(received->handles[0].get(), one.get());
  for (const UniqueHandle& handle : received->handles) {
    EXPECT_NE(::fcntl(static_cast<int>(handle.get()), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(ReadAll(received->handles[0]), "one");
  EXPECT_EQ(ReadAll(received->handles[1]), "two");

  // Data without descriptors, and the end.
  absl::Status plain = co_await pair.first.SendAll("x");
  WEFT_EXPECT_OK(plain);
  received = co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), 5);
  EXPECT_EQ(received->size, 1u);
  EXPECT_TRUE(received->handles.empty());
  pair.first.Close();
  received = co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), 5);
  EXPECT_EQ(received->size, 0u);
}

// Those that there is no room for are closed by the kernel, and it is said.
WEFT_TEST_F(UnixSocketTest, NoMoreDescriptorsThanAskedFor) {
  std::pair<Socket, Socket> pair = Socket::Pair().value();
  UniqueHandle pipe = PipeWith("x");
  const std::vector<NativeHandle> many(kMaxHandles, pipe.get());
  char buffer[1];
  for (const size_t room : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, kMaxHandles}) {
    absl::StatusOr<size_t> sent = co_await SendHandles(pair.first, "x", many);
    WEFT_ASSERT_OK(sent.status());
    MaybeReceived received = co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), room);
    WEFT_ASSERT_OK(received.status());
    EXPECT_EQ(received->handles.size(), room);
    EXPECT_EQ(received->is_truncated, room < kMaxHandles);
  }
}

WEFT_TEST_F(UnixSocketTest, ArgumentsAreChecked) {
  std::pair<Socket, Socket> pair = Socket::Pair().value();
  const std::vector<NativeHandle> none;
  const std::vector<NativeHandle> too_many(kMaxHandles + 1, 0);
  const std::vector<NativeHandle> closed(1, 12345);
  char buffer[1];
  EXPECT_THROW(static_cast<void>(SendHandles(pair.first, "", none)), ValueError);
  EXPECT_THROW(static_cast<void>(SendHandles(pair.first, "x", too_many)), ValueError);
  EXPECT_THROW(static_cast<void>(ReceiveHandles(pair.first, absl::MakeSpan(buffer), 254)),
               ValueError);
  absl::StatusOr<size_t> sent = co_await SendHandles(pair.first, "x", closed);
  EXPECT_EQ(ErrnoOf(sent.status()), EBADF);
  EXPECT_THAT(std::string(sent.status().message()), HasSubstr("send descriptors"));
  Socket nothing;
  MaybeReceived received = co_await ReceiveHandles(nothing, absl::MakeSpan(buffer), 1);
  EXPECT_EQ(ErrnoOf(received.status()), EBADF);
}

// Descriptors that came, and that nobody took, are closed; the fixture counts.
WEFT_TEST_F(UnixSocketTest, CancellingLeaksNoDescriptor) {
  UniqueHandle pipe = PipeWith("x");
  const std::vector<NativeHandle> one(1, pipe.get());
  char buffer[10];
  int got = 0, cancelled = 0;
  for (int i = 0; i < 40; ++i) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    auto receive = [&]() -> Coro<MaybeReceived> {
      co_return co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), 1);
    };
    Task<MaybeReceived> receiving = CreateTask(receive);
    co_await Rounds(i % 3);
    absl::StatusOr<size_t> sent = co_await SendHandles(pair.first, "x", one);
    co_await Rounds(i % 4);
    receiving.Cancel();
    Outcome<MaybeReceived> outcome = co_await NoThrow(std::move(receiving));
    ++(outcome.cancelled() ? cancelled : got);
  }
  EXPECT_GT(got, 0);
  EXPECT_GT(cancelled, 0);
}

TEST_F(UnixSocketTest, LoopClosesWithADescriptorOnItsWay) {
  for (int rounds = 0; rounds < 8; ++rounds) {
    std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    auto main = []() -> Coro<void> {
      std::pair<Socket, Socket> pair = Socket::Pair().value();
      UniqueHandle pipe = PipeWith("x");
      const std::vector<NativeHandle> one(1, pipe.get());
      auto receive = [&pair]() -> Coro<void> {
        char buffer[10];
        MaybeReceived received = co_await ReceiveHandles(pair.second, absl::MakeSpan(buffer), 1);
        co_await Rounds(100);
      };
      Task<void> receiving = CreateTask(receive);
      co_await Yield();
      absl::StatusOr<size_t> sent = co_await SendHandles(pair.first, "x", one);
      co_await Rounds(100);
    };
    Task<void> running = loop->CreateTask(main());
    for (int i = 0; i < rounds; ++i) loop->RunOnce(absl::ZeroDuration());
    loop->Close();
  }
}

}  // namespace
}  // namespace weft
