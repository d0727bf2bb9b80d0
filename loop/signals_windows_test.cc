// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Events of the console, and what the program raises itself. The console is a new one of
// this process's own, so that nobody else hears of its events.

#include <signal.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/next_signal.h"
#include "weft/loop/run.h"
#include "weft/testing/thrown_by.h"
// Behind weft's: Yield is a macro of it.
#include <windows.h>

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ctrl-C, as the console has it. False if there can be no console here.
bool PressCtrlC() {
  static const bool has_console = [] {
    ::FreeConsole();
    return ::AllocConsole() != 0;
  }();
  return has_console && ::GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) != 0;
}

TEST(SignalsWindowsTest, CtrlCIsSigint) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<int> log;
  ASSERT_TRUE(loop->AddSignalHandler(SIGINT,
                                     [&] {
                                       log.push_back(SIGINT);
                                       loop->Stop();
                                     })
                  .ok());
  if (!PressCtrlC()) GTEST_SKIP() << "no console can be had: " << ::GetLastError();

  loop->RunForever();

  EXPECT_THAT(log, ElementsAre(SIGINT));
  loop->Close();
}

Coro<int> WaitForCtrlC() {
  if (!PressCtrlC()) co_return 0;
  co_await Sleep(absl::Seconds(10));
  co_return 1;
}

TEST(SignalsWindowsTest, CtrlCEndsARun) {
  int result = -1;
  EXPECT_THAT(ThrownBy([&] { result = weft::Run(WaitForCtrlC()); }),
              HasSubstr(result == 0 ? "nothing" : "KeyboardInterrupt"));
}

TEST(SignalsWindowsTest, WhatIsRaisedIsHandledOnceForEachTime) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<int> log;
  for (const int signal : {SIGINT, SIGBREAK, SIGTERM}) {
    ASSERT_TRUE(loop->AddSignalHandler(signal, [&log, signal] { log.push_back(signal); }).ok());
  }

  for (const int signal : {SIGTERM, SIGINT, SIGBREAK, SIGINT}) ::raise(signal);
  loop->CallLater(absl::Milliseconds(1), [&] { loop->Stop(); });
  loop->RunForever();

  EXPECT_THAT(log, ElementsAre(SIGTERM, SIGINT, SIGBREAK, SIGINT));
  loop->Close();
}

int heard = 0;

TEST(SignalsWindowsTest, WhoHandledItBeforeDoesSoAgain) {
  heard = 0;
  ::signal(SIGTERM, [](int) { ++heard; });
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  ASSERT_TRUE(loop->AddSignalHandler(SIGTERM, [] {}).ok());
  ::raise(SIGTERM);
  EXPECT_EQ(heard, 0);

  EXPECT_TRUE(loop->RemoveSignalHandler(SIGTERM));
  EXPECT_FALSE(loop->RemoveSignalHandler(SIGTERM));
  ::raise(SIGTERM);

  EXPECT_EQ(heard, 1);
  loop->Close();
  ::signal(SIGTERM, SIG_DFL);
}

TEST(SignalsWindowsTest, OthersAreUnimplementedAndSayWhy) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();

  const absl::Status status = loop->AddSignalHandler(10, [] {});

  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("signal 10: Windows has SIGINT"));
  EXPECT_THAT(ThrownBy([&] { (void)loop->AddSignalHandler(0, [] {}); }),
              HasSubstr("ValueError: signal number out of range: 0"));
  loop->Close();
}

TEST(SignalsWindowsTest, OnlyTheMainThreadHandlesThem) {
  std::string thrown;
  std::thread([&] {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    thrown = ThrownBy([&] { (void)loop->AddSignalHandler(SIGINT, [] {}); });
    loop->Close();
  }).join();

  EXPECT_THAT(thrown, HasSubstr("signals can only be handled on the main thread"));
}

}  // namespace
}  // namespace weft
