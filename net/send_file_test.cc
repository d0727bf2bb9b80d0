// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/send_file.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using MaybeCount = absl::StatusOr<int64_t>;
using Text = absl::StatusOr<std::string>;

class SendFileTest : public NetTest {
 protected:
  ~SendFileTest() override { ::unlink(path().c_str()); }

  std::string path() const { return ::testing::TempDir() + "/send_file_test"; }

  // A file that has this in it.
  Coro<File> Make(std::string data) {
    std::string name = path();
    absl::Status written = co_await WriteFile(name, std::move(data));
    EXPECT_TRUE(written.ok()) << written;
    absl::StatusOr<File> file = co_await File::Open(name);
    EXPECT_TRUE(file.ok()) << file.status();
    co_return *std::move(file);
  }
};

// Sends, and says what has come at the other end.
Coro<MaybeCount> SendAndClose(StreamWriter& writer, const File& file, SendFileOptions options) {
  MaybeCount sent = co_await SendFile(writer, file, options);
  writer.Close();
  co_return sent;
}

WEFT_TEST_F(SendFileTest, SendsAFileBehindWhatWasWritten) {
  const std::string data = Pattern(3 << 20);
  File file = co_await Make(data);
  std::pair<Socket, Socket> sockets = co_await TcpPair();
  StreamPair pair(std::move(sockets));
  pair.a.writer.Write("before ");

  Task<MaybeCount> sending = CreateTask(SendAndClose(pair.a.writer, file, SendFileOptions()));
  Text all = co_await pair.b.reader.Read();

  EXPECT_TRUE(all.value() == "before " + data);
  MaybeCount sent = co_await std::move(sending);
  EXPECT_EQ(sent.value(), 3 << 20);
}

WEFT_TEST_F(SendFileTest, SendsPartsAndKeepsThePosition) {
  File file = co_await Make("0123456789");
  StreamPair pair;
  SendFileOptions options;
  options.offset = 2;
  options.count = 3;
  MaybeCount sent = co_await SendFile(pair.a.writer, file, options);
  EXPECT_EQ(sent.value(), 3);
  pair.a.writer.Write("|");
  options.offset = 7;
  options.count = 100;
  sent = co_await SendFile(pair.a.writer, file, options);
  EXPECT_EQ(sent.value(), 3);
  options.offset = 11;  // Behind the end.
  sent = co_await SendFile(pair.a.writer, file, options);
  EXPECT_EQ(sent.value(), 0);
  pair.a.writer.Close();
  Text all = co_await pair.b.reader.Read();
  EXPECT_EQ(all.value(), "234|789");
  Text rest = co_await file.Read();
  EXPECT_EQ(rest.value(), "0123456789");
}

WEFT_TEST_F(SendFileTest, BySocketToo) {
  const std::string data = Pattern(1 << 20);
  File file = co_await Make(data);
  std::pair<Socket, Socket> sockets = co_await TcpPair();
  Connection receiver = ToConnection(std::move(sockets.second));
  auto send = [&]() -> Coro<MaybeCount> {
    MaybeCount sent = co_await SendFile(sockets.first, file);
    sockets.first.Close();
    co_return sent;
  };
  Task<MaybeCount> sending = CreateTask(send);
  Text all = co_await receiver.reader.Read();
  EXPECT_TRUE(all.value() == data);
  MaybeCount sent = co_await std::move(sending);
  EXPECT_EQ(sent.value(), 1 << 20);
}

// A pipe: the kernel refuses, a thread reads.
WEFT_TEST_F_IN_REAL_TIME(SendFileTest, WhatIsNoRegularFileIsReadAndWritten) {
  const internal::RawPipe ends = internal::OpenRawPipe(internal::LentEnd::kBoth).value();
  File from = File::Adopt(ends.read_end, "the pipe");
  File to = File::Adopt(ends.write_end);
  StreamPair pair;

  SendFileOptions kernel_only;
  kernel_only.fallback = false;
  MaybeCount sent = co_await SendFile(pair.a.writer, from, kernel_only);
  EXPECT_EQ(sent.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(sent.status().message()), HasSubstr("the pipe"));

  Task<MaybeCount> sending = CreateTask(SendAndClose(pair.a.writer, from, SendFileOptions()));
  absl::Status written = co_await to.Write("some, ");
  WEFT_EXPECT_OK(written);
  Text first = co_await pair.b.reader.ReadExactly(6);
  EXPECT_EQ(first.value(), "some, ");  // What there is, before the end.
  written = co_await to.Write("more");
  WEFT_EXPECT_OK(written);
  written = co_await to.Close();
  WEFT_EXPECT_OK(written);
  Text rest = co_await pair.b.reader.Read();
  EXPECT_EQ(rest.value(), "more");
  sent = co_await std::move(sending);
  EXPECT_EQ(sent.value(), 10);

  StreamPair other;
  SendFileOptions options;
  options.offset = 1;
  sent = co_await SendFile(other.a.writer, from, options);
  EXPECT_EQ(ErrnoOf(sent.status()), ESPIPE);
}

WEFT_TEST_F(SendFileTest, APeerThatHasGoneIsAnErrorAndNoSignal) {
  File file = co_await Make(Pattern(4 << 20));
  std::pair<Socket, Socket> sockets = co_await TcpPair();
  StreamPair pair(std::move(sockets));
  pair.b.writer.Abort();
  co_await Rounds(3);
  MaybeCount sent(0);
  for (int i = 0; i < 4 && sent.ok(); ++i) sent = co_await SendFile(pair.a.writer, file);
  EXPECT_TRUE(ErrnoOf(sent.status()) == EPIPE || ErrnoOf(sent.status()) == ECONNRESET)
      << sent.status();

  // From now on everybody is told.
  for (int i = 0; i < 3; ++i) {
    absl::Status drained = co_await pair.a.writer.Drain();
    EXPECT_EQ(drained, sent.status());
    pair.a.writer.Write("x");
    MaybeCount again = co_await SendFile(pair.a.writer, file);
    EXPECT_EQ(again.status(), sent.status());
  }
  pair.a.writer.Close();
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_EQ(closed, sent.status());
  MaybeCount late = co_await SendFile(pair.a.writer, file);
  EXPECT_EQ(late.status(), sent.status());

  // One that was closed, and not lost.
  StreamPair other;
  other.a.writer.Close();
  late = co_await SendFile(other.a.writer, file);
  EXPECT_EQ(ErrnoOf(late.status()), EBADF);
}

WEFT_TEST_F(SendFileTest, CanBeCancelledAndClosedWhileItWaits) {
  File file = co_await Make(Pattern(8 << 20));
  for (int i = 0; i < 2; ++i) {
    std::pair<Socket, Socket> sockets = co_await TcpPair();
    StreamPair pair(std::move(sockets));
    Task<MaybeCount> sending = CreateTask(SendFile(pair.a.writer, file));
    co_await Rounds(200);
    EXPECT_FALSE(sending.Done());
    if (i == 0) {
      sending.Cancel();
      co_await NoThrow(sending);
      EXPECT_TRUE(sending.Cancelled());
    } else {
      pair.a.writer.Abort();
      MaybeCount sent = co_await std::move(sending);
      EXPECT_FALSE(sent.ok());
    }
    EXPECT_EQ(pair.a.writer.GetWriteBufferLimits(), std::make_pair(size_t{16384}, size_t{65536}));
  }
}

WEFT_TEST_F(SendFileTest, ArgumentsAreChecked) {
  File file = co_await Make("x");
  StreamPair pair;
  SendFileOptions options;
  options.offset = -1;
  EXPECT_THROW(static_cast<void>(SendFile(pair.a.writer, file, options)), ValueError);
  options.offset = 0;
  options.count = 0;
  EXPECT_THROW(static_cast<void>(SendFile(pair.a.writer, file, options)), ValueError);
  MaybeCount sent = co_await SendFile(pair.a.writer, File());
  EXPECT_EQ(ErrnoOf(sent.status()), EBADF);
}

}  // namespace
}  // namespace weft
