// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// AddSignalHandler() with real signals of this process.

#include "weft/loop/signal_watcher.h"

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SignalTest : public ::testing::Test {
 protected:
  SignalTest() : loop_(*EventLoop::Create()) {
    // A wake from another test's signal would be one round more.
    loop_->RunOnce(absl::ZeroDuration());
  }
  ~SignalTest() override { loop_->Close(); }

  auto Log(std::string what) {
    return [this, what = std::move(what)] { log_.push_back(what); };
  }
  // Some rounds, each of which polls.
  void RunRounds(int rounds) {
    for (int i = 0; i < rounds; ++i) loop_->RunOnce(absl::ZeroDuration());
  }
  static struct sigaction ActionOf(int signal) {
    struct sigaction action;
    ::sigaction(signal, nullptr, &action);
    return action;
  }

  std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> log_;
};

TEST_F(SignalTest, ASignalRunsItsHandlerAsACallback) {  // SIG 273, A-93
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("usr1")).ok());
  ::raise(SIGUSR1);
  EXPECT_THAT(log_, IsEmpty());
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("usr1"));
}

TEST_F(SignalTest, ASignalWakesALoopThatSleeps) {  // SIG 273
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, [this] { loop_->Stop(); }).ok());
  std::thread killer([] { ::kill(::getpid(), SIGUSR1); });
  loop_->RunForever();
  killer.join();
}

TEST_F(SignalTest, TheSecondHandlerReplacesTheFirst) {  // SIG 274
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("1")).ok());
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("2")).ok());
  ::raise(SIGUSR1);
  RunRounds(2);
  EXPECT_THAT(log_, ElementsAre("2"));
}

TEST_F(SignalTest, RemoveRestoresTheDefault) {  // SIG 275, A-93
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("1")).ok());
  EXPECT_TRUE(loop_->RemoveSignalHandler(SIGUSR1));
  EXPECT_FALSE(loop_->RemoveSignalHandler(SIGUSR1));
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_DFL);
}

TEST_F(SignalTest, CloseRestoresTheDefaultAndDropsWhatIsPending) {  // SIG 278
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("1")).ok());
  ::raise(SIGUSR1);
  loop_->Close();
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_DFL);
  EXPECT_THAT(log_, IsEmpty());
}

void OnUsr1OfTheProgram(int) {}

// What happened before: asyncio would set SIG_DFL.
TEST_F(SignalTest, RemoveRestoresWhatWasThereBefore) {
  ::signal(SIGUSR1, &OnUsr1OfTheProgram);
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("1")).ok());
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("2")).ok());
  EXPECT_TRUE(loop_->RemoveSignalHandler(SIGUSR1));
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, &OnUsr1OfTheProgram);

  ::signal(SIGUSR1, SIG_IGN);
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("3")).ok());
  loop_->Close();
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_IGN);
  ::signal(SIGUSR1, SIG_DFL);
}

TEST_F(SignalTest, WhatSomebodyElseHasSetSinceIsLeftAlone) {
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("1")).ok());
  ::signal(SIGUSR1, &OnUsr1OfTheProgram);
  EXPECT_TRUE(loop_->RemoveSignalHandler(SIGUSR1));
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, &OnUsr1OfTheProgram);
  ::signal(SIGUSR1, SIG_DFL);
}

TEST_F(SignalTest, SignalsThatCannotBeHandledAreRefused) {  // SIG 276, 277, A-93
  for (const int signal : {SIGKILL, SIGSTOP}) {
    try {
      (void)loop_->AddSignalHandler(signal, [] {});
      FAIL() << "it can be caught";
    } catch (const RuntimeError& error) {
      EXPECT_EQ(error.what(), absl::StrCat("sig ", signal, " cannot be caught"));
    }
  }
  EXPECT_THROW((void)loop_->AddSignalHandler(0, [] {}), ValueError);
  EXPECT_THROW((void)loop_->AddSignalHandler(999, [] {}), ValueError);
  void (*const none)() = nullptr;
  EXPECT_THROW((void)loop_->AddSignalHandler(SIGUSR1, none), ValueError);
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_DFL);
  EXPECT_FALSE(loop_->RemoveSignalHandler(SIGKILL));
  std::thread other(
      [this] { EXPECT_THROW((void)loop_->AddSignalHandler(SIGUSR1, [] {}), RuntimeError); });
  other.join();
}

TEST_F(SignalTest, TwoSignalsAtOnceBothRunInTheirOrder) {  // SIG 279
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("usr1")).ok());
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR2, Log("usr2")).ok());
  ::raise(SIGUSR2);
  ::raise(SIGUSR1);
  ::raise(SIGUSR2);
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("usr2", "usr1", "usr2"));
}

TEST_F(SignalTest, SignalsToManyThreadsAreCountedInFull) {
  int count = 0;
  constexpr int kThreads = 4, kEach = 500;
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, [&count] { ++count; }).ok());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < kEach; ++j) ::raise(SIGUSR1);
    });
  }
  while (count < kThreads * kEach) loop_->RunOnce(absl::Seconds(10));
  for (std::thread& thread : threads) thread.join();
  RunRounds(2);
  EXPECT_EQ(count, kThreads * kEach);
}

TEST_F(SignalTest, ARemovedHandlerIsNotCalledForTheRestOfABurst) {
  ASSERT_TRUE(loop_
                  ->AddSignalHandler(SIGUSR1,
                                     [this] {
                                       log_.push_back("once");
                                       loop_->RemoveSignalHandler(SIGUSR1);
                                     })
                  .ok());
  ::raise(SIGUSR1);
  ::raise(SIGUSR1);
  RunRounds(2);
  EXPECT_THAT(log_, ElementsAre("once"));
}

TEST_F(SignalTest, AnExceptionInAHandlerIsReportedAndItStays) {
  loop_->SetExceptionHandler([this](EventLoop&, const ExceptionContext& context) {
    log_.push_back(DescribeException(context.exception));
  });
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, [] { throw ValueError("no"); }).ok());
  ::raise(SIGUSR1);
  RunRounds(1);
  ::raise(SIGUSR1);
  RunRounds(1);
  EXPECT_THAT(log_, SizeIs(2));
  EXPECT_THAT(log_.front(), HasSubstr("no"));
}

TEST_F(SignalTest, ASignalBelongsToTheLoopThatHandledItLast) {
  std::unique_ptr<EventLoop> other = *EventLoop::Create();
  ASSERT_TRUE(loop_->AddSignalHandler(SIGUSR1, Log("first")).ok());
  ASSERT_TRUE(other->AddSignalHandler(SIGUSR1, Log("other")).ok());
  ::raise(SIGUSR1);
  RunRounds(1);
  other->RunOnce(absl::ZeroDuration());
  EXPECT_THAT(log_, ElementsAre("other"));

  EXPECT_TRUE(loop_->RemoveSignalHandler(SIGUSR1));  // No business of the other's.
  ::raise(SIGUSR1);
  other->RunOnce(absl::ZeroDuration());
  EXPECT_THAT(log_, ElementsAre("other", "other"));
  other->Close();
  EXPECT_EQ(ActionOf(SIGUSR1).sa_handler, SIG_DFL);
}

// A test may say itself which signals come.
class FakeSignals final : public Signals {
 public:
  absl::Status Watch(int, internal::SignalMailbox* mailbox) override {
    mailbox_ = mailbox;
    return absl::OkStatus();
  }
  void Unwatch(int, internal::SignalMailbox*) override { mailbox_ = nullptr; }
  bool MayWatchInterrupt() override { return false; }
  void Raise(int signal) { mailbox_->Deliver(signal); }

 private:
  internal::SignalMailbox* mailbox_ = nullptr;
};

TEST_F(SignalTest, TheEnvironmentMayReplaceThem) {
  FakeSignals signals;
  LoopOptions options;
  options.environment.signals = &signals;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create(options);
  ASSERT_TRUE(loop->AddSignalHandler(SIGTERM, Log("term")).ok());
  EXPECT_EQ(ActionOf(SIGTERM).sa_handler, SIG_DFL);
  signals.Raise(SIGTERM);
  loop->RunOnce(absl::ZeroDuration());
  EXPECT_THAT(log_, ElementsAre("term"));
  loop->Close();
}

}  // namespace
}  // namespace weft
