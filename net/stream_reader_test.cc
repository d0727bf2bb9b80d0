// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a StreamReader promises. The numbers are those of the conformance list.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/async_generator.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/lines.h"
#include "weft/net/stream.h"
#include "weft/net/test_net.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class StreamReaderTest : public NetTest {};

using Text = absl::StatusOr<std::string>;

// Has `data` come to the other end, and stay unread there.
Coro<void> Feed(StreamWriter& writer, StreamReader& reader, std::string data) {
  const size_t before = reader.Unread().size();
  writer.Write(data);
  absl::Status sent = co_await writer.Drain();
  EXPECT_TRUE(sent.ok()) << sent;
  absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill(before + data.size());
  EXPECT_EQ(unread.value().size(), before + data.size());
}

Coro<std::string> ReadText(StreamReader& reader, int64_t count) {
  Text text = co_await reader.Read(count);
  if (!text.ok()) co_return std::string(text.status().message());
  co_return *text;
}

Coro<std::string> ReadLineText(StreamReader& reader) {
  Text text = co_await reader.ReadLine();
  if (!text.ok()) co_return std::string(text.status().message());
  co_return *text;
}

// RDR 196
WEFT_TEST_F(StreamReaderTest, ReadLineGivesLinesAndThenNothing) {  // A-91
  StreamPair pair;
  pair.a.writer.Write("ab\ncd");
  pair.a.writer.Close();

  Text first = co_await pair.b.reader.ReadLine();
  Text second = co_await pair.b.reader.ReadLine();
  EXPECT_TRUE(pair.b.reader.AtEof());
  Text third = co_await pair.b.reader.ReadLine();

  EXPECT_EQ(first.value(), "ab\n");
  EXPECT_EQ(second.value(), "cd");
  EXPECT_EQ(third.value(), "");
}

// RDR 197
WEFT_TEST_F(StreamReaderTest, ReadGivesWhatIsThere) {  // UNIX 272
  StreamPair pair;
  Text none = co_await pair.b.reader.Read(0);
  EXPECT_EQ(none.value(), "");
  co_await Feed(pair.a.writer, pair.b.reader, "abcd");
  pair.a.writer.Close();

  Text first = co_await pair.b.reader.Read(2);
  Text second = co_await pair.b.reader.Read(100);
  Text third = co_await pair.b.reader.Read(100);

  EXPECT_EQ(first.value(), "ab");
  EXPECT_EQ(second.value(), "cd");
  EXPECT_EQ(third.value(), "");
}

// RDR 198
WEFT_TEST_F(StreamReaderTest, ReadAllWaitsForTheEnd) {
  StreamPair pair;
  Task<std::string> reading = CreateTask(ReadText(pair.b.reader, -1));
  for (const char* chunk : {"a", "b", "c"}) {
    pair.a.writer.Write(chunk);
    co_await Rounds(5);
    EXPECT_FALSE(reading.Done());
  }
  pair.a.writer.Close();
  std::string all = co_await std::move(reading);
  EXPECT_EQ(all, "abc");
}

WEFT_TEST_F(StreamReaderTest, ReadAllOfMuch) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(3 << 20);
  pair.a.writer.Write(data);
  pair.a.writer.Close();
  Text all = co_await pair.b.reader.Read();
  EXPECT_TRUE(all.value() == data);
}

// RDR 199
WEFT_TEST_F(StreamReaderTest, AtEofOnlyWhenAllIsRead) {
  StreamPair pair;
  pair.a.writer.Write("ab");
  pair.a.writer.Close();
  absl::StatusOr<absl::Span<const char>> all = co_await pair.b.reader.Fill(3);
  EXPECT_EQ(all.value().size(), 2u);
  EXPECT_FALSE(pair.b.reader.AtEof());
  pair.b.reader.Consume(2);
  EXPECT_TRUE(pair.b.reader.AtEof());
}

// RDR 200
WEFT_TEST_F(StreamReaderTest, ReadExactlySaysHowMuchCame) {
  StreamPair pair;
  pair.a.writer.Write("abc");
  pair.a.writer.Close();

  Text text = co_await pair.b.reader.ReadExactly(5);
  Text rest = co_await pair.b.reader.Read();

  EXPECT_EQ(text.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(text.status().message(), "3 bytes read on a total of 5 expected bytes");
  EXPECT_EQ(rest.value(), "abc");
}

// RDR 201
WEFT_TEST_F(StreamReaderTest, ReadExactlyOfNothingAndOfLess) {
  StreamPair pair;
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadExactly(-1)), ValueError);
  Text nothing = co_await pair.b.reader.ReadExactly(0);
  EXPECT_EQ(nothing.value(), "");
}

WEFT_TEST_F(StreamReaderTest, ReadExactlyAcrossManySlabs) {
  StreamPair pair(co_await TcpPair());
  const std::string data = Pattern(1 << 20);
  pair.a.writer.Write(data);
  pair.a.writer.Write("rest");
  Text text = co_await pair.b.reader.ReadExactly(1 << 20);
  Text rest = co_await pair.b.reader.ReadExactly(4);
  EXPECT_TRUE(text.value() == data);
  EXPECT_EQ(rest.value(), "rest");
}

// RDR 202
WEFT_TEST_F(StreamReaderTest, ALineThatIsTooLongIsDropped) {
  StreamPair pair(Socket::Pair().value(), /*limit=*/5);
  co_await Feed(pair.a.writer, pair.b.reader, "longer than five\nline2\n");

  Text first = co_await pair.b.reader.ReadLine();
  Text second = co_await pair.b.reader.ReadLine();

  EXPECT_EQ(first.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(first.status().message()),
              HasSubstr("Separator is found, but chunk is longer than limit"));
  EXPECT_EQ(second.value(), "line2\n");
}

WEFT_TEST_F(StreamReaderTest, ALineWithoutAnEndIsDroppedAsFarAsItCame) {
  StreamPair pair(Socket::Pair().value(), /*limit=*/5);
  co_await Feed(pair.a.writer, pair.b.reader, "longer than five");
  Text first = co_await pair.b.reader.ReadLine();
  EXPECT_THAT(std::string(first.status().message()),
              HasSubstr("Separator is not found, and chunk exceed the limit"));
  pair.a.writer.Write("x\n");
  Text second = co_await pair.b.reader.ReadLine();
  EXPECT_EQ(second.value(), "x\n");
}

// RDR 203
WEFT_TEST_F(StreamReaderTest, ReadUntilOverTheLimitTakesNothing) {
  StreamPair pair(Socket::Pair().value(), /*limit=*/5);
  co_await Feed(pair.a.writer, pair.b.reader, "longer than five;x");
  for (std::string separator : {";", "#"}) {
    Text text = co_await pair.b.reader.ReadUntil(separator);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kResourceExhausted);
  }
  Text text = co_await pair.b.reader.Read(100);
  EXPECT_EQ(text.value(), "longer than five;x");
}

// RDR 204
WEFT_TEST_F(StreamReaderTest, ReadUntilAtTheEndTakesNothing) {
  StreamPair pair;
  pair.a.writer.Write("abc");
  pair.a.writer.Close();
  Text text = co_await pair.b.reader.ReadUntil(";");
  EXPECT_EQ(text.status().code(), absl::StatusCode::kOutOfRange);
  Text rest = co_await pair.b.reader.Read();
  EXPECT_EQ(rest.value(), "abc");
}

// RDR 205
WEFT_TEST_F(StreamReaderTest, ASeparatorMayComeInTwoChunks) {
  StreamPair pair;
  auto read = [](StreamReader& reader) -> Coro<std::string> {
    Text text = co_await reader.ReadUntil("||");
    co_return text.value();
  };
  Task<std::string> reading = CreateTask(read, std::ref(pair.b.reader));
  pair.a.writer.Write("ab|");
  co_await Rounds(5);
  EXPECT_FALSE(reading.Done());
  pair.a.writer.Write("|cd");
  std::string text = co_await std::move(reading);
  EXPECT_EQ(text, "ab||");
  Text rest = co_await pair.b.reader.Read(100);
  EXPECT_EQ(rest.value(), "cd");
}

// RDR 206
WEFT_TEST_F(StreamReaderTest, SeparatorsMayNotBeEmpty) {
  StreamPair pair;
  std::vector<std::string> none;
  std::vector<std::string> one_empty(2, "x");
  one_empty[1] = "";
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadUntil("")), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadUntil(none)), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadUntil(one_empty)), ValueError);
}

// RDR 207
WEFT_TEST_F(StreamReaderTest, SeveralSeparatorsGiveTheShortestText) {
  StreamPair pair;
  pair.a.writer.Write("a;b\nc");
  std::vector<std::string> separators;
  separators.push_back("\n");
  separators.push_back(";");
  Text first = co_await pair.b.reader.ReadUntil(separators);
  Text second = co_await pair.b.reader.ReadUntil(separators);
  EXPECT_EQ(first.value(), "a;");
  EXPECT_EQ(second.value(), "b\n");
}

// Whatever the chunks, the result is that of a search in the whole.
WEFT_TEST_F(StreamReaderTest, ChunksDoNotMatterToReadUntil) {
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    std::string data;
    const size_t size = 1 + random() % 60;
    while (data.size() < size) data += static_cast<char>('a' + random() % 3);
    std::vector<std::string> separators;
    for (int i = 0, count = 1 + static_cast<int>(random() % 3); i < count; ++i) {
      std::string separator;
      for (int j = 0, length = 1 + static_cast<int>(random() % 4); j < length; ++j) {
        separator += static_cast<char>('a' + random() % 3);
      }
      separators.push_back(separator);
    }
    // One write of it all, as the model.
    std::vector<std::string> results[2];
    for (int chunked = 0; chunked < 2; ++chunked) {
      StreamPair pair;
      auto feed = [](StreamWriter& writer, std::string text, bool in_chunks,
                     uint32_t seed) -> Coro<void> {
        std::mt19937 generator(seed);
        while (!text.empty()) {
          const size_t count = in_chunks ? 1 + generator() % 5 : text.size();
          writer.Write(text.substr(0, count));
          text.erase(0, count);
          co_await Rounds(3);
        }
        writer.Close();
      };
      Task<void> feeding = CreateTask(feed, std::ref(pair.a.writer), data, chunked == 1, random());
      while (true) {
        Text text = co_await pair.b.reader.ReadUntil(separators);
        if (!text.ok()) break;
        results[chunked].push_back(*text);
      }
      Text rest = co_await pair.b.reader.Read();
      results[chunked].push_back("rest " + rest.value());
      co_await feeding;
    }
    // Of several separators, one that ends later than another may have come first
    // in a chunk; what all agree on is that nothing is lost, and with one separator
    // everything.
    std::string all[2];
    for (int chunked = 0; chunked < 2; ++chunked) {
      for (const std::string& result : results[chunked]) all[chunked] += result;
    }
    EXPECT_EQ(all[0], all[1]) << data;
    if (separators.size() == 1) {
      EXPECT_EQ(results[0], results[1]) << data;
    }
  }
}

// RDR 208
WEFT_TEST_F(StreamReaderTest, OneReaderAtATime) {
  StreamPair pair;
  Task<std::string> first = CreateTask(ReadText(pair.b.reader, 100));
  co_await Yield();
  std::string message;
  try {
    static_cast<void>(co_await pair.b.reader.ReadLine());
  } catch (const RuntimeError& error) {
    message = error.what();
  }
  EXPECT_EQ(message,
            "readuntil() called while another coroutine is already waiting for incoming data");
  Outcome<Text> second = co_await NoThrow(pair.b.reader.Read(1));
  EXPECT_TRUE(second.has_exception());
  pair.a.writer.Write("x");
  std::string text = co_await std::move(first);
  EXPECT_EQ(text, "x");
}

// RDR 209: at every moment. One who takes anything is woken before what has come is fetched.
WEFT_TEST_F(StreamReaderTest, ACancelledReadLosesNothing) {
  const auto read = [](StreamReader& reader, bool is_line) {
    return is_line ? ReadLineText(reader) : ReadText(reader, 100);
  };
  for (const bool is_line : {true, false}) {
    int cancelled_with_data = 0;
    for (int rounds = 0; rounds < 10; ++rounds) {
      StreamPair pair(co_await TcpPair());
      Task<std::string> reading = CreateTask(read(pair.b.reader, is_line));
      co_await Rounds(3);
      pair.a.writer.Write("z\n");
      absl::Status sent = co_await pair.a.writer.Drain();
      EXPECT_TRUE(sent.ok());
      co_await Rounds(rounds);

      reading.Cancel();
      Outcome<std::string> outcome = co_await NoThrow(reading);

      if (outcome.has_value()) {
        EXPECT_EQ(*outcome, "z\n");
        continue;
      }
      if (!pair.b.reader.Unread().empty()) ++cancelled_with_data;
      std::string text = co_await read(pair.b.reader, is_line);
      EXPECT_EQ(text, "z\n");
    }
    EXPECT_GT(cancelled_with_data, 0);
  }
}

// Closed by another task, at every moment.
WEFT_TEST_F(StreamReaderTest, WhatHasComeBeforeTheCloseIsRead) {
  int read_after_close = 0;
  for (int rounds = 0; rounds < 10; ++rounds) {
    StreamPair pair;
    Task<std::string> reading = CreateTask(ReadText(pair.b.reader, 100));
    co_await Rounds(3);
    pair.a.writer.Write("z");
    co_await Rounds(rounds);

    const bool is_done = reading.Done();
    pair.b.writer.Close();
    std::string text = co_await std::move(reading);

    if (!is_done && text == "z") ++read_after_close;
    EXPECT_TRUE(text == "z" || (!is_done && text.empty())) << text;
  }
  EXPECT_GT(read_after_close, 0);
}

// Many connections that are reported together are read one after the other, by one slab.
WEFT_TEST_F(StreamReaderTest, ThoseThatAreReportedTogetherShareASlab) {
  constexpr int kPairs = 20;
  std::vector<std::unique_ptr<StreamPair>> pairs;
  std::vector<Task<void>> tasks;
  size_t most = 0;
  const auto read = [&most](StreamReader& reader) -> Coro<void> {
    absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill();
    EXPECT_EQ(unread.value().size(), 3000u);
    most = std::max(most, GetRunningLoop().slab_pool().outstanding_count());
    reader.Consume(unread->size());
  };
  for (int i = 0; i < kPairs; ++i) {
    pairs.push_back(std::make_unique<StreamPair>());
    tasks.push_back(CreateTask(read(pairs.back()->b.reader)));
  }
  co_await Rounds(3);
  for (const auto& pair : pairs) pair->a.writer.Write(std::string(3000, 'x'));
  for (Task<void>& task : tasks) co_await std::move(task);
  // (A kernel that completes has filled slabs of its own.)
  if (!TestPollerCompletes()) {
    EXPECT_EQ(most, 1u);
  }
}

// As a future's, a cancellation is delivered in the next round.
WEFT_TEST_F(StreamReaderTest, CancellationTakesOneRound) {
  StreamPair pair;
  Task<std::string> reading = CreateTask(ReadLineText(pair.b.reader));
  co_await Rounds(3);
  reading.Cancel();
  co_await Yield();
  EXPECT_TRUE(reading.Done());
}

WEFT_TEST_F(StreamReaderTest, TimeoutsLoseNothing) {
  StreamPair pair;
  for (int i = 0; i < 10; ++i) {
    Outcome<Text> outcome =
        co_await NoThrow(WithTimeout(absl::Seconds(1), pair.b.reader.ReadExactly(20)));
    EXPECT_TRUE(outcome.has_exception());
    pair.a.writer.Write("ab");
  }
  Text text = co_await WithTimeout(absl::Seconds(1), pair.b.reader.ReadExactly(20));
  EXPECT_EQ(text.value(), "abababababababababab");
}

// RDR 210
WEFT_TEST_F(StreamReaderTest, AnExceptionThatWasSetIsThrownByAllReads) {
  StreamPair pair;
  Task<std::string> reading = CreateTask(ReadText(pair.b.reader, 100));
  co_await Rounds(2);
  pair.b.reader.SetException(std::make_exception_ptr(ValueError("mine")));

  WEFT_EXPECT_THROW(static_cast<void>(co_await reading), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.Read(1)), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadLine()), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.reader.ReadExactly(1)), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await pair.b.writer.Drain()), ValueError);
}

// RDR 212
WEFT_TEST_F(StreamReaderTest, WhatIsThereNeedsNoRound) {
  StreamPair pair;
  co_await Feed(pair.a.writer, pair.b.reader, "abcd\nef;gh");
  bool other_ran = false;
  GetRunningLoop().CallSoon([&other_ran] { other_ran = true; });

  Text a = co_await pair.b.reader.ReadLine();
  Text b = co_await pair.b.reader.ReadUntil(";");
  Text c = co_await pair.b.reader.ReadExactly(1);
  Text d = co_await pair.b.reader.Read(100);

  EXPECT_FALSE(other_ran);
  co_await Yield();
  EXPECT_EQ(a.value() + b.value() + c.value() + d.value(), "abcd\nef;gh");
}

// RDR 213
WEFT_TEST_F(StreamReaderTest, TheLimitIsPositive) {
  auto [a, b] = Socket::Pair().value();
  EXPECT_THROW(ToConnection(std::move(a), 0), ValueError);
  EXPECT_EQ(kDefaultStreamLimit, 65536u);
  co_return;
}

// RDR 214: nothing is read that nobody waits for.
WEFT_TEST_F(StreamReaderTest, APeerThatIsTooFastIsHeldUp) {
  StreamPair pair;
  pair.a.writer.Write(std::string(16 << 20, 'x'));
  co_await Rounds(20);
  // (The kernel takes a part: up to ten megabytes, if it is TCP.)
  EXPECT_GT(pair.a.writer.GetWriteBufferSize(), size_t{3} << 20);
  EXPECT_EQ(pair.b.reader.Unread().size(), 0u);
  pair.a.writer.Close();
  Text all = co_await pair.b.reader.Read();
  EXPECT_EQ(all.value().size(), size_t{16} << 20);
}

WEFT_TEST_F(StreamReaderTest, FillShowsAndConsumeTakes) {
  StreamPair pair;
  pair.a.writer.Write("abc");
  absl::StatusOr<absl::Span<const char>> unread = co_await pair.b.reader.Fill();
  EXPECT_EQ(std::string(unread->data(), unread->size()), "abc");
  pair.b.reader.Consume(1);
  unread = co_await pair.b.reader.Fill();
  EXPECT_EQ(std::string(unread->data(), unread->size()), "bc");
  pair.a.writer.Write("de");
  unread = co_await pair.b.reader.Fill(4);
  EXPECT_EQ(std::string(unread->data(), unread->size()), "bcde");
  pair.b.reader.Consume(4);
  pair.a.writer.Close();
  unread = co_await pair.b.reader.Fill();
  EXPECT_EQ(unread.value().size(), 0u);
}

WEFT_TEST_F(StreamReaderTest, ReadIntoFillsABuffer) {
  StreamPair pair;
  pair.a.writer.Write("hello");
  char buffer[3];
  absl::StatusOr<size_t> count = co_await pair.b.reader.ReadInto(absl::MakeSpan(buffer));
  EXPECT_EQ(count.value(), 3u);
  EXPECT_EQ(std::string(buffer, 3), "hel");
  count = co_await pair.b.reader.ReadInto(absl::MakeSpan(buffer));
  EXPECT_EQ(count.value(), 2u);
  pair.a.writer.Close();
  count = co_await pair.b.reader.ReadInto(absl::MakeSpan(buffer));
  EXPECT_EQ(count.value(), 0u);
}

// An idle connection holds no buffer.
WEFT_TEST_F(StreamReaderTest, HoldsABufferOnlyWhileSomethingIsUnread) {
  SlabPool& pool = GetRunningLoop().slab_pool();
  StreamPair pair;
  Task<std::string> reading = CreateTask(ReadText(pair.b.reader, 2));
  co_await Rounds(3);
  EXPECT_EQ(pool.outstanding_count(), 0u);
  pair.a.writer.Write(std::string(3000, 'x'));
  std::string text = co_await std::move(reading);
  // A kernel that completes has filled one of its own.
  EXPECT_EQ(pool.outstanding_count(), TestPollerCompletes() ? 0u : 1u);
  Text rest = co_await pair.b.reader.Read(10000);
  EXPECT_EQ(rest.value().size(), 2998u);
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

// A fast peer does not keep the others waiting.
WEFT_TEST_F(StreamReaderTest, ReadsOfMuchDataYieldInTheEnd) {
  StreamPair pair;
  int others = 0;
  auto other = [&others]() -> Coro<void> {
    while (true) {
      ++others;
      co_await Yield();
    }
  };
  Task<void> task = CreateTask(other);
  for (int i = 0; i < 1000; ++i) {
    pair.a.writer.Write("x");
    absl::Status sent = co_await pair.a.writer.Drain();
    EXPECT_TRUE(sent.ok());
    Text text = co_await pair.b.reader.Read(10);
    EXPECT_EQ(text.value(), "x");
  }
  EXPECT_GT(others, 30);
  task.Cancel();
  co_await NoThrow(task);
}

// The peer has gone with unread data at its end: a reset.
WEFT_TEST_F(StreamReaderTest, AResetIsAnErrorThatStays) {
  StreamPair pair(co_await TcpPair());
  Task<std::string> reading = CreateTask(ReadText(pair.b.reader, 100));
  co_await Rounds(3);
  EXPECT_TRUE(pair.a.writer.socket().SetOption(SocketOption::kLinger, 0).ok());
  pair.a.writer.Abort();

  std::string text = co_await std::move(reading);
  Text again = co_await pair.b.reader.ReadLine();

  EXPECT_THAT(text, HasSubstr("ECONNRESET"));
  EXPECT_THAT(text, HasSubstr("127.0.0.1:"));
  EXPECT_EQ(ErrnoOf(again.status()), ECONNRESET);
}

// The kernel says once that the connection was reset. Who reads is not told of an end, though
// a write has heard of it before.
WEFT_TEST_F(StreamReaderTest, AResetThatAWriteHasHeardOfIsNoEnd) {
  StreamPair pair(co_await TcpPair());
  Task<std::string> feeding = CreateTask(ReadText(pair.b.reader, 4));
  pair.a.writer.Write("some of it");
  WEFT_EXPECT_EQ(co_await feeding, "some");
  EXPECT_TRUE(pair.a.writer.socket().SetOption(SocketOption::kLinger, 0).ok());
  pair.a.writer.Abort();
  co_await Rounds(3);

  absl::Status sent;
  for (int i = 0; i < 5 && sent.ok(); ++i) {
    pair.b.writer.Write("x");
    sent = co_await pair.b.writer.Drain();
    co_await Yield();  // On a kernel that completes, until it has.
  }
  EXPECT_EQ(ErrnoOf(sent), ECONNRESET) << sent;

  // What had come before is there.
  Text rest = co_await pair.b.reader.ReadExactly(6);
  EXPECT_EQ(rest.value_or(""), " of it");
  for (int i = 0; i < 2; ++i) {
    Text end = co_await pair.b.reader.Read();
    EXPECT_EQ(ErrnoOf(end.status()), ECONNRESET) << end.status();
  }
}

// But who has said all, and only then hears no more, has not broken off.
class EndBeforeResetTest : public NetTest {
 protected:
  void SetUp() override {
    if (!TellsEndsFromResets()) GTEST_SKIP() << "an end before a reset is a reset on this system";
  }
};

WEFT_TEST_F(EndBeforeResetTest, IsAnEnd) {
  StreamPair pair(co_await TcpPair());
  pair.a.writer.Write("all of it");
  pair.a.writer.Close();
  co_await Rounds(3);

  absl::Status sent;
  for (int i = 0; i < 100 && sent.ok(); ++i) {
    pair.b.writer.Write("x");
    sent = co_await pair.b.writer.Drain();
    co_await Yield();
  }
  EXPECT_EQ(ErrnoOf(sent), EPIPE) << sent;

  Text all = co_await pair.b.reader.Read();
  EXPECT_EQ(all.value_or(""), "all of it");
}

// A connection on which nothing happens, and that nothing is sent on: whoever reads is
// told when it ends, however that is. What is unread does not stand in the way.
WEFT_TEST_F(StreamReaderTest, TheEndOfAnIdleConnectionIsNoticed) {
  for (const bool is_reset : {false, true}) {
    for (const bool has_unread : {false, true}) {
      StreamPair pair(co_await TcpPair());
      if (has_unread) co_await Feed(pair.a.writer, pair.b.reader, "unread");
      auto watch = [](StreamReader* reader, size_t more_than) -> Coro<absl::Status> {
        absl::StatusOr<absl::Span<const char>> unread = co_await reader->Fill(more_than + 1);
        EXPECT_TRUE(!unread.ok() || unread->size() == more_than);
        co_return unread.status();
      };
      Task<absl::Status> watching =
          CreateTask(watch, &pair.b.reader, has_unread ? size_t{6} : size_t{0});
      co_await Sleep(absl::Hours(1));
      EXPECT_FALSE(watching.Done());

      if (is_reset) {
        EXPECT_TRUE(
            pair.a.writer.socket().SetOption(socket_option::kLinger, absl::ZeroDuration()).ok());
      }
      pair.a.writer.Abort();

      absl::Status end = co_await std::move(watching);
      EXPECT_EQ(ErrnoOf(end), is_reset ? ECONNRESET : 0) << end;
    }
  }
}

// Without anybody who reads: the next write, or who waits for it to be closed.
WEFT_TEST_F(StreamReaderTest, WhatALoopDoesNotReadItIsToldByWriting) {
  StreamPair pair(co_await TcpPair());
  EXPECT_TRUE(pair.a.writer.socket().SetOption(socket_option::kLinger, absl::ZeroDuration()).ok());
  pair.a.writer.Abort();
  co_await Rounds(5);
  pair.b.writer.Write("x");
  absl::Status sent = co_await pair.b.writer.Drain();
  if (TestPollerCompletes()) {  // It is sent when the loop polls, and Drain() does not wait.
    EXPECT_TRUE(sent.ok());
    co_await Rounds(3);
    sent = co_await pair.b.writer.Drain();
  }
  EXPECT_EQ(ErrnoOf(sent), ECONNRESET) << sent;
}

// RDR 211
WEFT_TEST_F(StreamReaderTest, LinesOneAfterTheOther) {
  StreamPair pair;
  pair.a.writer.Write("a\nb\nc");
  pair.a.writer.Close();
  std::vector<std::string> got;
  AsyncGenerator<absl::StatusOr<std::string>> lines = Lines(pair.b.reader);
  while (true) {
    std::optional<absl::StatusOr<std::string>> line = co_await lines.Next();
    if (!line.has_value()) break;
    got.push_back(line->value());
  }
  EXPECT_THAT(got, ::testing::ElementsAre("a\n", "b\n", "c"));
}

// A line that is too long is told, and the next follow.
WEFT_TEST_F(StreamReaderTest, LinesMayBeTooLong) {
  StreamPair pair(Socket::Pair().value(), /*limit=*/8);
  pair.a.writer.Write("short\nmuch too long\nnext\n");
  AsyncGenerator<absl::StatusOr<std::string>> lines = Lines(pair.b.reader);
  std::optional<absl::StatusOr<std::string>> line = co_await lines.Next();
  EXPECT_EQ(line->value(), "short\n");
  line = co_await lines.Next();
  EXPECT_EQ(line->status().code(), absl::StatusCode::kResourceExhausted);
  line = co_await lines.Next();
  EXPECT_EQ(line->value(), "next\n");
}

// A reset that comes between two reads.
class LateResetTest : public NetTest {
 protected:
  void SetUp() override {
    if (!KeepsResets()) GTEST_SKIP() << "this system forgets a reset while nobody reads";
  }
};

WEFT_TEST_F(LateResetTest, EndsTheLinesWithAnError) {
  std::pair<Socket, Socket> sockets = co_await TcpPair();
  StreamPair pair(std::move(sockets));
  pair.a.writer.Write("line\n");
  AsyncGenerator<absl::StatusOr<std::string>> lines = Lines(pair.b.reader);
  std::optional<absl::StatusOr<std::string>> line = co_await lines.Next();
  EXPECT_EQ(line->value(), "line\n");
  EXPECT_TRUE(pair.a.writer.socket().SetOption(socket_option::kLinger, absl::ZeroDuration()).ok());
  pair.a.writer.Abort();
  line = co_await lines.Next();
  EXPECT_EQ(ErrnoOf(line->status()), ECONNRESET);
  line = co_await lines.Next();
  EXPECT_FALSE(line.has_value());
}

// Closing on this side is the end of the stream, also for whoever waits.
WEFT_TEST_F(StreamReaderTest, ClosingOnThisSideIsTheEnd) {
  StreamPair pair;
  Task<std::string> reading = CreateTask(ReadText(pair.b.reader, 100));
  co_await Rounds(3);
  pair.b.writer.Close();
  std::string text = co_await std::move(reading);
  EXPECT_EQ(text, "");
  EXPECT_TRUE(pair.b.reader.AtEof());
  Text again = co_await pair.b.reader.ReadLine();
  EXPECT_EQ(again.value(), "");
}

WEFT_TEST_F(StreamReaderTest, MayBeDestroyedWhileAReadWaits) {
  StreamPair pair;
  auto read = [](StreamReader* reader) -> Coro<std::string> {
    Text text = co_await reader->Read(100);
    co_return text.value();
  };
  Task<std::string> reading = CreateTask(read, &pair.b.reader);
  co_await Rounds(3);
  pair.b.reader = StreamReader();
  pair.a.writer.Write("x");
  std::string text = co_await std::move(reading);
  EXPECT_EQ(text, "x");
}

}  // namespace
}  // namespace weft
