// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A loop inside of a foreign one, which sleeps in its place at BackendFd().

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/poller/poller_registry.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/queue.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class EmbeddingTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    LoopOptions options;
    options.poller = GetParam();
    absl::StatusOr<std::unique_ptr<EventLoop>> loop = EventLoop::Create(options);
    if (!loop.ok()) GTEST_SKIP() << loop.status();
    loop_ = *std::move(loop);
    ASSERT_NE(loop_->BackendFd(), kInvalidHandle);
  }
  void TearDown() override {
    if (loop_ != nullptr) loop_->Close();
  }

  // What the foreign loop does: sleeps, for so long at most. Whether it was woken.
  bool Sleep(int milliseconds) {
    pollfd entry = {static_cast<int>(loop_->BackendFd()), POLLIN, 0};
    return ::poll(&entry, 1, milliseconds) == 1;
  }
  void RunWhenWoken() {
    ASSERT_TRUE(Sleep(10'000)) << "nobody wakes the foreign loop";
    loop_->RunOnce(absl::ZeroDuration());
  }
  // Until it sleeps.
  void RunUntilQuiet() {
    while (Sleep(0)) loop_->RunOnce(absl::ZeroDuration());
  }

  std::unique_ptr<EventLoop> loop_;
};

// poll(2) has no descriptor that stands for many.
std::vector<std::string> PollersWithDescriptor() {
  std::vector<std::string> names;
  for (const PollerInfo& info : AvailablePollers()) {
    if (info.name != "poll") names.push_back(info.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Pollers, EmbeddingTest, ::testing::ValuesIn(PollersWithDescriptor()));

TEST_P(EmbeddingTest, WhatComesFromOutsideOfARoundWakesTheForeignLoop) {
  bool has_run = false;
  const auto run = [&has_run] { has_run = true; };
  Event event;
  Lock lock;
  Queue<int> queue;
  Future<void> future = loop_->CreateFuture();
  Future<void> failed = loop_->CreateFuture();
  const auto wait = [&](auto awaitable) -> Coro<void> {
    (void)co_await std::move(awaitable);
    run();
  };
  const auto wait_for_future = [&](Future<void> awaited) -> Coro<void> {
    co_await awaited;
    run();
  };
  const auto wait_for_ever = [&]() -> Coro<void> {
    struct AtEnd {
      std::function<void()> run;
      ~AtEnd() { run(); }
    } at_end{run};
    co_await weft::Sleep(absl::Hours(1));
  };
  loop_->SetExceptionHandler([&](EventLoop&, const ExceptionContext&) { run(); });
  Lock::Guard guard = lock.TryAcquire();
  loop_->CreateTask(wait(event.Wait()));
  loop_->CreateTask(wait(lock.Acquire()));
  loop_->CreateTask(wait(queue.Get()));
  loop_->CreateTask(wait_for_future(future));
  Task<void> sleeper = loop_->CreateTask(wait_for_ever);
  LoopRef ref = loop_->Ref();

  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"CallSoon", [&] { loop_->CallSoon(run); }},
      {"CallLater", [&] { loop_->CallLater(absl::Milliseconds(3), run); }},
      {"a sooner CallLater",
       [&] {
         loop_->CallLater(absl::Hours(1), run);
         RunUntilQuiet();
         loop_->CallLater(absl::Milliseconds(3), run);
       }},
      {"CreateTask", [&] { loop_->CreateTask(wait(weft::Sleep(absl::ZeroDuration()))); }},
      {"Event::Set", [&] { event.Set(); }},
      {"Lock::Release", [&] { guard.Detach()->Release(); }},
      {"Queue::PutNowait", [&] { queue.PutNowait(1); }},
      {"Future::SetResult", [&] { future.SetResult(); }},
      {"Task::Cancel", [&] { sleeper.Cancel(); }},
      {"a failed future that nobody asked",
       [&] {
         failed.SetException(std::runtime_error("failed"));
         RunUntilQuiet();
         failed = Future<void>();
       }},
      {"Post here", [&] { ref.Post(run); }},
      {"Post on another thread",
       [&] {
         std::thread poster([&] { ref.Post(run); });
         poster.join();
       }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    RunUntilQuiet();
    ASSERT_FALSE(Sleep(0));
    has_run = false;

    call();

    for (int i = 0; i < 10 && !has_run; ++i) RunWhenWoken();
    EXPECT_TRUE(has_run);
  }
}

// Each is woken, however often it happens.
TEST_P(EmbeddingTest, PostsFromAnotherThreadWakeItEachTime) {
  LoopRef ref = loop_->Ref();
  for (int i = 0; i < 100; ++i) {
    RunUntilQuiet();
    bool has_run = false;
    std::thread poster([&] { ref.Post([&has_run] { has_run = true; }); });
    while (!has_run) RunWhenWoken();
    poster.join();
  }
}

TEST_P(EmbeddingTest, ADescriptorThatStaysReadableWakesItAgain) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  int calls = 0;
  ASSERT_TRUE(loop_->AddReader(pair[0], [&] { ++calls; }).ok());
  RunUntilQuiet();
  ASSERT_EQ(::write(pair[1], "x", 1), 1);

  for (int i = 0; i < 10 && calls < 3; ++i) RunWhenWoken();

  EXPECT_EQ(calls, 3);
  loop_->RemoveReader(pair[0]);
  RunUntilQuiet();
  for (int fd : pair) ::close(fd);
}

TEST_P(EmbeddingTest, TheEndIsARunners) {
  std::vector<std::string> log;
  RunOptions options;
  options.poller = GetParam();
  Runner runner(options);
  EventLoop& loop = runner.GetLoop();
  const auto work = [&log]() -> Coro<void> {
    struct AtEnd {
      std::vector<std::string>* log;
      ~AtEnd() { log->push_back("cleaned up"); }
    } at_end{&log};
    log.push_back("works");
    co_await weft::Sleep(absl::Hours(1));
  };
  loop.CreateTask(work);
  pollfd entry = {static_cast<int>(loop.BackendFd()), POLLIN, 0};
  while (log.empty()) {
    ASSERT_EQ(::poll(&entry, 1, 10'000), 1);
    loop.RunOnce(absl::ZeroDuration());
  }

  runner.Close();

  EXPECT_THAT(log, ElementsAre("works", "cleaned up"));
}

}  // namespace
}  // namespace weft
