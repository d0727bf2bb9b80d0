// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A reader whose socket is read by somebody else as well.

#include <sys/socket.h>

#include <exception>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_net.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class StreamReaderPosixTest : public NetTest {};

Coro<std::string> ReadText(StreamReader& reader) {
  absl::StatusOr<std::string> text = co_await reader.Read(100);
  co_return text.value();
}

// A reader that waits, of whose socket another takes what has come.
struct Theft {
  Theft() : Theft(Socket::Pair().value()) {}
  explicit Theft(std::pair<Socket, Socket> sockets)
      : handle(static_cast<int>(sockets.second.handle())), pair(std::move(sockets)) {
    reading = CreateTask(ReadText(pair.b.reader));
  }

  // Some rounds after it has come. False if it was too late.
  Coro<bool> Steal(int rounds) {
    co_await Rounds(3);
    pair.a.writer.Write("stolen");
    co_await Rounds(rounds);
    char buffer[100];
    const ssize_t stolen = ::recv(handle, buffer, sizeof(buffer), MSG_DONTWAIT);
    co_return stolen > 0;
  }

  int handle;
  StreamPair pair;
  Task<std::string> reading;
};

// What was taken between the report and the reader's turn was a false alarm: the reader
// waits on, and can be cancelled.
WEFT_TEST_F(StreamReaderPosixTest, AReportThatTurnsOutToBeFalseIsNoEnd) {
  int stolen_while_reading = 0;
  for (const bool is_cancelled : {false, true}) {
    for (int rounds = 0; rounds < 8; ++rounds) {
      Theft theft;
      const bool is_stolen = co_await theft.Steal(rounds);
      Task<std::string>& reading = theft.reading;
      if (is_stolen && !reading.Done()) ++stolen_while_reading;
      if (is_cancelled && reading.Cancel()) {
        co_await Rounds(3);
        EXPECT_TRUE(reading.Done());
        if (!reading.Cancelled()) continue;
        reading = CreateTask(ReadText(theft.pair.b.reader));
      } else if (is_stolen) {
        co_await Rounds(5);
        EXPECT_FALSE(reading.Done());
      }
      theft.pair.a.writer.Write("kept");
      std::string text = co_await std::move(reading);
      EXPECT_TRUE(is_stolen ? text == "kept" : !text.empty()) << text;
    }
  }
  if (!TestPollerCompletes()) {
    EXPECT_GT(stolen_while_reading, 0);
  }
}

// The same, and an exception is set before it turns out.
WEFT_TEST_F(StreamReaderPosixTest, AFalseReportHidesNoExceptionThatWasSet) {
  for (int rounds = 0; rounds < 8; ++rounds) {
    Theft theft;
    static_cast<void>(co_await theft.Steal(rounds));
    const bool was_done = theft.reading.Done();
    theft.pair.b.reader.SetException(std::make_exception_ptr(ValueError("mine")));
    co_await Rounds(3);
    EXPECT_TRUE(theft.reading.Done());
    Outcome<std::string> outcome = co_await NoThrow(std::move(theft.reading));
    EXPECT_TRUE(was_done || outcome.has_exception());
  }
}

}  // namespace
}  // namespace weft
