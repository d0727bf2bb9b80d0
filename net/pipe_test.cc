// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What the streams over pipes promise. The numbers are those of the conformance list.

#include "weft/net/pipe.h"

#include <cerrno>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class PipeTest : public NetTest {};

Coro<> WriteAll(StreamWriter writer, std::string data) {
  writer.Write(data);
  absl::Status sent = co_await writer.Drain();
  EXPECT_TRUE(sent.ok()) << sent;
}

// TRN 253
WEFT_TEST_F(PipeTest, CarriesBytesAndTheEnd) {
  Pipe pipe = (co_await OpenPipe()).value();
  pipe.writer.Write("one\ntw");
  pipe.writer.Write("o\nthree");
  pipe.writer.Close();

  WEFT_EXPECT_EQ(Get(co_await pipe.reader.ReadLine()), "one\n");
  WEFT_EXPECT_EQ(Get(co_await pipe.reader.ReadLine()), "two\n");
  WEFT_EXPECT_EQ(Get(co_await pipe.reader.Read()), "three");
  WEFT_EXPECT_EQ(Get(co_await pipe.reader.Read()), "");
  EXPECT_TRUE(pipe.reader.AtEof());
}

WEFT_TEST_F(PipeTest, CarriesMuchMoreThanItHolds) {
  Pipe pipe = (co_await OpenPipe()).value();
  const std::string data = Pattern(4 << 20);
  Task<> writing = CreateTask(WriteAll(std::move(pipe.writer), data));
  absl::StatusOr<std::string> got = co_await pipe.reader.Read();
  co_await writing;
  EXPECT_TRUE(got.value() == data);
}

// What was written before the writer went still arrives.
WEFT_TEST_F(PipeTest, AWriterThatIsDroppedSendsWhatItHas) {
  Pipe pipe = (co_await OpenPipe()).value();
  const std::string data = Pattern(1 << 20);
  pipe.writer.Write(data);
  pipe.writer = StreamWriter();
  WEFT_EXPECT_TRUE(Get(co_await pipe.reader.Read()) == data);
}

WEFT_TEST_F(PipeTest, TheEndOfWhatIsWrittenClosesThePipe) {
  Pipe pipe = (co_await OpenPipe()).value();
  EXPECT_TRUE(pipe.writer.CanWriteEof());
  pipe.writer.Write("all");
  pipe.writer.WriteEof();
  WEFT_EXPECT_EQ(Get(co_await pipe.reader.Read()), "all");
  WEFT_EXPECT_OK(co_await pipe.writer.WaitClosed());
  EXPECT_THROW(pipe.writer.Write("more"), RuntimeError);
}

WEFT_TEST_F(PipeTest, ACancelledReadTakesNothing) {
  Pipe pipe = (co_await OpenPipe()).value();
  pipe.writer.Write("half");
  co_await Rounds(2);
  auto read = co_await NoThrow(WithTimeout(absl::Seconds(1), pipe.reader.ReadExactly(8)));
  EXPECT_FALSE(read.has_value());
  pipe.writer.Write("half");
  WEFT_EXPECT_EQ(Get(co_await pipe.reader.ReadExactly(8)), "halfhalf");
}

WEFT_TEST_F(PipeTest, WritingWhereNobodyReadsIsEpipe) {
  PipeOptions options;
  options.name = "the pipe";
  Pipe pipe = (co_await OpenPipe(options)).value();
  pipe.reader = StreamReader();
  pipe.writer.Write("x");
  absl::Status sent = co_await pipe.writer.Drain();
  absl::Status why = co_await pipe.writer.WaitClosed();
  EXPECT_EQ(ErrnoOf(why), EPIPE) << sent << ", " << why;
  EXPECT_THAT(why.message(), HasSubstr("the pipe"));
}

WEFT_TEST_F(PipeTest, WhatIsNotOpenIsRefused) {
  absl::StatusOr<StreamReader> closed = co_await ConnectReadPipe(123456);
  EXPECT_EQ(ErrnoOf(closed.status()), EBADF) << closed.status();
  WEFT_EXPECT_THROW(static_cast<void>(co_await ConnectReadPipe(-5)), ValueError);
}

TEST_F(PipeTest, StreamsThatAreLeftGoWithTheirLoop) {
  StreamReader left;
  StreamWriter also_left;
  const auto leave = [&]() -> Coro<> {
    Pipe pipe = (co_await OpenPipe()).value();
    pipe.writer.Write(std::string(1 << 20, 'x'));  // More than the pipe takes.
    left = std::move(pipe.reader);
    also_left = std::move(pipe.writer);
  };
  weft::Run(leave());
}

}  // namespace
}  // namespace weft
