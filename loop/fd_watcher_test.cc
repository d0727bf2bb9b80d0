// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// AddReader and AddWriter on real descriptors.

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/context_var.h"
#include "weft/core/errors.h"
#include "weft/loop/event_loop.h"
#include "weft/poller/socket_api.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Both ends of a connection, non-blocking.
std::array<int, 2> OpenPair() {
  NativeHandle ends[2];
  EXPECT_EQ(SystemSocketApi()->OpenPair(SocketType::kStream, ends), 0);
  return {static_cast<int>(ends[0]), static_cast<int>(ends[1])};
}

class WatcherTest : public ::testing::Test {
 protected:
  WatcherTest() : loop_(*EventLoop::Create()) {
    EXPECT_EQ(::pipe(pipe_), 0);
    for (int fd : pipe_) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  ~WatcherTest() override {
    loop_->Close();
    for (int fd : {pair_[0], pair_[1], pipe_[0], pipe_[1]}) {
      if (fd >= 0) ::close(fd);
    }
  }

  void Send(const std::string& text) {
    ASSERT_EQ(::write(pair_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string Receive() {
    std::array<char, 100> buffer;
    const ssize_t size = ::read(pair_[0], buffer.data(), buffer.size());
    return size < 0 ? "error" : std::string(buffer.data(), size);
  }
  auto Log(std::string what) {
    return [this, what = std::move(what)] { log_.push_back(what); };
  }
  // Some rounds, each of which polls.
  void RunRounds(int rounds) {
    for (int i = 0; i < rounds; ++i) loop_->RunOnce(absl::ZeroDuration());
  }

  std::unique_ptr<EventLoop> loop_;
  std::array<int, 2> pair_ = OpenPair();
  int pipe_[2];
  std::vector<std::string> log_;
};

TEST_F(WatcherTest, TheSecondReaderReplacesTheFirst) {  // POLL 317, A-09
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("1")).ok());
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("2")).ok());
  Send("x");
  RunRounds(1);

  EXPECT_THAT(log_, ElementsAre("2"));
  EXPECT_TRUE(loop_->RemoveReader(pair_[0]));
  EXPECT_FALSE(loop_->RemoveReader(pair_[0]));
  EXPECT_FALSE(loop_->RemoveWriter(pair_[0]));
}

TEST_F(WatcherTest, ACallbackThatDoesNotReadRunsInEveryRoundAndStarvesNothing) {  // POLL 318, A-08
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("r")).ok());
  Send("x");
  loop_->CallLater(absl::ZeroDuration(), Log("timer"));

  RunRounds(3);

  EXPECT_THAT(log_, ElementsAre("r", "timer", "r", "r"));
}

TEST_F(WatcherTest, TheReaderOfADescriptorRunsBeforeItsWriter) {  // POLL 319
  Send("x");
  ASSERT_TRUE(loop_->AddWriter(pair_[0], Log("w")).ok());
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("r")).ok());

  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("r", "w"));

  loop_->RemoveReader(pair_[0]);
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("r", "w", "w"));
}

TEST_F(WatcherTest, WhatACallbackRemovesDoesNotRunAnyMore) {  // POLL 320
  Send("x");
  ASSERT_TRUE(loop_
                  ->AddReader(pair_[0],
                              [this] {
                                log_.push_back("r");
                                loop_->RemoveWriter(pair_[0]);
                              })
                  .ok());
  ASSERT_TRUE(loop_->AddWriter(pair_[0], Log("w")).ok());

  RunRounds(1);

  EXPECT_THAT(log_, ElementsAre("r"));
}

TEST_F(WatcherTest, ACallbackMayReplaceAndRemoveItself) {
  Send("x");
  ASSERT_TRUE(loop_
                  ->AddReader(pair_[0],
                              [this] {
                                log_.push_back("first");
                                ASSERT_TRUE(loop_
                                                ->AddReader(pair_[0],
                                                            [this] {
                                                              log_.push_back("second");
                                                              loop_->RemoveReader(pair_[0]);
                                                            })
                                                .ok());
                              })
                  .ok());

  RunRounds(4);

  EXPECT_THAT(log_, ElementsAre("first", "second"));
}

TEST_F(WatcherTest, AReusedNumberHasNothingOfTheOldOne) {  // POLL 321
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("old")).ok());
  RunRounds(1);
  loop_->RemoveReader(pair_[0]);
  ASSERT_EQ(::dup2(pipe_[0], pair_[0]), pair_[0]);  // Closes it, and takes its number.
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("new")).ok());
  RunRounds(2);
  EXPECT_THAT(log_, IsEmpty());

  ASSERT_EQ(::write(pipe_[1], "x", 1), 1);
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("new"));
}

TEST_F(WatcherTest, ANumberThatWasReusedWithoutOurKnowledgeWorksToo) {  // POLL 322
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("old")).ok());
  RunRounds(1);
  ASSERT_EQ(::dup2(pipe_[0], pair_[0]), pair_[0]);  // Without RemoveReader().
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("new")).ok());
  RunRounds(1);

  ASSERT_EQ(::write(pipe_[1], "x", 1), 1);
  RunRounds(1);

  EXPECT_THAT(log_, ElementsAre("new"));
}

// Does something when the captures die that hold it.
struct AtDeath {
  explicit AtDeath(std::function<void()> what) : what(std::move(what)) {}
  ~AtDeath() { what(); }
  std::function<void()> what;
};

// The last call counts, also if it comes from the destructor of what the one before
// replaces: as in asyncio, where that is cancelled when the new one is in place.
TEST_F(WatcherTest, TheCapturesOfAReplacedCallbackMayCallTheLoop) {  // POLL 317
  const auto write = [this](auto call) {                             // Of both directions.
    log_.clear();
    call();
    RunRounds(1);
  };
  const auto add = [this](auto callback) {
    ASSERT_TRUE(loop_->AddWriter(pair_[0], std::move(callback)).ok());
  };
  write([&] {
    auto at_death = std::make_unique<AtDeath>([&] { add(Log("from the destructor")); });
    add([at_death = std::move(at_death)] {});
    add(Log("second"));
  });
  EXPECT_THAT(log_, ElementsAre("from the destructor"));

  write([&] {
    auto at_death = std::make_unique<AtDeath>([&] { loop_->RemoveWriter(pair_[0]); });
    add([at_death = std::move(at_death)] {});
    add(Log("second"));
  });
  EXPECT_THAT(log_, IsEmpty());
  EXPECT_FALSE(loop_->RemoveWriter(pair_[0]));

  write([&] {  // Removed, and not replaced.
    auto at_death = std::make_unique<AtDeath>([&] { add(Log("from the destructor")); });
    add([at_death = std::move(at_death)] {});
    EXPECT_TRUE(loop_->RemoveWriter(pair_[0]));
  });
  EXPECT_THAT(log_, ElementsAre("from the destructor"));

  write([&] {  // While it runs.
    auto at_death = std::make_unique<AtDeath>([&] { add(Log("from the destructor")); });
    add([&, at_death = std::move(at_death)] { add(Log("second")); });
    RunRounds(1);
  });
  EXPECT_THAT(log_, ElementsAre("from the destructor"));

  auto at_death = std::make_unique<AtDeath>([&] { add(Log("never")); });
  add([at_death = std::move(at_death)] {});
  log_.clear();
  loop_->Close();
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(WatcherTest, TheCapturesOfAReplacedReaderMayCallTheLoop) {  // POLL 317
  auto at_death = std::make_unique<AtDeath>(
      [&] { ASSERT_TRUE(loop_->AddReader(pair_[0], Log("from the destructor")).ok()); });
  ASSERT_TRUE(loop_->AddReader(pair_[0], [at_death = std::move(at_death)] {}).ok());
  RunRounds(1);  // It waits in the kernel.
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("second")).ok());
  Send("x");
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("from the destructor"));
}

TEST_F(WatcherTest, AnEmptyCallbackIsRefusedAndNothingHasChanged) {
  ASSERT_TRUE(loop_->AddReader(pair_[0], Log("reader")).ok());
  const auto refused = [](auto call) -> std::string {
    try {
      call();
    } catch (const ValueError& error) {
      return error.what();
    }
    return "nothing";
  };
  void (*const none)() = nullptr;
  EXPECT_THAT(refused([&] { (void)loop_->AddReader(pair_[0], none); }), HasSubstr("callback: "));
  EXPECT_THAT(refused([&] { (void)loop_->AddWriter(pair_[0], none); }), HasSubstr("callback: "));
  EXPECT_THAT(refused([this] { (void)loop_->AddWriter(pair_[0], absl::AnyInvocable<void()>()); }),
              HasSubstr("callback: "));
  Send("x");
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("reader"));
  EXPECT_FALSE(loop_->RemoveWriter(pair_[0]));
}

TEST_F(WatcherTest, WhatCannotBeWatchedIsRefused) {  // POLL 323
  const int file = ::open("/proc/self/exe", O_RDONLY);
  EXPECT_EQ(loop_->AddReader(file, [] {}).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THROW((void)loop_->AddReader(-1, [] {}), ValueError);
  ::close(file);
  const absl::Status not_open = loop_->AddReader(file, [] {});
  EXPECT_FALSE(not_open.ok());
  EXPECT_THAT(std::string(not_open.message()), HasSubstr("Bad file descriptor"));
  EXPECT_FALSE(loop_->RemoveReader(file));
}

TEST_F(WatcherTest, AHangUpIsReported) {  // POLL 324, 325
  ASSERT_TRUE(loop_
                  ->AddReader(pipe_[0],
                              [this] {
                                char byte;
                                log_.push_back("read " +
                                               std::to_string(::read(pipe_[0], &byte, 1)));
                                loop_->RemoveReader(pipe_[0]);
                              })
                  .ok());
  ::close(std::exchange(pipe_[1], -1));

  RunRounds(3);

  EXPECT_THAT(log_, ElementsAre("read 0"));
}

TEST_F(WatcherTest, HundredsAtOnce) {  // POLL 326
  constexpr int kPairs = 400;
  std::vector<std::array<int, 2>> pairs(kPairs);
  std::multiset<int> ran;
  for (auto& pair : pairs) {
    pair = OpenPair();
    ASSERT_EQ(::write(pair[1], "x", 1), 1);
    ASSERT_TRUE(loop_
                    ->AddReader(pair[0],
                                [&, fd = pair[0]] {
                                  char byte;
                                  EXPECT_EQ(::read(fd, &byte, 1), 1);
                                  loop_->RemoveReader(fd);
                                  ran.insert(fd);
                                })
                    .ok());
  }

  RunRounds(4);

  EXPECT_EQ(ran.size(), static_cast<size_t>(kPairs));
  EXPECT_EQ(std::set<int>(ran.begin(), ran.end()).size(), static_cast<size_t>(kPairs));
  for (auto& pair : pairs) ::close(pair[0]), ::close(pair[1]);
}

// 0 where the system does not say.
int CountThreads() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/task");
  if (directory == nullptr) return count;
  while (const dirent* entry = ::readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(directory);
  return count;
}

TEST_F(WatcherTest, IdleDescriptorsCostNoThreadAndRunNothing) {  // POLL 327, A-13
  const int threads = CountThreads();
  std::vector<std::array<int, 2>> pairs(200);
  for (auto& pair : pairs) {
    pair = OpenPair();
    ASSERT_TRUE(loop_->AddReader(pair[0], Log("idle")).ok());
  }
  ASSERT_TRUE(loop_->AddReader(pair_[0], [this] { log_.push_back("active " + Receive()); }).ok());
  RunRounds(2);
  EXPECT_FALSE(loop_->RunOnce(absl::ZeroDuration()));  // Nobody looks at them.

  for (int i = 0; i < 3; ++i) {
    Send(std::to_string(i));
    EXPECT_TRUE(loop_->RunOnce(absl::ZeroDuration()));
  }

  EXPECT_THAT(log_, ElementsAre("active 0", "active 1", "active 2"));
  EXPECT_EQ(CountThreads(), threads);
  for (auto& pair : pairs) {
    loop_->RemoveReader(pair[0]);
    ::close(pair[0]), ::close(pair[1]);
  }
}

// The processor time of this thread.
absl::Duration ThreadTime() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

TEST_F(WatcherTest, AnEventCostsNoMoreBecauseOthersAreIdle) {  // POLL 327
  if (loop_->poller_name() == "poll") GTEST_SKIP() << "it does, with poll(2)";
  int events = 0;
  ASSERT_TRUE(loop_
                  ->AddReader(pair_[0],
                              [&] {
                                Receive();
                                ++events;
                              })
                  .ok());
  const auto cost_of_1000_events = [&] {
    absl::Duration least = absl::InfiniteDuration();
    for (int attempt = 0; attempt < 5; ++attempt) {
      const absl::Duration before = ThreadTime();
      for (int i = 0; i < 1000; ++i) {
        Send("x");
        loop_->RunOnce(absl::ZeroDuration());
      }
      least = std::min(least, ThreadTime() - before);
    }
    return least;
  };
  const absl::Duration alone = cost_of_1000_events();
  std::vector<int> idle(500);
  for (int& fd : idle) {
    fd = ::dup(pipe_[0]);
    ASSERT_TRUE(loop_->AddReader(fd, Log("idle")).ok());
  }
  const absl::Duration among_many = cost_of_1000_events();

  EXPECT_LT(among_many, 3 * alone);
  EXPECT_EQ(events, 10'000);
  EXPECT_THAT(log_, IsEmpty());
  for (int fd : idle) {
    loop_->RemoveReader(fd);
    ::close(fd);
  }
}

TEST_F(WatcherTest, ACallbackThatThrowsIsReportedAndStaysOn) {  // POLL 329
  int reports = 0;
  loop_->SetExceptionHandler([&](EventLoop&, const ExceptionContext&) { ++reports; });
  ASSERT_TRUE(loop_->AddReader(pair_[0], [] { throw 1; }).ok());
  Send("x");

  RunRounds(3);

  EXPECT_EQ(reports, 3);
}

TEST_F(WatcherTest, CloseDropsWatchesAndLeavesTheDescriptorsOpen) {  // POLL 330
  auto captured = std::make_shared<int>();
  std::weak_ptr<int> watch = captured;
  ASSERT_TRUE(
      loop_
          ->AddReader(pair_[0], [this, captured = std::move(captured)] { log_.push_back("never"); })
          .ok());
  Send("x");
  loop_->Close();

  EXPECT_THAT(log_, IsEmpty());
  EXPECT_TRUE(watch.expired());
  EXPECT_EQ(Receive(), "x");
}

TEST_F(WatcherTest, QueuedThenDescriptorThenTimer) {  // LOOP 11, A-04
  Send("x");
  ASSERT_TRUE(loop_
                  ->AddReader(pair_[0],
                              [this] {
                                log_.push_back("io");
                                loop_->RemoveReader(pair_[0]);
                              })
                  .ok());
  loop_->CallLater(absl::ZeroDuration(), Log("timer"));
  loop_->CallSoon(Log("soon"));

  RunRounds(1);

  EXPECT_THAT(log_, ElementsAre("soon", "io", "timer"));
}

// hops: I/O to its handle in the same round, behind what was posted and before the
// timers; to the task one more.
TEST_F(WatcherTest, PostThenDescriptorThenTimerAndTheirTasksOneRoundLater) {
  Future<void> by_post = loop_->CreateFuture(), by_io = loop_->CreateFuture(),
               by_timer = loop_->CreateFuture();
  const auto waits = [this](Future<void> future, std::string name) -> Coro<void> {
    co_await future;
    log_.push_back(name + "'s task");
  };
  loop_->CreateTask(waits, by_timer, "timer");
  loop_->CreateTask(waits, by_io, "io");
  loop_->CreateTask(waits, by_post, "post");
  RunRounds(1);
  const auto complete = [this](Future<void> future, std::string name) {
    return [this, future, name]() mutable {
      log_.push_back(name);
      future.SetResult();
    };
  };
  loop_->CallLater(absl::ZeroDuration(), complete(by_timer, "timer"));
  ASSERT_TRUE(loop_
                  ->AddReader(pair_[0],
                              [this, done = complete(by_io, "io")]() mutable {
                                loop_->RemoveReader(pair_[0]);
                                done();
                              })
                  .ok());
  Send("x");
  std::thread poster([&] { loop_->CallSoonThreadsafe(complete(by_post, "post")); });
  poster.join();

  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("post", "io", "timer"));
  RunRounds(1);
  EXPECT_THAT(log_, ElementsAre("post", "io", "timer", "post's task", "io's task", "timer's task"));
}

// Neither does a callback that queues itself for ever keep I/O away.
TEST_F(WatcherTest, ACallbackThatQueuesItselfForEverStarvesNoDescriptor) {
  std::function<void()> again = [&] { loop_->CallSoon(again); };
  again();
  ASSERT_TRUE(loop_->AddReader(pair_[0], [this] { loop_->Stop(); }).ok());
  Send("x");

  loop_->RunForever();
}

int CountDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 1000; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(LoopDescriptorsTest, AThousandLoopsLeakNoDescriptor) {  // POLL 331
  const int before = CountDescriptors();
  for (int i = 0; i < 1000; ++i) {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    loop->CallLater(absl::Microseconds(1), [&] { loop->Stop(); });
    loop->RunForever();
    loop->Close();
  }
  EXPECT_EQ(CountDescriptors(), before);
}

TEST_F(WatcherTest, LivesInsideAForeignLoop) {
  if (loop_->BackendFd() == kInvalidHandle) {
    EXPECT_EQ(loop_->poller_name(), "poll");
    GTEST_SKIP() << "poll(2) has no descriptor that stands for many";
  }
  ASSERT_TRUE(loop_->AddReader(pair_[0], [this] { log_.push_back("io " + Receive()); }).ok());
  loop_->CallLater(absl::Milliseconds(2), Log("timer"));
  RunRounds(1);

  std::thread poster([this] { loop_->CallSoonThreadsafe(Log("post")); });
  const auto wait_and_run = [&] {
    pollfd entry = {static_cast<int>(loop_->BackendFd()), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 10'000), 1);
    loop_->RunOnce(absl::ZeroDuration());
  };
  while (log_.size() < 2) wait_and_run();
  Send("x");
  while (log_.size() < 3) wait_and_run();

  poster.join();
  EXPECT_THAT(log_, ::testing::UnorderedElementsAre("timer", "post", "io x"));
}

// What a callback sets is seen by nobody else, and it sees what whoever added it saw.
TEST_F(WatcherTest, ReadersAndSignalHandlersHaveContextsOfTheirOwn) {
  ContextVar<int> variable("variable", 0);
  std::vector<int> seen;
  loop_->CallSoon([&] {
    variable.Set(1);
    ASSERT_TRUE(loop_
                    ->AddReader(pair_[0],
                                [&] {
                                  seen.push_back(variable.Get());
                                  variable.Set(2);
                                })
                    .ok());
    ASSERT_TRUE(loop_
                    ->AddSignalHandler(SIGUSR1,
                                       [&] {
                                         seen.push_back(variable.Get());
                                         variable.Set(3);
                                       })
                    .ok());
  });
  RunRounds(1);
  Send("x");
  ::raise(SIGUSR1);
  loop_->CallLater(absl::ZeroDuration(), [&] { seen.push_back(variable.Get()); });

  RunRounds(1);

  EXPECT_THAT(seen, ElementsAre(1, 1, 0));
}

}  // namespace
}  // namespace weft
