// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a StreamWriter promises. The numbers are those of the conformance list.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/stream.h"
#include "weft/net/test_net.h"
#include "weft/poller/fake_poller.h"
#include "weft/poller/poller_wrapper.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Pair;

class StreamWriterTest : public NetTest {};
class UnixStreamWriterTest : public UnixNetTest {};

using Text = absl::StatusOr<std::string>;

constexpr size_t kMuch = size_t{30} << 20;

Coro<absl::Status> DrainIt(StreamWriter& writer) { co_return co_await writer.Drain(); }

Coro<std::string> ReadAll(StreamReader& reader) {
  Text text = co_await reader.Read();
  if (!text.ok()) co_return std::string(text.status().message());
  co_return *text;
}

// Ends the connection of `writer` by a reset.
void Reset(StreamWriter& writer) {
  EXPECT_TRUE(writer.socket().SetOption(SocketOption::kLinger, 0).ok());
  writer.Abort();
}

// WTR 215
WEFT_TEST_F(StreamWriterTest, DrainWithinTheMarksDoesNotWait) {
  StreamPair pair;
  EXPECT_THAT(pair.a.writer.GetWriteBufferLimits(), Pair(16384u, 65536u));
  bool other_ran = false;
  GetRunningLoop().CallSoon([&other_ran] { other_ran = true; });
  pair.a.writer.Write("hello");
  absl::Status sent = co_await pair.a.writer.Drain();
  EXPECT_TRUE(sent.ok());
  EXPECT_FALSE(other_ran);
  co_await Rounds(TestPollerCompletes() ? 2 : 1);
  EXPECT_EQ(pair.a.writer.GetWriteBufferSize(), 0u);
}

// WTR 216
WEFT_TEST_F(StreamWriterTest, DrainWaitsForASlowReader) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(kMuch);
  pair.a.writer.Write(data);
  Task<absl::Status> draining = CreateTask(DrainIt(pair.a.writer));
  co_await Rounds(20);
  EXPECT_FALSE(draining.Done());
  EXPECT_GT(pair.a.writer.GetWriteBufferSize(), size_t{65536});

  std::string received;
  while (received.size() < kMuch) {
    Text some = co_await pair.b.reader.Read(1 << 20);
    EXPECT_TRUE(some.ok()) << some.status();
    received += *some;
    if (draining.Done()) {
      EXPECT_LE(pair.a.writer.GetWriteBufferSize(), size_t{16384});
    }
  }
  absl::Status sent = co_await std::move(draining);
  EXPECT_TRUE(sent.ok());
  EXPECT_TRUE(received == data);
}

// WTR 217
WEFT_TEST_F(StreamWriterTest, AllWhoDrainAreToldOfTheEnd) {
  StreamPair pair;
  pair.a.writer.Write(std::string(4 << 20, 'x'));
  Task<absl::Status> one = CreateTask(DrainIt(pair.a.writer));
  Task<absl::Status> two = CreateTask(DrainIt(pair.a.writer));
  co_await Rounds(5);
  EXPECT_FALSE(one.Done() || two.Done());
  Task<std::string> reading = CreateTask(ReadAll(pair.b.reader));
  absl::Status first = co_await std::move(one);
  absl::Status second = co_await std::move(two);
  EXPECT_TRUE(first.ok() && second.ok());

  pair.a.writer.Close();
  std::string all = co_await std::move(reading);
  EXPECT_EQ(all.size(), size_t{4} << 20);
}

// WTR 217, 218
WEFT_TEST_F(StreamWriterTest, AllWhoDrainAreToldOfAReset) {
  StreamPair pair(co_await TcpPair());
  pair.a.writer.Write(std::string(kMuch, 'x'));
  Task<absl::Status> one = CreateTask(DrainIt(pair.a.writer));
  Task<absl::Status> two = CreateTask(DrainIt(pair.a.writer));
  co_await Rounds(20);
  EXPECT_FALSE(one.Done() || two.Done());

  Reset(pair.b.writer);

  absl::Status first = co_await std::move(one);
  absl::Status second = co_await std::move(two);
  absl::Status later = co_await pair.a.writer.Drain();
  for (const absl::Status& status : {first, second, later}) {
    EXPECT_THAT(ErrnoOf(status), AnyOf(ECONNRESET, EPIPE)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("127.0.0.1:"));
  }
  EXPECT_TRUE(pair.a.writer.IsClosing());
  Text read = co_await pair.a.reader.Read(1);
  EXPECT_TRUE(!read.ok() || read->empty());
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_THAT(ErrnoOf(closed), AnyOf(ECONNRESET, EPIPE)) << closed;
}

// WTR 219
WEFT_TEST_F(StreamWriterTest, CloseSendsWhatWasWritten) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(5 << 20);
  pair.a.writer.Write(data);
  pair.a.writer.Close();
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_TRUE(all == data);
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_TRUE(closed.ok()) << closed;
}

WEFT_TEST_F(StreamWriterTest, SoDoesTheDestructor) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(5 << 20);
  pair.a.writer.Write(data);
  pair.a = Connection();
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_TRUE(all == data);
}

// WTR 220
WEFT_TEST_F(StreamWriterTest, ClosingTwiceIsClosingOnce) {
  StreamPair pair;
  EXPECT_FALSE(pair.a.writer.IsClosing());
  pair.a.writer.Close();
  EXPECT_TRUE(pair.a.writer.IsClosing());
  pair.a.writer.Close();
  absl::Status first = co_await pair.a.writer.WaitClosed();
  absl::Status second = co_await pair.a.writer.WaitClosed();
  EXPECT_TRUE(first.ok() && second.ok());
  pair.a.writer.Close();
  pair.a.writer.Abort();
}

// WTR 221
WEFT_TEST_F(StreamWriterTest, UnreadDataDoesNotKeepItOpen) {
  StreamPair pair(co_await TcpPair());
  pair.b.writer.Write("unread");
  absl::Status sent = co_await pair.b.writer.Drain();
  EXPECT_TRUE(sent.ok());
  co_await Rounds(3);
  pair.a.writer.Close();
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_TRUE(closed.ok());
}

// WTR 222
WEFT_TEST_F(StreamWriterTest, HalfCloseLeavesTheOtherHalf) {
  StreamPair pair(co_await TcpPair());
  EXPECT_TRUE(pair.a.writer.CanWriteEof());
  pair.a.writer.Write("q");
  pair.a.writer.WriteEof();
  pair.a.writer.WriteEof();

  std::string question = co_await ReadAll(pair.b.reader);
  EXPECT_EQ(question, "q");
  pair.b.writer.Write("reply");
  pair.b.writer.Close();
  std::string reply = co_await ReadAll(pair.a.reader);
  EXPECT_EQ(reply, "reply");
}

WEFT_TEST_F(StreamWriterTest, TheEndComesBehindWhatWasWritten) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(5 << 20);
  pair.a.writer.Write(data);
  pair.a.writer.WriteEof();
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_TRUE(all == data);
}

// WTR 223
WEFT_TEST_F(StreamWriterTest, NothingIsWrittenAfterTheEnd) {
  StreamPair pair;
  pair.a.writer.WriteEof();
  std::string message;
  try {
    pair.a.writer.Write("x");
  } catch (const RuntimeError& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "Cannot call write() after write_eof()");
  co_return;
}

// WTR 224
WEFT_TEST_F(StreamWriterTest, DrainAfterCloseFails) {
  StreamPair pair;
  pair.a.writer.Close();
  absl::Status drained = co_await pair.a.writer.Drain();
  EXPECT_THAT(std::string(drained.message()), HasSubstr("Connection lost"));
}

// WTR 225
WEFT_TEST_F(StreamWriterTest, WriteLinesWritesAll) {
  StreamPair pair;
  std::vector<std::string> lines;
  lines.push_back("a");
  lines.push_back("");
  lines.push_back("b");
  pair.a.writer.WriteLines(lines);
  pair.a.writer.Write("");
  pair.a.writer.Close();
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_EQ(all, "ab");
}

// WTR 226
WEFT_TEST_F(StreamWriterTest, MarksOfZeroWaitForEveryByte) {
  StreamPair pair;
  WEFT_EXPECT_THROW(pair.a.writer.SetWriteBufferLimits(1, 2), ValueError);
  pair.a.writer.SetWriteBufferLimits(0);
  EXPECT_THAT(pair.a.writer.GetWriteBufferLimits(), Pair(0u, 0u));
  pair.a.writer.Write(std::string(kMuch, 'x'));
  Task<absl::Status> draining = CreateTask(DrainIt(pair.a.writer));
  co_await Rounds(5);
  EXPECT_FALSE(draining.Done());
  Task<std::string> reading = CreateTask(ReadAll(pair.b.reader));
  absl::Status sent = co_await std::move(draining);
  EXPECT_TRUE(sent.ok());
  EXPECT_EQ(pair.a.writer.GetWriteBufferSize(), 0u);
  pair.a.writer.Close();
  std::string all = co_await std::move(reading);
  EXPECT_EQ(all.size(), kMuch);
}

int warnings = 0;

// WTR 227
WEFT_TEST_F(StreamWriterTest, WritingToAPeerThatHasGoneIsAnErrorAndNoSignal) {
  StreamPair pair(co_await TcpPair());
  Reset(pair.b.writer);
  warnings = 0;
  LogSink before = SetLogSink([](LogSeverity, std::string_view) { ++warnings; });
  for (int i = 0; i < 100; ++i) {
    pair.a.writer.Write("x");
    co_await Yield();
  }
  SetLogSink(before);
  absl::Status drained = co_await pair.a.writer.Drain();
  EXPECT_THAT(ErrnoOf(drained), AnyOf(ECONNRESET, EPIPE)) << drained;
  EXPECT_LE(warnings, 1);
}

// What the peer had said before it went can be read, though writing failed.
WEFT_TEST_F(UnixStreamWriterTest, WhatCameBeforeTheLossCanBeRead) {
  StreamPair pair;
  pair.b.writer.Write("too large");
  pair.b.writer.Close();
  absl::Status closed = co_await pair.b.writer.WaitClosed();
  EXPECT_TRUE(closed.ok());
  pair.a.writer.Write("a large request");
  absl::Status sent = co_await pair.a.writer.Drain();
  if (TestPollerCompletes()) {  // It is sent when the loop polls, and Drain() does not wait.
    EXPECT_TRUE(sent.ok());
    co_await Rounds(3);
    sent = co_await pair.a.writer.Drain();
  }
  EXPECT_EQ(ErrnoOf(sent), EPIPE) << sent;
  std::string text = co_await ReadAll(pair.a.reader);
  EXPECT_EQ(text, "too large");
}

// Small writes of one round leave in one call: one datagram-like piece on a
// sequenced-packet socket shows it.
WEFT_TEST_F(UnixStreamWriterTest, SmallWritesLeaveTogether) {
  StreamPair pair(Socket::Pair(SocketType::kSeqPacket).value());
  for (int i = 0; i < 10; ++i) pair.a.writer.Write("x");
  EXPECT_EQ(pair.a.writer.GetWriteBufferSize(), 10u);
  char buffer[100];
  absl::StatusOr<size_t> first = co_await pair.b.writer.socket().Recv(absl::MakeSpan(buffer));
  EXPECT_EQ(first.value(), 10u);

  pair.a.writer.Write("ab");
  pair.a.writer.Write("c");
  absl::Status sent = co_await pair.a.writer.Drain();
  EXPECT_TRUE(sent.ok());
  pair.a.writer.Write("d");
  absl::StatusOr<size_t> second = co_await pair.b.writer.socket().Recv(absl::MakeSpan(buffer));
  EXPECT_EQ(second.value(), 3u);
}

// Counts what is asked of the kernel.
struct CountingPoller final : PollerWrapper {
  StartResult Start(Operation* op) override {
    if (op->opcode == OpCode::kSend || op->opcode == OpCode::kSendMsg) ++sends;
    return PollerWrapper::Start(op);
  }
  int sends = 0;
};

TEST_F(StreamWriterTest, WhatARoundWritesIsOneCall) {
  CountingPoller poller;
  RunOptions options;
  options.environment.poller = &poller;
  auto main = [&poller]() -> Coro<void> {
    StreamPair pair(co_await TcpPair());
    auto write = [&pair](int count) -> Coro<void> {
      for (int i = 0; i < count; ++i) pair.a.writer.Write("abc");
      co_return;
    };
    // However many tasks, and whoever drains in the midst of it.
    for (int tasks = 1; tasks <= 3; ++tasks) {
      poller.sends = 0;
      std::vector<Task<void>> writing;
      for (int i = 0; i < tasks; ++i) writing.push_back(CreateTask(write, 50));
      Text text = co_await pair.b.reader.ReadExactly(150 * tasks);
      EXPECT_EQ(poller.sends, 1) << tasks << " tasks";
    }
    poller.sends = 0;
    for (int i = 0; i < 10; ++i) {
      pair.a.writer.Write("x");
      absl::Status sent = co_await pair.a.writer.Drain();
      EXPECT_TRUE(sent.ok());
    }
    // Or none has left yet, and the others leave behind the first.
    EXPECT_EQ(poller.sends, TestPollerCompletes() ? 1 : 10);
    co_await Rounds(5);
    // The end needs no call of its own, and Close() sends what is left by one.
    poller.sends = 0;
    pair.a.writer.Write("x");
    pair.a.writer.Write("y");
    pair.a.writer.Close();
    EXPECT_EQ(poller.sends, 1);
  };
  weft::Run(main(), options);
}

// A kernel that completes need not wake the loop to say that a send went well, as long as
// nothing has to be done then.
TEST_F(StreamWriterTest, TheEndOfASendIsQuietUntilSomethingWaitsForIt) {
  struct Case {
    const char* what;
    size_t size;
    void (*act)(StreamWriter&);
    bool is_quiet;
  };
  const Case cases[] = {
      {"nothing", 1, [](StreamWriter&) {}, true},
      {"more to send", 1, [](StreamWriter& writer) { writer.Write("y"); }, false},
      {"the end of what is sent", 1, [](StreamWriter& writer) { writer.WriteEof(); }, false},
      {"the end", 1, [](StreamWriter& writer) { writer.Close(); }, false},
      {"a writer that is paused", 100'000, [](StreamWriter&) {}, false},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    FakePoller poller;
    VirtualClock clock;
    RunOptions options;
    options.environment.poller = &poller;
    options.environment.clock = &clock;
    auto main = [&poller, &each]() -> Coro<void> {
      StreamPair pair;
      pair.a.writer.Write(std::string(each.size, 'x'));
      co_await Yield();
      EXPECT_EQ(poller.started().size(), 1u);
      Operation* send = poller.started().front();

      each.act(pair.a.writer);

      EXPECT_EQ(send->is_quiet, each.is_quiet);
    };
    weft::Run(main(), options);
    for (NativeHandle handle : poller.retired()) SystemSocketApi()->Close(handle);
  }
}

WEFT_TEST_F(StreamWriterTest, HasExtraInfoByName) {
  StreamPair pair(co_await TcpPair());
  const StreamWriter& writer = pair.a.writer;
  EXPECT_EQ(writer.GetExtraInfo("peername"), pair.b.writer.LocalAddress().ToString());
  EXPECT_EQ(writer.GetExtraInfo("sockname"), writer.LocalAddress().ToString());
  EXPECT_EQ(writer.GetExtraInfo("socket"), absl::StrCat(writer.socket().handle()));
  EXPECT_EQ(writer.GetExtraInfo("something else"), std::nullopt);
}

WEFT_TEST_F(StreamWriterTest, AbortDropsWhatWasNotSent) {
  StreamPair pair(co_await TcpPair());
  pair.a.writer.Write(std::string(kMuch, 'x'));
  pair.a.writer.Abort();
  absl::Status drained = co_await pair.a.writer.Drain();
  EXPECT_EQ(ErrnoOf(drained), ECONNRESET);
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_TRUE(closed.ok());
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_LT(all.size(), kMuch);
}

WEFT_TEST_F(StreamWriterTest, AHardLimitDropsThePeerThatIsTooSlow) {
  StreamPair pair;
  pair.a.writer.SetHardLimit(1 << 20);
  for (int i = 0; i < 100; ++i) {
    pair.a.writer.Write(std::string(100000, 'x'));
    EXPECT_LE(pair.a.writer.GetWriteBufferSize(), size_t{1} << 20);
    co_await Yield();
  }
  absl::Status drained = co_await pair.a.writer.Drain();
  EXPECT_EQ(drained.code(), absl::StatusCode::kResourceExhausted) << drained;
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_EQ(closed.code(), absl::StatusCode::kResourceExhausted) << closed;
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_LT(all.size(), size_t{10000000});
}

WEFT_TEST_F(StreamWriterTest, CancelledWaitsLeaveTheOthersWaiting) {
  StreamPair pair;
  pair.a.writer.Write(std::string(kMuch, 'x'));
  Task<absl::Status> one = CreateTask(DrainIt(pair.a.writer));
  Task<absl::Status> two = CreateTask(DrainIt(pair.a.writer));
  co_await Rounds(3);
  one.Cancel();
  co_await NoThrow(one);
  EXPECT_TRUE(one.Cancelled());
  EXPECT_FALSE(two.Done());

  pair.a.writer.Close();
  WEFT_EXPECT_THROW(
      static_cast<void>(co_await WithTimeout(absl::Seconds(1), pair.a.writer.WaitClosed())),
      TimeoutError);
  std::string all = co_await ReadAll(pair.b.reader);
  absl::Status second = co_await std::move(two);
  EXPECT_TRUE(second.ok()) << second;
  absl::Status closed = co_await pair.a.writer.WaitClosed();
  EXPECT_TRUE(closed.ok());
}

WEFT_TEST_F(StreamWriterTest, KnowsItsAddresses) {
  StreamPair pair(co_await TcpPair());
  EXPECT_EQ(pair.a.writer.PeerAddress(), pair.b.writer.LocalAddress());
  EXPECT_EQ(pair.b.writer.PeerAddress(), pair.a.writer.LocalAddress());
  EXPECT_EQ(pair.a.writer.PeerAddress().host(), "127.0.0.1");
}

// Bytes are neither lost nor doubled, whatever the kernel takes at a time.
// (In real time: with so small a buffer the kernel makes pauses of its own.)
WEFT_TEST_F_IN_REAL_TIME(StreamWriterTest, PartialWritesGoOnWhereTheyEnded) {
  StreamPair pair(co_await TcpPair());
  EXPECT_TRUE(pair.a.writer.socket().SetOption(SocketOption::kSendBuffer, 4096).ok());
  const std::string data = Pattern(1 << 20);
  auto send = [](StreamWriter& writer, const std::string& text) -> Coro<void> {
    size_t at = 0;
    for (size_t size = 1; at < text.size(); size = size * 7 % 9973 + 1) {
      writer.Write(std::string_view(text).substr(at, size));
      at += size;
      absl::Status sent = co_await writer.Drain();
      EXPECT_TRUE(sent.ok());
    }
    writer.Close();
  };
  Task<void> sending = CreateTask(send, std::ref(pair.a.writer), std::ref(data));
  std::string all = co_await ReadAll(pair.b.reader);
  EXPECT_TRUE(all == data);
  co_await sending;
}

// -- A connection and its loop.

TEST_F(StreamWriterTest, LoopClosesInTheMidstOfEverything) {
  auto open = [](std::vector<std::unique_ptr<StreamPair>>* pairs, bool keep) -> Coro<void> {
    std::pair<Socket, Socket> sockets = co_await TcpPair();
    auto pair = std::make_unique<StreamPair>(std::move(sockets));
    StreamPair* kept = pair.get();
    if (keep) pairs->push_back(std::move(pair));
    kept->a.writer.Write(std::string(4 << 20, 'x'));
    kept->b.writer.Write("unsent");
    absl::StatusOr<std::string> text = co_await kept->a.reader.ReadExactly(1000);
  };
  auto drain = [](std::vector<std::unique_ptr<StreamPair>>* pairs) -> Coro<void> {
    co_await Rounds(10);
    absl::Status sent = co_await (*pairs)[0]->a.writer.Drain();
  };
  for (bool destroyed_first : {false, true}) {
    std::vector<std::unique_ptr<StreamPair>> kept;
    std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    Task<void> inside = loop->CreateTask(open(&kept, false));
    Task<void> outside = loop->CreateTask(open(&kept, true));
    Task<void> draining = loop->CreateTask(drain(&kept));
    for (int i = 0; i < 30; ++i) loop->RunOnce(absl::ZeroDuration());
    loop->Close();
    if (destroyed_first) loop.reset();
    kept.clear();
  }
}

// Closed, written to and dropped while the loop does not run.
TEST_F(StreamWriterTest, IsUsableWhileTheLoopDoesNotRun) {
  std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
  std::unique_ptr<StreamPair> pair;
  auto open = [&pair]() -> Coro<void> {
    pair = std::make_unique<StreamPair>();
    co_return;
  };
  loop->RunUntilComplete(open());
  pair->a.writer.Write("x");
  pair->b.writer.Write("y");
  pair->a.writer.Close();
  auto read = [&pair]() -> Coro<void> {
    std::string text = co_await ReadAll(pair->b.reader);
    EXPECT_EQ(text, "x");
  };
  loop->RunUntilComplete(read());
  loop->RunUntilComplete(open());
  pair->a.writer.Write("x");
  pair.reset();
  loop->Close();
}

}  // namespace
}  // namespace weft
