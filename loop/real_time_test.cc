// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What only the real clock can show: that a loop is never early, sleeps when it has
// nothing to do, and looks at its timers when it has.

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/poller/poller_registry.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(EventLoopRealTimeTest, TimeNeverGoesBackAndDeadlinesAreReadOnIt) {  // LOOP 13, A-17, A-18
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  TimePoint last = loop->Time();
  for (int i = 0; i < 10'000; ++i) {
    const TimePoint now = loop->Time();
    ASSERT_GE(now, last);
    last = now;
  }

  const TimePoint when = last + absl::Milliseconds(2);
  TimePoint ran;
  const TimerHandle handle = loop->CallAt(when, [&] {
    ran = loop->Time();
    loop->Stop();
  });
  loop->RunForever();

  EXPECT_EQ(handle.When(), when);
  EXPECT_GE(ran, when);
  EXPECT_LT(ran, when + absl::Seconds(10));
  loop->Close();
}

TEST(EventLoopRealTimeTest, NeverEarlyAndSoon) {  // TIM 21, 30
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  absl::Duration shortest = absl::InfiniteDuration();
  for (int i = 0; i < 20; ++i) {
    const TimePoint start = loop->Time();
    loop->CallLater(absl::Microseconds(300), [&] { loop->Stop(); });
    loop->RunForever();
    const absl::Duration taken = loop->Time() - start;
    EXPECT_GE(taken, absl::Microseconds(300));
    shortest = std::min(shortest, taken);
  }
  EXPECT_LT(shortest, absl::Milliseconds(10));  // The others may have met a busy machine.
  loop->Close();
}

// The processor time of this thread.
absl::Duration ThreadTime() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

TEST(EventLoopRealTimeTest, AnIdleLoopSleepsInTheKernel) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  int rounds = 0;
  loop->CallLater(absl::Milliseconds(100), [&] { loop->Stop(); });
  const TimePoint start = loop->Time();
  const absl::Duration used = ThreadTime();

  while (loop->Time() - start < absl::Milliseconds(100)) {
    loop->RunOnce(absl::Seconds(10));
    ++rounds;
  }

  EXPECT_LT(ThreadTime() - used, absl::Milliseconds(50));
  EXPECT_LE(rounds, 10);  // A timer that is far off is looked at once for each level of the wheel.
  loop->Close();
}

TEST(EventLoopRealTimeTest, ACallbackThatQueuesItselfForEverStarvesNoTimer) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::function<void()> again = [&] { loop->CallSoon(again); };
  again();
  loop->CallLater(absl::Milliseconds(2), [&] { loop->Stop(); });

  loop->RunForever();

  loop->Close();
}

TEST(EventLoopRealTimeTest, ABlockingCallbackMakesTheNextRoundLookAtTheTimers) {
  // Also a loop that is busy with callbacks and skips polls sees that a timer is due.
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  std::vector<std::string> log;
  int rounds = 0;
  std::function<void()> spin = [&] {
    if (++rounds == 3) {
      const TimePoint until = loop->Time() + absl::Milliseconds(3);
      while (loop->Time() < until) {
      }
      log.push_back("blocked");
      loop->CallSoon([&] { log.push_back("the round after"); });
    }
    if (rounds < 10) loop->CallSoon(spin);
    if (rounds == 10) loop->Stop();
  };
  loop->CallLater(absl::Milliseconds(2), [&] { log.push_back("timer"); });
  loop->CallSoon(spin);

  loop->RunForever();

  EXPECT_THAT(log, ElementsAre("blocked", "the round after", "timer"));
  loop->Close();
}

// However many short rounds have passed without a poll, and without anybody reading the
// loop's clock: the timer comes behind what was posted, and before what that posts.
TEST(EventLoopRealTimeTest, WhoBlocksPastATimerDoesNotChangeTheOrder) {
  for (int short_rounds = 0; short_rounds < 70; ++short_rounds) {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    std::vector<std::string> log;
    int left = short_rounds;
    std::function<void()> run = [&] {
      if (left-- > 0) {
        loop->CallSoon(run);
        return;
      }
      loop->CallLater(absl::Microseconds(500), [&] { log.push_back("timer"); });
      loop->CallSoon([&] {
        log.push_back("posted");
        loop->CallSoon([&] {
          log.push_back("posted by that");
          loop->Stop();
        });
      });
      const TimePoint until = SteadyClock::Read() + absl::Milliseconds(1);
      while (SteadyClock::Read() < until) {
      }
    };
    loop->CallSoon(run);

    loop->RunForever();

    EXPECT_THAT(log, ElementsAre("posted", "timer", "posted by that")) << short_rounds;
    loop->Close();
  }
}

// A server whose descriptors are all in use goes on, on every backend: with the timers,
// posts and readers that it begins only then, and also if it has never slept before.
TEST(EventLoopRealTimeTest, GoesOnWithoutADescriptorLeft) {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer needs descriptors of its own";
#endif
  for (const PollerInfo& poller : AvailablePollers()) {
    if (!poller.status.ok()) continue;
    for (const bool was_at_work : {false, true}) {
      SCOPED_TRACE(poller.name);
      LoopOptions options;
      options.poller = poller.name;
      std::unique_ptr<EventLoop> loop = *EventLoop::Create(options);
      std::vector<std::string> log;
      int fds[2];
      ASSERT_EQ(::pipe(fds), 0);
      const auto reader = [&] {
        log.push_back("reader");
        loop->RemoveReader(fds[0]);
        loop->Stop();
      };
      if (was_at_work) {
        ASSERT_TRUE(loop->AddReader(fds[0], reader).ok());
        loop->RunOnce(absl::ZeroDuration());
      }
      rlimit old_limit;
      ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old_limit), 0);
      rlimit limit = old_limit;
      limit.rlim_cur = 256;
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
      std::vector<int> taken;
      for (int fd; (fd = ::dup(0)) >= 0;) taken.push_back(fd);

      const TimePoint when = loop->Time() + absl::Milliseconds(3);
      loop->CallAt(when, [&] {
        EXPECT_GE(loop->Time(), when);
        log.push_back("timer");
        loop->Stop();
      });
      EXPECT_NO_THROW(loop->RunForever());
      std::thread other([&, ref = loop->Ref()] {
        ref.Post([&] {
          log.push_back("post");
          loop->Stop();
        });
      });
      EXPECT_NO_THROW(loop->RunForever());
      other.join();
      ASSERT_EQ(::write(fds[1], "x", 1), 1);
      if (was_at_work) {
        EXPECT_NO_THROW(loop->RunForever());
      }
      for (int fd : taken) ::close(fd);
      ::setrlimit(RLIMIT_NOFILE, &old_limit);
      if (!was_at_work) {
        ASSERT_TRUE(loop->AddReader(fds[0], reader).ok());
        EXPECT_NO_THROW(loop->RunForever());
      }

      EXPECT_THAT(log, ElementsAre("timer", "post", "reader"));
      loop->Close();
      for (int fd : fds) ::close(fd);
    }
  }
}

Coro<int> SleepAndGive(int value) {
  co_await Sleep(absl::Milliseconds(value));
  co_return value;
}

TEST(ManyLoopsTest, OneRunsInEachThreadAndOneAfterTheOther) {
  std::array<int, 4> results = {};
  std::array<EventLoop*, 4> loops = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::unique_ptr<EventLoop> first = *EventLoop::Create();
      std::unique_ptr<EventLoop> second = *EventLoop::Create();
      first->CallSoon([&loops, i] { loops[i] = &GetRunningLoop(); });
      results[i] = first->RunUntilComplete(SleepAndGive(i));
      EXPECT_EQ(loops[i], first.get());
      results[i] += second->RunUntilComplete(SleepAndGive(10));
      results[i] += first->RunUntilComplete(SleepAndGive(1));
      first->Close();
      second->Close();
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(results, ElementsAre(11, 12, 13, 14));
}

}  // namespace
}  // namespace weft
