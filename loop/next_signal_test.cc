// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/next_signal.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

bool IsDefault(int signal) {
  struct sigaction action;
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_DFL;
}

Coro<> Rounds(int count) {
  for (int i = 0; i < count; ++i) co_await Yield();
}

WEFT_TEST_IN_REAL_TIME(NextSignalTest, YieldsWhicheverComes) {
  Task<int> next = CreateTask(NextSignal({SIGUSR1, SIGUSR2}));
  co_await Rounds(2);
  EXPECT_FALSE(IsDefault(SIGUSR1));
  ::raise(SIGUSR2);
  WEFT_EXPECT_EQ(co_await next, SIGUSR2);
  EXPECT_TRUE(IsDefault(SIGUSR1));
  EXPECT_TRUE(IsDefault(SIGUSR2));
}

WEFT_TEST_IN_REAL_TIME(NextSignalTest, WakesALoopThatSleeps) {
  std::thread sender;
  const auto send = [&sender] { sender = std::thread([] { ::kill(::getpid(), SIGUSR1); }); };
  GetRunningLoop().CallSoon(send);
  const int signal = co_await NextSignal({SIGUSR1});  // NOLINT(weft-trap): no aggregate
  EXPECT_EQ(signal, SIGUSR1);
  sender.join();
}

WEFT_TEST_IN_REAL_TIME(NextSignalTest, CancellingItRestoresWhatWasThere) {
  Task<int> next = CreateTask(NextSignal({SIGUSR1}));
  co_await Rounds(2);
  next.Cancel();
  auto ended = co_await NoThrow(Task<int>(next));
  EXPECT_TRUE(ended.cancelled());
  EXPECT_TRUE(IsDefault(SIGUSR1));
}

WEFT_TEST_IN_REAL_TIME(NextSignalTest, AReceiverKeepsWhatComesWhileNobodyWaits) {
  SignalReceiver receiver(SIGUSR1, SIGUSR2);
  EXPECT_EQ(receiver.TryNext(), 0);
  for (const int signal : {SIGUSR2, SIGUSR1, SIGUSR2}) ::raise(signal);
  co_await Rounds(2);
  WEFT_EXPECT_EQ(co_await receiver.Next(), SIGUSR2);
  WEFT_EXPECT_EQ(co_await receiver.Next(), SIGUSR1);
  EXPECT_EQ(receiver.TryNext(), SIGUSR2);
  EXPECT_EQ(receiver.TryNext(), 0);
}

WEFT_TEST_IN_REAL_TIME(NextSignalTest, EveryReceiverAndTheHandlerHearOfIt) {
  int handled = 0;
  EXPECT_TRUE(GetRunningLoop().AddSignalHandler(SIGUSR1, [&handled] { ++handled; }).ok());
  SignalReceiver a(SIGUSR1);
  SignalReceiver b(SIGUSR1);
  ::raise(SIGUSR1);
  WEFT_EXPECT_EQ(co_await a.Next(), SIGUSR1);
  WEFT_EXPECT_EQ(co_await b.Next(), SIGUSR1);
  EXPECT_EQ(handled, 1);
  EXPECT_TRUE(GetRunningLoop().RemoveSignalHandler(SIGUSR1));
  EXPECT_FALSE(IsDefault(SIGUSR1));  // The receivers are still there.
}

Coro<int> NextOf(SignalReceiver* receiver) { co_return co_await receiver->Next(); }

WEFT_TEST_IN_REAL_TIME(NextSignalTest, OfSeveralTasksOneGetsASignal) {
  SignalReceiver receiver(SIGUSR1, SIGUSR2);
  Task<int> first = CreateTask(NextOf(&receiver));
  Task<int> second = CreateTask(NextOf(&receiver));
  co_await Rounds(2);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  WEFT_EXPECT_EQ(co_await first, SIGUSR1);
  WEFT_EXPECT_EQ(co_await second, SIGUSR2);
}

// Hears of a signal in the same round as the receiver before it.
struct CancelOnSignal : internal::SignalListener {
  void OnSignal(int) override { task.Cancel(); }
  Task<int> task;
};

WEFT_TEST_IN_REAL_TIME(NextSignalTest, WhatACancelledTaskWasWokenForIsAnothers) {
  SignalReceiver receiver(SIGUSR1);
  CancelOnSignal cancel;
  EXPECT_TRUE(GetRunningLoop().signal_watcher().AddListener(SIGUSR1, &cancel).ok());
  cancel.task = CreateTask(NextOf(&receiver));
  co_await Rounds(2);
  ::raise(SIGUSR1);
  auto ended = co_await NoThrow(Task<int>(cancel.task));
  EXPECT_TRUE(ended.cancelled());
  EXPECT_EQ(receiver.TryNext(), SIGUSR1);
  GetRunningLoop().signal_watcher().RemoveListener(SIGUSR1, &cancel);
}

WEFT_TEST(NextSignalTest, WhatCannotBeReceivedIsRefused) {
  WEFT_EXPECT_THROW(co_await NextSignal(SignalSet()), ValueError);
  WEFT_EXPECT_THROW(co_await NextSignal(SignalSet(SIGKILL)), RuntimeError);
  WEFT_EXPECT_THROW(co_await NextSignal(SignalSet(SIGINT, SIGKILL)), RuntimeError);
  EXPECT_TRUE(IsDefault(SIGUSR1));
  EXPECT_THROW(SignalSet(0), ValueError);
  EXPECT_THROW(SignalSet(65), ValueError);
}

TEST(NextSignalOnThreadTest, OnlyOnTheMainThread) {  // SIG 277
  std::thread other([] { EXPECT_THROW(weft::Run(NextSignal({SIGUSR1})), RuntimeError); });
  other.join();
}

Coro<> ReceivesTheFirst(std::vector<std::string>* log) {
  Task<int> next = CreateTask(NextSignal({SIGINT}));
  co_await Rounds(2);
  ::raise(SIGINT);
  int signal = co_await next;
  log->push_back(signal == SIGINT ? "received" : "another");
  ::raise(SIGINT);
  auto slept = co_await NoThrow(Sleep(absl::Hours(1)));
  log->push_back(slept.cancelled() ? "cancelled" : "not cancelled");
  slept.value();
}

TEST(NextSignalUnderRunTest, RunsOwnHandlingOfSigintRestsMeanwhile) {
  std::vector<std::string> log;
  EXPECT_THROW(weft::Run(ReceivesTheFirst(&log)), KeyboardInterrupt);
  EXPECT_THAT(log, ElementsAre("received", "cancelled"));
  EXPECT_TRUE(IsDefault(SIGINT));
}

TEST(NextSignalUnderRunTest, AReceiverMayOutliveItsLoop) {
  std::unique_ptr<SignalReceiver> left;
  const auto leave = [&]() -> Coro<> {
    left = std::make_unique<SignalReceiver>(SignalSet(SIGUSR1));
    co_return;
  };
  weft::Run(leave());
  EXPECT_TRUE(IsDefault(SIGUSR1));
}

}  // namespace
}  // namespace weft
