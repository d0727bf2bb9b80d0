// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/graceful.h"

#include <signal.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/net/connect.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class GracefulTest : public NetTest {};

// Answers each line after so long.
struct SlowAnswers {
  explicit SlowAnswers(absl::Duration answer_delay) : delay(answer_delay) {}
  Coro<> operator()(StreamReader reader, StreamWriter writer) const {
    while (true) {
      absl::StatusOr<std::string> line = co_await reader.ReadLine();
      if (!line.ok() || line->empty()) co_return;
      co_await Sleep(delay);
      writer.Write(*line);
      WEFT_EXPECT_OK(co_await writer.Drain());
      if (*line == "last\n") co_return;
    }
  }
  absl::Duration delay;
};

// A client that has asked, and whose question has arrived.
Coro<Connection> Ask(Server& server, std::string line) {
  Connection client = (co_await OpenConnection("127.0.0.1", server.port())).value();
  client.writer.Write(line);
  co_await Rounds(10);
  co_return client;
}

template <class Handler>
Coro<Server> Start(Handler handler) {
  absl::StatusOr<Server> server = co_await StartServer(handler, "127.0.0.1", 0);
  co_return *std::move(server);
}

absl::Duration Since(TimePoint start) { return GetRunningLoop().Time() - start; }

WEFT_TEST_F(GracefulTest, WithoutClientsItIsOverAtOnce) {
  Server a = co_await Start(SlowAnswers(absl::Seconds(1)));
  Server b = co_await Start(SlowAnswers(absl::Seconds(1)));
  const TimePoint start = GetRunningLoop().Time();
  const uint16_t port = b.port();
  std::vector<Server*> both = {&a, &b};
  ShutdownReport report = co_await ShutDown(both);
  EXPECT_EQ(Since(start), absl::ZeroDuration());
  EXPECT_EQ(report.open, 0u);
  EXPECT_FALSE(a.IsServing());
  absl::StatusOr<Connection> refused = co_await OpenConnection("127.0.0.1", port);
  EXPECT_FALSE(refused.ok());
}

//
WEFT_TEST_F(GracefulTest, WhatIsBeingAnsweredIsAnswered) {
  Server server = co_await Start(SlowAnswers(absl::Seconds(5)));
  Connection client = co_await Ask(server, "last\n");
  const TimePoint start = GetRunningLoop().Time();

  ShutdownReport report = co_await ShutDown(std::vector<Server*>(1, &server));

  EXPECT_GE(Since(start), absl::Seconds(4));
  EXPECT_LE(Since(start), absl::Seconds(6));
  EXPECT_EQ(report.open, 1u);
  EXPECT_EQ(report.cancelled, 0u);
  WEFT_EXPECT_EQ(Get(co_await client.reader.Read()), "last\n");
}

//
WEFT_TEST_F(GracefulTest, WhoIsNotReadyByThenIsCancelled) {
  Server server = co_await Start(SlowAnswers(absl::Hours(1)));
  Connection client = co_await Ask(server, "slow\n");
  const TimePoint start = GetRunningLoop().Time();
  ShutdownOptions options;
  options.grace = absl::Seconds(3);

  ShutdownReport report = co_await ShutDown(std::vector<Server*>(1, &server), options);

  EXPECT_GE(Since(start), absl::Seconds(3));
  EXPECT_LE(Since(start), absl::Seconds(4));
  EXPECT_EQ(report.cancelled, 1u);
  EXPECT_EQ(report.aborted, 0u);
  WEFT_EXPECT_EQ(Get(co_await client.reader.Read()), "");
}

// Cleans up for ever.
Coro<> Stubborn(StreamReader reader, StreamWriter writer) {
  auto waited = co_await NoThrow(Sleep(absl::Hours(1)));
  auto cleaned = co_await NoThrow(Sleep(absl::Hours(1)));
  static_cast<void>(reader);
  static_cast<void>(writer);
  waited.value();
  cleaned.value();
}

WEFT_TEST_F(GracefulTest, WhoCleansUpForEverIsCutOff) {
  Server server = co_await Start(Stubborn);
  Connection client = co_await Ask(server, "hello\n");
  const TimePoint start = GetRunningLoop().Time();
  ShutdownOptions options;
  options.grace = absl::Seconds(3);
  options.cleanup = absl::Seconds(4);

  ShutdownReport report = co_await ShutDown(std::vector<Server*>(1, &server), options);

  EXPECT_GE(Since(start), absl::Seconds(7));
  EXPECT_LE(Since(start), absl::Seconds(8));
  EXPECT_EQ(report.cancelled, 1u);
  EXPECT_EQ(report.aborted, 1u);
}

WEFT_TEST_F(GracefulTest, AHandlerThatHasHungUpIsStillWaitedFor) {
  bool is_over = false;
  const auto handler = [&is_over](StreamReader reader, StreamWriter writer) -> Coro<> {
    static_cast<void>(co_await reader.ReadLine());
    writer.Close();
    co_await Sleep(absl::Seconds(5));
    is_over = true;
  };
  Server server = co_await Start(handler);
  Connection client = co_await Ask(server, "hello\n");
  ShutdownReport report = co_await ShutDown(std::vector<Server*>(1, &server));
  EXPECT_TRUE(is_over);
  EXPECT_EQ(report.cancelled, 0u);
}

WEFT_TEST_F(GracefulTest, TheApplicationMayEndIdleConnectionsAtOnce) {
  Server server = co_await Start(SlowAnswers(absl::Seconds(1)));
  Connection idle = co_await Ask(server, "");
  const TimePoint start = GetRunningLoop().Time();
  ShutdownOptions options;
  options.on_stopping = [&server] { server.CloseClients(); };
  ShutdownReport report = co_await ShutDown(std::vector<Server*>(1, &server), options);
  EXPECT_LE(Since(start), absl::Seconds(1));
  EXPECT_EQ(report.open, 1u);
  EXPECT_EQ(report.cancelled, 0u);
}

WEFT_TEST_F(GracefulTest, ACancellationShutsDownBeforeItIsThrown) {
  Server server = co_await Start(SlowAnswers(absl::Seconds(5)));
  std::vector<std::string> log;
  ShutdownOptions options;
  options.on_stopping = [&log] { log.push_back("stopping"); };
  options.on_stopped = [&log](const ShutdownReport& report) {
    log.push_back(
        absl::StrCat("stopped, ", report.open, " open, ", report.cancelled, " cancelled"));
  };
  Task<void> serving = CreateTask(ServeUntilCancelled(server, options));
  Connection client = co_await Ask(server, "last\n");
  EXPECT_TRUE(server.IsServing());
  EXPECT_THAT(log, ElementsAre());

  serving.Cancel();
  auto ended = co_await NoThrow(Task<void>(serving));

  EXPECT_TRUE(ended.cancelled());
  EXPECT_THAT(log, ElementsAre("stopping", "stopped, 1 open, 0 cancelled"));
  WEFT_EXPECT_EQ(Get(co_await client.reader.Read()), "last\n");
}

WEFT_TEST_F(GracefulTest, ASecondCancellationLeavesTheHandlersAlone) {
  Server server = co_await Start(SlowAnswers(absl::Seconds(5)));
  Task<void> serving = CreateTask(ServeUntilCancelled(server));
  Connection client = co_await Ask(server, "last\n");
  const TimePoint start = GetRunningLoop().Time();
  serving.Cancel();
  co_await Rounds(3);

  serving.Cancel();
  auto ended = co_await NoThrow(Task<void>(serving));

  EXPECT_TRUE(ended.cancelled());
  EXPECT_LT(Since(start), absl::Seconds(1));
  EXPECT_FALSE(server.IsServing());
  WEFT_EXPECT_EQ(Get(co_await client.reader.Read()), "last\n");
}

ServeOptions OnSigterm(std::vector<std::string>* log) {
  ServeOptions options;
  options.signals = SignalSet(SIGTERM);
  options.on_stopping = [log] { log->push_back("stopping"); };
  return options;
}

//
WEFT_TEST_F_IN_REAL_TIME(GracefulTest, ServesUntilASignalComes) {
  std::vector<std::string> log;
  Server server = co_await Start(SlowAnswers(absl::Milliseconds(20)));
  Task<ShutdownReport> serving = CreateTask(ServeUntilSignal(server, OnSigterm(&log)));
  Connection client = co_await Ask(server, "last\n");
  EXPECT_TRUE(server.IsServing());
  ::raise(SIGTERM);
  ShutdownReport report = co_await serving;
  EXPECT_EQ(report.signal, SIGTERM);
  EXPECT_EQ(report.cancelled, 0u);
  EXPECT_THAT(log, ElementsAre("stopping"));
  WEFT_EXPECT_EQ(Get(co_await client.reader.Read()), "last\n");
}

WEFT_TEST_F_IN_REAL_TIME(GracefulTest, ASecondSignalEndsTheGraceAndAThirdTheCleanup) {
  std::vector<std::string> log;
  ServeOptions options = OnSigterm(&log);
  options.grace = absl::Hours(1);
  options.cleanup = absl::Hours(1);
  Server server = co_await Start(Stubborn);
  Task<ShutdownReport> serving = CreateTask(ServeUntilSignal(server, options));
  Connection client = co_await Ask(server, "hello\n");
  for (int i = 0; i < 3; ++i) {
    ::raise(SIGTERM);
    co_await Rounds(10);
  }
  ShutdownReport report = co_await serving;
  EXPECT_EQ(report.cancelled, 1u);
  EXPECT_EQ(report.aborted, 1u);
}

WEFT_TEST_F_IN_REAL_TIME(GracefulTest, CancellingItClosesTheServers) {
  std::vector<std::string> log;
  Server server = co_await Start(SlowAnswers(absl::Seconds(1)));
  Task<ShutdownReport> serving = CreateTask(ServeUntilSignal(server, OnSigterm(&log)));
  co_await Rounds(3);
  serving.Cancel();
  auto ended = co_await NoThrow(Task<ShutdownReport>(serving));
  EXPECT_TRUE(ended.cancelled());
  EXPECT_FALSE(server.IsServing());
}

}  // namespace
}  // namespace weft
