// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/watchdog.h"

#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/latch.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/loop_progress.h"
#include "weft/testing/captured_log.h"
#include "weft/testing/matches_regex.h"

namespace weft {
namespace {

using internal::Latch;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A loop that is really blocked: by a latch that the watchdog's report opens.
class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() : loop_(*EventLoop::Create()) {
    options_.limit = absl::Milliseconds(4);
    options_.on_blocked = [this](const BlockedLoop& blocked) {
      std::lock_guard<std::mutex> lock(mutex_);
      // A busy machine keeps a loop blocked for longer than the test does.
      if (reports_.size() == reports_wanted_) return;
      reports_.push_back(blocked);
      if (reports_.size() == reports_wanted_) reported_.count_down();
    };
  }
  ~WatchdogTest() override { loop_->Close(); }

  // To be called in a callback: until there are as many reports as are wanted.
  void Block() { reported_.wait(); }

  std::vector<BlockedLoop> TakeReports() {
    std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(reports_, {});
  }
  void RunUntilStopped() { loop_->RunForever(); }

  std::unique_ptr<EventLoop> loop_;
  WatchdogOptions options_;
  Latch reported_{1};
  size_t reports_wanted_ = 1;
  std::mutex mutex_;
  std::vector<BlockedLoop> reports_;
};

TEST_F(WatchdogTest, NamesTheCallbackThatBlocks) {
  Watchdog watchdog(*loop_, options_);
  const uint32_t here = SourceLocation::current().line();
  loop_->CallSoon([] {});
  loop_->CallSoon([this] { Block(); });
  loop_->CallSoon([this] { loop_->Stop(); });

  RunUntilStopped();

  const std::vector<BlockedLoop> reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].task, "");
  EXPECT_EQ(reports[0].location.line(), here + 2);
  EXPECT_GE(reports[0].blocked_for, options_.limit);
  EXPECT_THAT(reports[0].ToString(),
              MatchesRegex("The loop has been blocked for [0-9.]+ms by a callback created at "
                           "loop/watchdog_test.cc:[0-9]+"));
}

TEST_F(WatchdogTest, NamesTheTaskThatBlocksAndWhereItWentOn) {
  Watchdog watchdog(*loop_, options_);
  uint32_t line = 0;
  const auto work = [&]() -> Coro<> {
    line = SourceLocation::current().line() + 1;
    co_await Sleep(absl::Milliseconds(1));
    Block();
    loop_->Stop();
  };
  const std::string name =
      "a task with a name that is longer than what fits into eight words, by far";
  loop_->CreateTask(work(), name);

  RunUntilStopped();

  const std::vector<BlockedLoop> reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].task, name.substr(0, 64));
  EXPECT_EQ(reports[0].location.line(), line);
  EXPECT_THAT(reports[0].ToString(), HasSubstr("by task 'a task with a name"));
}

TEST_F(WatchdogTest, ATaskWithoutANameHasItsNumber) {
  Watchdog watchdog(*loop_, options_);
  const auto work = [&]() -> Coro<> {
    Block();
    loop_->Stop();
    co_return;
  };
  Task<> task = loop_->CreateTask(work());

  RunUntilStopped();

  const std::vector<BlockedLoop> reports = TakeReports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].task, task.name());
}

TEST_F(WatchdogTest, OneThatStaysBlockedIsReportedAgain) {
  reports_wanted_ = 3;
  Watchdog watchdog(*loop_, options_);
  loop_->CallSoon([this] { Block(); });
  loop_->CallSoon([this] { loop_->Stop(); });

  RunUntilStopped();

  const std::vector<BlockedLoop> reports = TakeReports();
  ASSERT_GE(reports.size(), 3u);  // More, if this thread was slow to go on.
  EXPECT_GE(reports[1].blocked_for, 2 * reports[0].blocked_for);
  EXPECT_GE(reports[2].blocked_for, 2 * reports[1].blocked_for);
  EXPECT_EQ(reports[1].since, reports[0].since);
}

TEST_F(WatchdogTest, ALoopThatTurnsOrSleepsIsNotBlocked) {
  options_.limit = absl::Seconds(100);
  {
    Watchdog watchdog(*loop_, options_);
    loop_->CallLater(absl::Milliseconds(20), [this] { loop_->Stop(); });
    RunUntilStopped();
  }

  EXPECT_TRUE(TakeReports().empty());
}

TEST_F(WatchdogTest, DumpsTheTasksWhenTheLoopGoesOn) {
  std::vector<std::string> dumps;
  options_.dump_when_unblocked = true;
  options_.on_dump = [&](std::string_view dump) {
    dumps.emplace_back(dump);
    loop_->Stop();
  };
  Watchdog watchdog(*loop_, options_);
  loop_->CreateTask(Sleep(absl::Hours(1)), "sleeper").Cancelling();
  loop_->CallSoon([this] { Block(); });

  RunUntilStopped();

  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_THAT(dumps[0], AllOf(StartsWith("1 task\n"), HasSubstr("name='sleeper'"),
                              HasSubstr("waits for <Sleep")));
  for (TaskRef task : loop_->AllTasks()) task.Cancel();
  loop_->RunOnce(absl::ZeroDuration());
}

TEST_F(WatchdogTest, DumpsEverySoOften) {
  int dumps = 0;
  options_.limit = absl::InfiniteDuration();
  options_.dump_interval = absl::Milliseconds(2);
  options_.on_dump = [&](std::string_view dump) {
    EXPECT_EQ(dump, "0 tasks\n");
    if (++dumps == 3) loop_->Stop();
  };
  Watchdog watchdog(*loop_, options_);

  RunUntilStopped();

  EXPECT_EQ(dumps, 3);
}

TEST_F(WatchdogTest, ByDefaultItLogs) {
  CapturedLog log;
  options_.on_blocked = nullptr;
  Watchdog watchdog(*loop_, options_);
  std::vector<std::string> lines;
  loop_->CallSoon([&] {
    while (lines.empty()) lines = log.Take();  // Blocks until there is one.
  });
  loop_->CallSoon([this] { loop_->Stop(); });

  RunUntilStopped();

  EXPECT_THAT(lines[0], StartsWith("The loop has been blocked for "));
}

TEST_F(WatchdogTest, SeveralWatchOneLoopAndTheLoopMayCloseFirst) {
  WatchdogOptions not_told = options_;
  not_told.on_blocked = [](const BlockedLoop&) { ADD_FAILURE() << "it was destroyed before"; };
  auto first = std::make_unique<Watchdog>(*loop_, not_told);
  auto second = std::make_unique<Watchdog>(*loop_, options_);
  first = nullptr;
  const uint32_t here = SourceLocation::current().line();
  loop_->CallSoon([this] { Block(); });
  loop_->CallSoon([&] {
    second = nullptr;  // In the midst of a batch.
    loop_->Stop();
  });
  RunUntilStopped();
  int times = 0;  // The other callback may take its time as well.
  for (const BlockedLoop& report : TakeReports()) times += report.location.line() == here + 1;
  EXPECT_EQ(times, 1);

  auto third = std::make_unique<Watchdog>(*loop_, options_);
  loop_->Close();
  third = nullptr;
}

TEST_F(WatchdogTest, BadOptionsAreNamed) {
  const auto thrown = [&](WatchdogOptions options) -> std::string {
    try {
      Watchdog watchdog(*loop_, std::move(options));
    } catch (const ValueError& error) {
      return error.what();
    }
    return "nothing";
  };
  WatchdogOptions options;
  options.limit = absl::ZeroDuration();
  EXPECT_THAT(thrown(options), StartsWith("limit: "));
  options = WatchdogOptions();
  options.dump_interval = -absl::Seconds(1);
  EXPECT_THAT(thrown(options), StartsWith("dump_interval: "));
  options = WatchdogOptions();
  options.stack_signal = 9;  // SIGKILL, of which not all systems know.
  EXPECT_THAT(thrown(options), StartsWith("stack_signal: "));
}

TEST(LoopProgressTest, IsBusyFromABeginToItsEnd) {
  internal::LoopProgress progress;
  EXPECT_FALSE(progress.Read().is_busy());

  progress.BeginCallback(SourceLocation::current());
  const internal::LoopProgress::Snapshot callback = progress.Read();
  EXPECT_TRUE(callback.is_busy());
  EXPECT_FALSE(callback.is_step);
  progress.End();
  EXPECT_FALSE(progress.Read().is_busy());
  progress.End();
  EXPECT_FALSE(progress.Read().is_busy());

  progress.BeginStep(SourceLocation(), /*number=*/7, "");
  const internal::LoopProgress::Snapshot step = progress.Read();
  EXPECT_TRUE(step.is_busy() && step.is_step);
  EXPECT_EQ(step.task_number, 7u);
  EXPECT_NE(step.sequence, callback.sequence);
  progress.End();
}

}  // namespace
}  // namespace weft
