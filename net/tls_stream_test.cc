// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Streams by TLS: that they are streams as others are, and how they end.

#include <openssl/ssl.h>

#include <functional>
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
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_tls.h"
#include "weft/net/tls_context.h"
#include "weft/net/tls_openssl.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

class TlsStreamTest : public TlsTest {
 protected:
  Coro<TlsEnds> Connect(TlsVersion version = TlsVersion::kTls13, bool allow_truncation = false,
                        absl::Duration shutdown_timeout = absl::Seconds(30)) {
    TlsClientOptions client = ClientTls();
    client.max_version = version;
    client.allow_truncation = allow_truncation;
    StartTlsOptions options = For(kTestHost);
    options.shutdown_timeout = shutdown_timeout;
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    TlsEnds ends = co_await Shake(std::move(pair), TlsContext::ForClient(client).value(),
                                  ServerContext(), std::move(options));
    EXPECT_TRUE(ends.ok()) << ends.client_status << ends.server_status;
    co_return ends;
  }
};

Coro<void> WriteAll(StreamWriter& writer, std::string_view data, size_t piece) {
  while (!data.empty()) {
    writer.Write(data.substr(0, piece));
    data.remove_prefix(std::min(piece, data.size()));
    absl::Status sent = co_await writer.Drain();
    EXPECT_TRUE(sent.ok()) << sent;
  }
}

Coro<std::string> ReadAll(StreamReader& reader, size_t count, int rounds_between) {
  std::string all;
  while (all.size() < count) {
    absl::StatusOr<std::string> some = co_await reader.Read(10'000);
    EXPECT_TRUE(some.ok()) << some.status();
    if (!some.ok() || some->empty()) break;
    all += *some;
    co_await Rounds(rounds_between);
  }
  co_return all;
}

WEFT_TEST_F(TlsStreamTest, MuchGoesBothWaysAtOnceWithSlowReaders) {
  TlsEnds ends = co_await Connect();
  const std::string there = Pattern(5'000'000, 1), back = Pattern(3'000'000, 2);
  Task<void> writing = CreateTask(WriteAll(ends.client.writer, there, 100'000));
  Task<void> answering = CreateTask(WriteAll(ends.server.writer, back, 777));
  Task<std::string> got = CreateTask(ReadAll(ends.client.reader, back.size(), 1));

  const std::string here = co_await ReadAll(ends.server.reader, there.size(), 3);
  const std::string returned = co_await std::move(got);
  co_await writing;
  co_await answering;

  EXPECT_TRUE(here == there);
  EXPECT_TRUE(returned == back);
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, OneLargeWrite) {
  TlsEnds ends = co_await Connect();
  const std::string data = Pattern(20'000'000);
  ends.client.writer.Write(data);
  EXPECT_GT(ends.client.writer.GetWriteBufferSize(), 10'000'000u);

  const std::string got = co_await ReadAll(ends.server.reader, data.size(), 0);

  EXPECT_TRUE(got == data);
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, EveryWayOfReading) {
  TlsEnds ends = co_await Connect();
  ends.client.writer.WriteLines(std::vector<std::string>{"one\n", "two|", "three", "fo", "ur"});
  absl::StatusOr<std::string> line = co_await ends.server.reader.ReadLine();
  absl::StatusOr<std::string> until = co_await ends.server.reader.ReadUntil("|");
  absl::StatusOr<std::string> exactly = co_await ends.server.reader.ReadExactly(5);
  absl::StatusOr<absl::Span<const char>> fill = co_await ends.server.reader.Fill(2);
  ends.server.reader.Consume(1);
  char buffer[10];
  absl::StatusOr<size_t> into = co_await ends.server.reader.ReadInto(absl::MakeSpan(buffer));

  EXPECT_EQ(line.value(), "one\n");
  EXPECT_EQ(until.value(), "two|");
  EXPECT_EQ(exactly.value(), "three");
  EXPECT_GE(fill->size(), 2u);
  EXPECT_EQ(std::string(buffer, into.value()), "our");
  co_await CloseBoth(ends);
}

// A stream that reads and writes within one coroutine: small ones of a round leave
// together, in one record.
WEFT_TEST_F(TlsStreamTest, DrainWaitsWhileTooMuchIsUnsent) {
  TlsEnds ends = co_await Connect();
  StreamWriter& writer = ends.client.writer;
  writer.SetWriteBufferLimits(100'000, 10'000);
  writer.Write(Pattern(4'000'000));
  EXPECT_GT(writer.GetWriteBufferSize(), 100'000u);
  const auto drain = [](StreamWriter& w) -> Coro<void> {
    absl::Status drained = co_await w.Drain();
    EXPECT_TRUE(drained.ok()) << drained;
  };
  Task<void> draining = CreateTask(drain, std::ref(writer));
  co_await Rounds(5);
  EXPECT_FALSE(draining.Done());

  const std::string got = co_await ReadAll(ends.server.reader, 4'000'000, 0);
  co_await draining;

  EXPECT_LE(writer.GetWriteBufferSize(), 10'000u);
  EXPECT_TRUE(got == Pattern(4'000'000));
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, DrainYieldsNowAndThen) {
  TlsEnds ends = co_await Connect();
  bool has_run = false;
  const auto other = [](bool* flag) -> Coro<void> {
    *flag = true;
    co_return;
  };
  Task<void> task = CreateTask(other, &has_run);
  for (int i = 0; i < 100 && !has_run; ++i) {
    ends.client.writer.Write("x");
    absl::Status sent = co_await ends.client.writer.Drain();
    EXPECT_TRUE(sent.ok());
  }

  EXPECT_TRUE(has_run);
  co_await task;
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, AHardLimitDropsTheConnection) {
  TlsEnds ends = co_await Connect();
  ends.client.writer.SetHardLimit(1'000'000);
  for (int i = 0; i < 100; ++i) ends.client.writer.Write(std::string(100'000, 'x'));

  const absl::Status drained = co_await ends.client.writer.Drain();

  EXPECT_EQ(drained.code(), absl::StatusCode::kResourceExhausted) << drained;
  ends.server.writer.Abort();
}

// -- Cancelling.

WEFT_TEST_F(TlsStreamTest, ACancelledReadTakesNothing) {
  TlsEnds ends = co_await Connect();
  const auto read = [](StreamReader& reader) -> Coro<void> {
    absl::StatusOr<std::string> got = co_await reader.ReadExactly(1'000'000);
  };
  const std::string data = Pattern(300'000);
  ends.client.writer.Write(data);
  for (int rounds = 0; rounds < 12; ++rounds) {
    Task<void> task = CreateTask(read, std::ref(ends.server.reader));
    co_await Rounds(rounds);
    task.Cancel();
    Outcome<void> outcome = co_await NoThrow(std::move(task));
    EXPECT_TRUE(outcome.cancelled());
  }

  absl::StatusOr<std::string> got =
      co_await ends.server.reader.ReadExactly(static_cast<int64_t>(data.size()));

  EXPECT_TRUE(got.value() == data);
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, ACancelledDrainLosesNothing) {
  TlsEnds ends = co_await Connect();
  const std::string data = Pattern(3'000'000);
  ends.client.writer.Write(data);
  const auto drain = [](StreamWriter& writer) -> Coro<void> {
    absl::Status drained = co_await writer.Drain();
  };
  Task<void> draining = CreateTask(drain, std::ref(ends.client.writer));
  co_await Rounds(2);
  draining.Cancel();
  Outcome<void> outcome = co_await NoThrow(std::move(draining));
  EXPECT_TRUE(outcome.cancelled());

  const std::string got = co_await ReadAll(ends.server.reader, data.size(), 0);

  EXPECT_TRUE(got == data);
  co_await CloseBoth(ends);
}

// -- The end.

WEFT_TEST_F(TlsStreamTest, TheEndIsSaidAndAwaited) {
  for (const TlsVersion version : {TlsVersion::kTls12, TlsVersion::kTls13}) {
    TlsEnds ends = co_await Connect(version);
    ends.client.writer.Write("last words");
    ends.client.writer.Close();
    const auto wait = [](StreamWriter& writer) -> Coro<absl::Status> {
      absl::Status closed = co_await writer.WaitClosed();
      co_return closed;
    };
    Task<absl::Status> closing = CreateTask(wait, std::ref(ends.client.writer));
    absl::StatusOr<std::string> got = co_await ends.server.reader.Read();
    EXPECT_EQ(got.value(), "last words");
    EXPECT_TRUE(ends.server.reader.AtEof());
    co_await Rounds(3);
    EXPECT_FALSE(closing.Done());

    ends.server.writer.Close();
    const absl::Status client = co_await std::move(closing);
    const absl::Status server = co_await ends.server.writer.WaitClosed();

    EXPECT_TRUE(client.ok()) << client;
    EXPECT_TRUE(server.ok()) << server;
  }
}

WEFT_TEST_F(TlsStreamTest, TheEndIsNotAwaitedForEver) {
  TlsEnds ends = co_await Connect(TlsVersion::kTls13, false, absl::Seconds(9));
  const TimePoint before = GetRunningLoop().Time();
  ends.client.writer.Close();

  const absl::Status closed = co_await ends.client.writer.WaitClosed();

  EXPECT_EQ(closed.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(closed), HasSubstr("TLS shutdown"));
  EXPECT_THAT(Text(closed), HasSubstr("timed out after 9s"));
  EXPECT_EQ(GetRunningLoop().Time() - before, absl::Seconds(9));
}

// Its data is dropped: a close that leaves it in the kernel would be a reset, and take
// from the peer what is on its way.
WEFT_TEST_F(TlsStreamTest, APeerThatGoesOnSendingIsListenedTo) {
  TlsEnds ends = co_await Connect();
  ends.client.writer.Write("bye");
  ends.client.writer.Close();
  const std::string data = Pattern(1'000'000);
  ends.server.writer.Write(data);
  absl::Status sent = co_await ends.server.writer.Drain();
  EXPECT_TRUE(sent.ok()) << sent;
  absl::StatusOr<std::string> got = co_await ends.server.reader.Read();
  EXPECT_EQ(got.value(), "bye");
  ends.server.writer.Close();

  const absl::Status client = co_await ends.client.writer.WaitClosed();
  const absl::Status server = co_await ends.server.writer.WaitClosed();

  EXPECT_TRUE(client.ok()) << client;
  EXPECT_TRUE(server.ok()) << server;
}

WEFT_TEST_F(TlsStreamTest, CloseEndsTheReader) {
  TlsEnds ends = co_await Connect();
  const auto read = [](StreamReader& reader) -> Coro<std::string> {
    absl::StatusOr<std::string> got = co_await reader.Read();
    co_return got.value();
  };
  Task<std::string> reading = CreateTask(read, std::ref(ends.client.reader));
  co_await Rounds(2);
  ends.client.writer.Close();

  const std::string got = co_await std::move(reading);

  EXPECT_EQ(got, "");
  ends.server.writer.Close();
}

WEFT_TEST_F(TlsStreamTest, AClosedPeerThatDoesNotWaitIsNoError) {
  TlsEnds ends = co_await Connect();
  ends.client.writer.Close();
  absl::StatusOr<std::string> end = co_await ends.server.reader.Read();
  EXPECT_EQ(end.value(), "");
  ends.client.writer.Abort();  // As one does who does not wait for our close_notify.
  co_await Rounds(3);
  ends.server.writer.Close();

  const absl::Status server = co_await ends.server.writer.WaitClosed();

  EXPECT_TRUE(server.ok()) << server;
}

WEFT_TEST_F(TlsStreamTest, ATruncatedStreamIsAnError) {
  for (const TlsVersion version : {TlsVersion::kTls12, TlsVersion::kTls13}) {
    TlsEnds ends = co_await Connect(version);
    ends.server.writer.Write("half of");
    absl::Status sent = co_await ends.server.writer.Drain();
    ends.server.writer.Abort();

    absl::StatusOr<std::string> got = co_await ends.client.reader.Read();

    EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss) << got.status();
    EXPECT_THAT(Text(got.status()), HasSubstr("without a close_notify"));
    EXPECT_FALSE(ends.client.reader.AtEof());
    const absl::Span<const char> unread = ends.client.reader.Unread();
    EXPECT_EQ(std::string(unread.data(), unread.size()), "half of");
    absl::StatusOr<std::string> again = co_await ends.client.reader.Read();
    EXPECT_EQ(again.status(), got.status());
    ends.client.writer.Close();
    const absl::Status closed = co_await ends.client.writer.WaitClosed();
    EXPECT_EQ(closed.code(), absl::StatusCode::kDataLoss);
  }
}

WEFT_TEST_F(TlsStreamTest, ATruncatedStreamIsNoneIfThatIsAllowed) {
  TlsEnds ends = co_await Connect(TlsVersion::kTls13, /*allow_truncation=*/true);
  ends.server.writer.Write("all of it");
  absl::Status sent = co_await ends.server.writer.Drain();
  ends.server.writer.Abort();

  absl::StatusOr<std::string> got = co_await ends.client.reader.Read();

  EXPECT_EQ(got.value(), "all of it");
  EXPECT_TRUE(ends.client.reader.AtEof());
}

WEFT_TEST_F(TlsStreamTest, AResetIsAnError) {
  const TlsContext client = ClientContext(), server = ServerContext();
  TlsEnds ends = co_await Shake(client, server);
  ends.client.writer.Write("unread");  // So closing is a reset.
  absl::Status sent = co_await ends.client.writer.Drain();
  co_await Rounds(3);
  ends.server.writer.Abort();

  absl::StatusOr<std::string> got = co_await ends.client.reader.Read();

  EXPECT_EQ(ErrnoOf(got.status()), ECONNRESET) << got.status();
}

// The kernel says it once; a truncation that is allowed is an end, and a reset is not.
WEFT_TEST_F(TlsStreamTest, AResetThatAWriteHasHeardOfIsNoEnd) {
  TlsClientOptions options = ClientTls();
  options.allow_truncation = true;
  const TlsContext client = TlsContext::ForClient(options).value(), server = ServerContext();
  TlsEnds ends = co_await Shake(client, server);
  co_await Pass("some of it", ends.server, ends.client);
  EXPECT_TRUE(ends.server.writer.socket().SetOption(SocketOption::kLinger, 0).ok());
  ends.server.writer.Abort();
  co_await Rounds(3);
  absl::Status sent;
  for (int i = 0; i < 5 && sent.ok(); ++i) {
    ends.client.writer.Write("x");
    sent = co_await ends.client.writer.Drain();
    co_await Rounds(1);
  }
  EXPECT_EQ(ErrnoOf(sent), ECONNRESET) << sent;

  absl::StatusOr<std::string> got = co_await ends.client.reader.Read();

  EXPECT_EQ(ErrnoOf(got.status()), ECONNRESET) << got.status();
}

WEFT_TEST_F(TlsStreamTest, AbortSaysNothing) {
  TlsEnds ends = co_await Connect();
  co_await Pass("hello", ends.server, ends.client);  // What is unread makes a reset of it.
  ends.client.writer.Write("dropped");
  ends.client.writer.Abort();
  const absl::Status closed = co_await ends.client.writer.WaitClosed();
  EXPECT_TRUE(closed.ok()) << closed;

  absl::StatusOr<std::string> got = co_await ends.server.reader.Read();

  EXPECT_EQ(got.status().code(), absl::StatusCode::kDataLoss);
}

// The pitfall "half-close".
WEFT_TEST_F(TlsStreamTest, OneDirectionMayEndFirst) {
  TlsEnds ends = co_await Connect();
  EXPECT_TRUE(ends.client.writer.CanWriteEof());
  ends.client.writer.Write("question");
  ends.client.writer.WriteEof();
  ends.client.writer.WriteEof();
  EXPECT_THROW(ends.client.writer.Write("more"), RuntimeError);

  absl::StatusOr<std::string> question = co_await ends.server.reader.Read();
  EXPECT_EQ(question.value(), "question");
  const std::string answer = Pattern(500'000);
  ends.server.writer.Write(answer);
  ends.server.writer.WriteEof();
  absl::StatusOr<std::string> got = co_await ends.client.reader.Read();

  EXPECT_TRUE(got.value() == answer);
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsStreamTest, InTheOlderVersionBothEndAtOnce) {
  TlsEnds ends = co_await Connect(TlsVersion::kTls12);

  EXPECT_FALSE(ends.client.writer.CanWriteEof());
  EXPECT_THROW(ends.client.writer.WriteEof(), RuntimeError);

  co_await CloseBoth(ends);
}

// The pitfall "SIGPIPE".
WEFT_TEST_F(TlsStreamTest, WritingToWhoHasGoneIsAnError) {
  TlsEnds ends = co_await Connect();
  ends.server.writer.Abort();
  co_await Rounds(3);
  absl::Status drained;
  for (int i = 0; i < 10 && drained.ok(); ++i) {
    ends.client.writer.Write("hello?");
    drained = co_await ends.client.writer.Drain();
    co_await Rounds(1);
  }

  EXPECT_EQ(ErrnoOf(drained), EPIPE) << drained;
}

WEFT_TEST_F(TlsStreamTest, WhatIsClosedByItsDestructorIsSentFirst) {
  TlsEnds ends = co_await Connect();
  const std::string data = Pattern(2'000'000);
  {
    const Connection gone = std::move(ends.client);
    const_cast<Connection&>(gone).writer.Write(data);
  }

  absl::StatusOr<std::string> got = co_await ends.server.reader.Read();

  EXPECT_TRUE(got.value() == data);
}

// Whatever is on its way then: nothing hangs and nothing leaks.
TEST_F(TlsStreamTest, TheLoopMayEndAnyTime) {
  for (int rounds = 0; rounds < 20; ++rounds) {
    const auto main = [this](int count) -> Coro<void> {
      std::pair<Socket, Socket> pair = Socket::Pair().value();
      Connection a = ToConnection(std::move(pair.first));
      Connection b = ToConnection(std::move(pair.second));
      const TlsContext client = ClientContext(), server = ServerContext();
      const auto talk = [](Connection c, TlsContext tls, StartTlsOptions options) -> Coro<void> {
        absl::Status status = co_await c.writer.StartTls(tls, options);
        c.writer.Write(std::string(300'000, 'x'));
        absl::StatusOr<std::string> all = co_await c.reader.ReadExactly(300'000);
      };
      Task<void> one = CreateTask(talk, std::move(a), client, For(kTestHost));
      Task<void> two = CreateTask(talk, std::move(b), server, StartTlsOptions());
      co_await Rounds(count);
    };
    weft::Run(main(rounds));
  }
}

// -- Peers that do not behave.

// A client of OpenSSL's, by hand.
class RawClient {
 public:
  explicit RawClient(Connection connection, int max_version = TLS1_3_VERSION)
      : connection_(std::move(connection)), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_.get(), max_version);
    ssl_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
  }

  SSL* ssl() { return ssl_.get(); }
  Connection& connection() { return connection_; }

  // Sends what OpenSSL has to say.
  void Flush() {
    char* data = nullptr;
    const long size = BIO_get_mem_data(out_, &data);
    if (size > 0) connection_.writer.Write(std::string_view(data, static_cast<size_t>(size)));
    static_cast<void>(BIO_reset(out_));
  }

  // Until `step` is content: gives it what comes.
  Coro<void> Until(std::function<bool()> step) {
    while (true) {
      const bool is_done = step();
      Flush();
      if (is_done) co_return;
      absl::StatusOr<std::string> some = co_await connection_.reader.Read(100'000);
      EXPECT_TRUE(some.ok() && !some->empty());
      if (!some.ok() || some->empty()) co_return;
      BIO_write(in_, some->data(), static_cast<int>(some->size()));
    }
  }
  Coro<void> Shake() {
    std::function<bool()> shake = [this] { return SSL_do_handshake(ssl()) == 1; };
    co_await Until(std::move(shake));
  }
  Coro<std::string> Read(size_t count) {
    std::string got;
    std::function<bool()> read = [&] {
      char buffer[4096];
      int n;
      while ((n = SSL_read(ssl(), buffer, sizeof(buffer))) > 0) {
        got.append(buffer, static_cast<size_t>(n));
      }
      return got.size() >= count;
    };
    co_await Until(std::move(read));
    co_return got;
  }
  void Write(std::string_view data) {
    EXPECT_EQ(SSL_write(ssl(), data.data(), static_cast<int>(data.size())),
              static_cast<int>(data.size()));
    Flush();
  }

 private:
  Connection connection_;
  internal::OpenSslPtr<SSL_CTX> context_;
  internal::OpenSslPtr<SSL> ssl_;
  BIO* in_;
  BIO* out_;
};

Coro<void> EchoByTls(Connection connection, TlsContext tls, absl::Status* ended) {
  absl::Status status = co_await connection.writer.StartTls(tls);
  EXPECT_TRUE(status.ok()) << status;
  while (true) {
    absl::StatusOr<std::string> some = co_await connection.reader.Read(1000);
    *ended = some.status();
    if (!some.ok() || some->empty()) co_return;
    connection.writer.Write(*some);
  }
}

WEFT_TEST_F(TlsStreamTest, KeysMayBeUpdated) {
  StreamPair pair;
  absl::Status ended;
  Task<void> echo = CreateTask(EchoByTls, std::move(pair.b), ServerContext(), &ended);
  RawClient client(std::move(pair.a));
  co_await client.Shake();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED), 1);
    client.Write("hello");
    const std::string got = co_await client.Read(5);
    EXPECT_EQ(got, "hello");
  }
  SSL_shutdown(client.ssl());
  client.Flush();
  co_await echo;

  EXPECT_TRUE(ended.ok()) << ended;
}

WEFT_TEST_F(TlsStreamTest, WhoAsksForMoreThanItReadsIsDropped) {
  StreamPair pair;
  absl::Status ended;
  Task<void> echo = CreateTask(EchoByTls, std::move(pair.b), ServerContext(), &ended);
  RawClient client(std::move(pair.a));
  co_await client.Shake();
  for (int i = 0; i < 200'000 && !echo.Done(); ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_REQUESTED);
    SSL_do_handshake(client.ssl());
    if (i % 100 != 0) continue;
    client.Flush();
    absl::Status sent = co_await client.connection().writer.Drain();
    if (!sent.ok()) break;
  }
  co_await echo;

  EXPECT_EQ(ended.code(), absl::StatusCode::kResourceExhausted) << ended;
  client.connection().writer.Abort();
}

WEFT_TEST_F(TlsStreamTest, RenegotiationIsDeclined) {
  StreamPair pair;
  absl::Status ended;
  Task<void> echo = CreateTask(EchoByTls, std::move(pair.b), ServerContext(), &ended);
  RawClient client(std::move(pair.a), TLS1_2_VERSION);
  co_await client.Shake();
  client.Write("before");
  std::string got = co_await client.Read(6);
  EXPECT_EQ(got, "before");
  SSL_renegotiate(client.ssl());
  SSL_do_handshake(client.ssl());
  client.Flush();
  absl::StatusOr<std::string> alert = co_await client.connection().reader.Read(100);
  EXPECT_TRUE(alert.ok());
  EXPECT_EQ(static_cast<int>(alert->front()), SSL3_RT_ALERT);
  client.connection().writer.Abort();
  co_await echo;

  // It was no error on this side: only that the client has gone.
  EXPECT_THAT(Text(ended), HasSubstr("without a close_notify"));
}

WEFT_TEST_F(TlsStreamTest, AForgedRecordIsAnError) {
  StreamPair pair;
  absl::Status ended;
  Task<void> echo = CreateTask(EchoByTls, std::move(pair.b), ServerContext(), &ended);
  RawClient client(std::move(pair.a));
  co_await client.Shake();
  client.connection().writer.Write(std::string("\x17\x03\x03\x00\x20", 5) + Pattern(32));
  co_await echo;

  EXPECT_EQ(ended.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Text(ended), HasSubstr("bad record mac"));
}

// One byte at a time.
WEFT_TEST_F(TlsStreamTest, RecordsMayComeInPieces) {
  StreamPair near, far;
  absl::Status ended;
  const auto trickle = [](StreamReader& from, StreamWriter& to) -> Coro<void> {
    while (true) {
      absl::StatusOr<std::string> byte = co_await from.Read(1);
      if (!byte.ok() || byte->empty()) co_return;
      to.Write(*byte);
      absl::Status sent = co_await to.Drain();
    }
  };
  Task<void> echo = CreateTask(EchoByTls, std::move(far.b), ServerContext(), &ended);
  Task<void> there = CreateTask(trickle, std::ref(near.b.reader), std::ref(far.a.writer));
  Task<void> back = CreateTask(trickle, std::ref(far.a.reader), std::ref(near.b.writer));
  const TlsContext tls = ClientContext();
  const StartTlsOptions options = For(kTestHost);
  absl::Status status = co_await near.a.writer.StartTls(tls, options);
  EXPECT_TRUE(status.ok()) << status;
  const std::string data = Pattern(2000);
  near.a.writer.Write(data);
  absl::StatusOr<std::string> got = co_await near.a.reader.ReadExactly(2000);
  EXPECT_TRUE(got.value() == data);
  near.a.writer.Close();
  co_await echo;
  there.Cancel();
  back.Cancel();

  EXPECT_TRUE(ended.ok()) << ended;
}

// -- Many.

WEFT_TEST_F_IN_REAL_TIME(TlsStreamTest, ManyAtOnce) {
  const TlsContext server_tls = TlsContext::ForServer(ServerTls("127.0.0.1")).value();
  const TlsContext client_tls = ClientContext();
  ServerOptions serving;
  serving.tls = &server_tls;
  serving.backlog = 200;
  const auto echo = [](StreamReader reader, StreamWriter writer) -> Coro<void> {
    while (true) {
      absl::StatusOr<std::string> some = co_await reader.Read(5000);
      if (!some.ok() || some->empty()) co_return;
      writer.Write(*some);
      absl::Status sent = co_await writer.Drain();
    }
  };
  absl::StatusOr<Server> server = co_await StartServer(echo, "127.0.0.1", 0, serving);
  const auto ask = [](uint16_t port, const TlsContext& tls, uint32_t number) -> Coro<void> {
    ConnectOptions options;
    options.tls = &tls;
    absl::StatusOr<Connection> connection = co_await OpenConnection("127.0.0.1", port, options);
    EXPECT_TRUE(connection.ok()) << connection.status();
    if (!connection.ok()) co_return;
    for (uint32_t i = 0; i < 5; ++i) {
      const std::string data = Pattern(100 + 3000 * i, number);
      connection->writer.Write(data);
      absl::StatusOr<std::string> got =
          co_await connection->reader.ReadExactly(static_cast<int64_t>(data.size()));
      EXPECT_TRUE(got.ok() && *got == data) << got.status();
    }
    connection->writer.Close();
    absl::Status closed = co_await connection->writer.WaitClosed();
    EXPECT_TRUE(closed.ok()) << closed;
  };
  std::vector<Task<void>> clients;
  for (uint32_t i = 0; i < 100; ++i) {
    clients.push_back(CreateTask(ask, server->port(), std::cref(client_tls), i));
  }
  for (Task<void>& client : clients) co_await client;
  server->Close();
  co_await server->WaitClosed();
}

}  // namespace
}  // namespace weft
