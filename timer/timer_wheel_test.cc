// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/timer/timer_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TimePoint kForever = TimePoint::InfiniteFuture();

// More than one extra wake for each level would break the promise.
constexpr int kLevels = 7;

TimePoint At(int64_t nanoseconds) { return TimePoint::FromNanoseconds(nanoseconds); }
TimePoint At(absl::Duration since_start) { return TimePoint() + since_start; }

std::vector<Timer*> TakeAll(ReadyQueue* queue) {
  std::vector<Timer*> timers;
  while (Runnable* next = queue->PopFront()) timers.push_back(static_cast<Timer*>(next));
  return timers;
}

bool ComesBefore(const Timer* a, const Timer* b) { return a->deadline() < b->deadline(); }

// A wheel at time zero, timers, and what fires.
class TimerWheelTest : public ::testing::Test {
 protected:
  TimerWheelTest() = default;
  ~TimerWheelTest() override {
    for (Timer& timer : timers_) wheel_.Disarm(&timer);
  }

  Timer* Make() {
    return &timers_.emplace_back([](Runnable*) {});
  }

  Timer* Armed(TimePoint deadline) {
    Timer* timer = Make();
    wheel_.Arm(timer, deadline);
    return timer;
  }

  // Moves time to `moment` and returns the timers that fire, in order.
  std::vector<Timer*> FiredBy(TimePoint moment) {
    ReadyQueue due;
    wheel_.Advance(moment, &due);
    return TakeAll(&due);
  }

  // How often a loop wakes until a timer fires.
  int WakesUntilNextFires() {
    int wakes = 1;
    while (FiredBy(wheel_.NextWake()).empty()) ++wakes;
    return wakes;
  }

  std::deque<Timer> timers_;
  TimerWheel wheel_{TimePoint()};
};

TEST_F(TimerWheelTest, NeverFiresEarly) {
  Timer* timer = Armed(At(absl::Microseconds(5001)));

  EXPECT_THAT(FiredBy(At(absl::Microseconds(5001) - absl::Nanoseconds(1))), IsEmpty());
  EXPECT_TRUE(timer->is_armed());
  EXPECT_THAT(FiredBy(At(absl::Microseconds(5001))), ElementsAre(timer));
  EXPECT_FALSE(timer->is_armed());
}

TEST_F(TimerWheelTest, FiresAtOnceWhenDueNow) {
  Timer* timer = Armed(TimePoint());

  EXPECT_EQ(wheel_.NextWake(), TimePoint());
  EXPECT_THAT(FiredBy(TimePoint()), ElementsAre(timer));
}

TEST_F(TimerWheelTest, FiresInDeadlineOrderWithinOneSlot) {
  Timer* third = Armed(At(absl::Microseconds(300)));
  Timer* first = Armed(At(absl::Microseconds(100)));
  Timer* second = Armed(At(absl::Microseconds(200)));

  EXPECT_THAT(FiredBy(At(absl::Milliseconds(1))), ElementsAre(first, second, third));
}

TEST_F(TimerWheelTest, FiresInDeadlineOrderAcrossLevels) {
  Timer* year = Armed(At(absl::Hours(24 * 365)));
  Timer* minute = Armed(At(absl::Minutes(1)));
  Timer* second = Armed(At(absl::Seconds(1)));
  Timer* day = Armed(At(absl::Hours(24)));
  Timer* now = Armed(At(absl::Microseconds(1)));

  EXPECT_THAT(FiredBy(At(absl::Hours(24 * 366))), ElementsAre(now, second, minute, day, year));
}

TEST_F(TimerWheelTest, PastDeadlinesAreDueNextInTheirOrder) {
  FiredBy(At(absl::Hours(1)));
  Timer* recent = Armed(At(absl::Minutes(59)));
  Timer* ancient = Armed(TimePoint::InfinitePast());
  Timer* old = Armed(At(absl::Seconds(-1)));

  EXPECT_THAT(FiredBy(At(absl::Hours(1))), ElementsAre(ancient, old, recent));
}

TEST_F(TimerWheelTest, EqualDeadlinesFireInTheOrderOfArmingWhateverTheirWay) {
  const TimePoint deadline = At(absl::Hours(2) + absl::Milliseconds(3));
  Timer* from_above = Armed(deadline);
  FiredBy(deadline - absl::Minutes(1));
  Timer* from_the_middle = Armed(deadline);
  FiredBy(deadline - absl::Milliseconds(20));
  Timer* from_below = Armed(deadline);
  FiredBy(deadline - absl::Nanoseconds(1));
  Timer* later_but_near = Armed(deadline + absl::Nanoseconds(1));
  Timer* near = Armed(deadline);

  EXPECT_THAT(FiredBy(deadline + absl::Seconds(1)),
              ElementsAre(from_above, from_the_middle, from_below, near, later_but_near));
}

TEST_F(TimerWheelTest, RearmedTimerCountsAsArmedAnew) {
  for (const absl::Duration delay : {absl::Microseconds(10), absl::Seconds(10)}) {
    const TimePoint deadline = At(delay);
    Timer* first = Armed(deadline);
    Timer* second = Armed(deadline);

    wheel_.Disarm(first);
    wheel_.Arm(first, deadline);

    EXPECT_THAT(FiredBy(deadline), ElementsAre(second, first));
  }
}

TEST_F(TimerWheelTest, ArmedBehindTheCurrentTimeOfTheCallerIsStillExact) {
  FiredBy(At(absl::Seconds(1)));
  // The wheel believes it is 1 s; the caller knows that it is 7 s.
  Timer* timer = Armed(At(absl::Seconds(7) + absl::Milliseconds(1)));
  Timer* at_once = Armed(At(absl::Seconds(7)));

  EXPECT_THAT(FiredBy(At(absl::Seconds(7))), ElementsAre(at_once));
  EXPECT_THAT(FiredBy(At(absl::Seconds(7) + absl::Milliseconds(1))), ElementsAre(timer));
}

TEST_F(TimerWheelTest, TimeThatGoesBackStandsStill) {
  FiredBy(At(absl::Seconds(10)));
  Timer* past = Armed(At(absl::Seconds(9)));
  Timer* future = Armed(At(absl::Seconds(11)));

  EXPECT_THAT(FiredBy(At(absl::Seconds(1))), ElementsAre(past));
  EXPECT_THAT(FiredBy(At(absl::Seconds(11))), ElementsAre(future));
}

TEST_F(TimerWheelTest, DisarmedTimerDoesNotFire) {
  Timer* near = Armed(At(absl::Microseconds(1)));
  Timer* far = Armed(At(absl::Seconds(1)));
  Timer* other = Armed(At(absl::Seconds(1)));

  wheel_.Disarm(near);
  wheel_.Disarm(far);
  wheel_.Disarm(far);

  EXPECT_FALSE(far->is_armed());
  EXPECT_EQ(wheel_.size(), 1u);
  EXPECT_THAT(FiredBy(At(absl::Seconds(2))), ElementsAre(other));
}

TEST_F(TimerWheelTest, DisarmTakesADueTimerOutOfItsQueue) {
  Timer* first = Armed(At(1));
  Timer* second = Armed(At(2));
  ReadyQueue due;
  wheel_.Advance(At(2), &due);

  wheel_.Disarm(first);

  EXPECT_THAT(TakeAll(&due), ElementsAre(second));
}

TEST_F(TimerWheelTest, TimerArmedByItsCallbackWaitsForTheNextAdvance) {
  Timer* timer = Armed(At(1));

  EXPECT_THAT(FiredBy(At(1)), ElementsAre(timer));
  wheel_.Arm(timer, At(0));
  EXPECT_EQ(wheel_.size(), 1u);
  EXPECT_THAT(FiredBy(At(1)), ElementsAre(timer));
}

TEST_F(TimerWheelTest, DueTimersAreTakenSomeAtATime) {
  std::vector<Timer*> timers;
  for (int i = 0; i < 6; ++i) timers.push_back(Armed(At(10 - i)));
  ReadyQueue due;

  wheel_.Expire(At(10));
  EXPECT_EQ(wheel_.size(), 0u);
  EXPECT_EQ(wheel_.due_count(), 6u);
  wheel_.TakeDue(2, &due);
  EXPECT_THAT(TakeAll(&due), ElementsAre(timers[5], timers[4]));
  Timer* late = Armed(At(1));  // Behind those that are due, though it was to be before.
  wheel_.Disarm(timers[3]);
  wheel_.Disarm(timers[0]);
  EXPECT_FALSE(timers[3]->is_armed());
  wheel_.TakeDue(10, &due);

  EXPECT_THAT(TakeAll(&due), ElementsAre(timers[2], timers[1]));
  EXPECT_FALSE(wheel_.has_due());
  EXPECT_EQ(wheel_.size(), 1u);
  EXPECT_THAT(FiredBy(At(10)), ElementsAre(late));
}

TEST_F(TimerWheelTest, WhatIsDueButNotTakenIsDisarmedWithTheRest) {
  Timer* due = Armed(At(1));
  Timer* armed = Armed(At(absl::Hours(1)));
  wheel_.Expire(At(1));
  ReadyQueue disarmed;

  wheel_.DisarmAll(&disarmed);

  EXPECT_THAT(TakeAll(&disarmed), ElementsAre(due, armed));
  EXPECT_FALSE(due->is_armed());
  EXPECT_FALSE(wheel_.has_due());
}

// A slot keeps what leaves as holes, and closes them when they are too many.
TEST_F(TimerWheelTest, HolesAreFilledAndClosed) {
  std::vector<Timer*> timers;
  for (int i = 0; i < 1000; ++i)
    timers.push_back(Armed(At(absl::Seconds(1)) + absl::Nanoseconds(i)));

  for (int i = 0; i < 1000; ++i) {
    if (i % 20 != 7) wheel_.Disarm(timers[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < 1000; i += 100) {
    wheel_.Arm(timers[static_cast<size_t>(i)], timers[static_cast<size_t>(i)]->deadline());
  }

  std::vector<Timer*> expected;
  for (int i = 0; i < 1000; ++i) {
    if (i % 20 == 7 || i % 100 == 0) expected.push_back(timers[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(FiredBy(At(absl::Seconds(2))), expected);
}

TEST_F(TimerWheelTest, InfiniteNeverFires) {
  Timer* never = Armed(kForever);
  Timer* last = Armed(At(kForever.nanoseconds() - 1));

  EXPECT_THAT(FiredBy(At(absl::Hours(24 * 365 * 200))), IsEmpty());
  EXPECT_EQ(wheel_.NextDeadline(), last->deadline());
  EXPECT_THAT(FiredBy(kForever), ElementsAre(last));
  EXPECT_THAT(FiredBy(kForever), IsEmpty());
  EXPECT_EQ(wheel_.NextWake(), kForever);
  EXPECT_EQ(wheel_.NextDeadline(), kForever);
  EXPECT_TRUE(never->is_armed());
  EXPECT_EQ(wheel_.size(), 1u);
}

TEST_F(TimerWheelTest, EmptyWheelNeverWakes) {
  EXPECT_TRUE(wheel_.empty());
  EXPECT_EQ(wheel_.NextWake(), kForever);
  EXPECT_EQ(wheel_.NextDeadline(), kForever);

  wheel_.Disarm(Armed(At(absl::Seconds(1))));

  EXPECT_TRUE(wheel_.empty());
  EXPECT_EQ(wheel_.NextWake(), kForever);
  EXPECT_EQ(wheel_.NextDeadline(), kForever);
}

TEST_F(TimerWheelTest, NextWakeIsExactIfNothingWasDisarmed) {
  for (const absl::Duration delay : {absl::Hours(2000), absl::Hours(1), absl::Seconds(3),
                                     absl::Milliseconds(30), absl::Nanoseconds(1)}) {
    Armed(At(delay));
    EXPECT_EQ(wheel_.NextWake(), At(delay));
  }

  EXPECT_EQ(WakesUntilNextFires(), 1);
}

TEST_F(TimerWheelTest, DisarmingCostsAtMostOneExtraWakePerLevel) {
  std::mt19937_64 random(1);
  std::vector<Timer*> decoys;
  for (int i = 0; i < 2000; ++i) {
    Timer* timer = Armed(At(static_cast<int64_t>(random() >> (1 + random() % 45))));
    if (i % 10 != 0) decoys.push_back(timer);
  }

  for (Timer* decoy : decoys) wheel_.Disarm(decoy);

  int most = 0;
  while (!wheel_.empty()) most = std::max(most, WakesUntilNextFires());
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 1 + kLevels);
}

TEST_F(TimerWheelTest, NextDeadlineIsExactAfterTheFirstIsDisarmed) {
  Timer* first = Armed(At(absl::Hours(5) + absl::Nanoseconds(1)));
  Timer* second = Armed(At(absl::Hours(5) + absl::Nanoseconds(2)));

  wheel_.Disarm(first);

  EXPECT_LE(wheel_.NextWake(), second->deadline());
  EXPECT_EQ(wheel_.NextDeadline(), second->deadline());
  EXPECT_EQ(wheel_.NextWake(), second->deadline());
}

TEST_F(TimerWheelTest, SizeCountsWhatIsArmed) {
  Timer* near = Armed(At(absl::Nanoseconds(1)));
  Armed(At(absl::Seconds(1)));
  Armed(kForever);
  EXPECT_EQ(wheel_.size(), 3u);

  wheel_.Disarm(near);
  EXPECT_EQ(wheel_.size(), 2u);

  FiredBy(At(absl::Seconds(1)));
  EXPECT_EQ(wheel_.size(), 1u);
}

TEST(TimerWheelDestructorTest, DisarmsAllAndLeavesWhatIsQueued) {
  ReadyQueue due;
  Timer queued([](Runnable*) {}), near([](Runnable*) {}), heap([](Runnable*) {});
  std::deque<Timer> far;
  {
    TimerWheel wheel{TimePoint()};
    wheel.Arm(&queued, At(1));
    wheel.Advance(At(1), &due);
    wheel.Arm(&near, At(3));
    wheel.Arm(&heap, At(2));
    for (int i = 0; i < 1000; ++i)
      wheel.Arm(&far.emplace_back([](Runnable*) {}), At(int64_t{i} << 50));
  }

  EXPECT_FALSE(near.is_armed());
  EXPECT_FALSE(heap.is_armed());
  EXPECT_FALSE(std::any_of(far.begin(), far.end(), [](Timer& timer) { return timer.is_armed(); }));
  EXPECT_THAT(TakeAll(&due), ElementsAre(&queued));
}

// Slots of all levels begin and end at powers of two.
TEST(TimerWheelBoundaryTest, IsExactAroundEverySlotBoundary) {
  for (const int64_t start : {int64_t{-1}, int64_t{0}, int64_t{12345}, -(int64_t{1} << 40)}) {
    for (int bit = 10; bit < 62; ++bit) {
      for (const int64_t offset : {-1, 0, 1}) {
        const int64_t deadline = (int64_t{1} << bit) + offset;
        if (deadline <= start) continue;
        TimerWheel wheel(At(start));
        Timer timer([](Runnable*) {}), same([](Runnable*) {});
        ReadyQueue due;
        wheel.Arm(&timer, At(deadline));

        EXPECT_EQ(wheel.NextDeadline(), At(deadline));
        wheel.Advance(At(deadline - 1), &due);
        EXPECT_TRUE(due.empty());
        wheel.Arm(&same, At(deadline));
        wheel.Advance(At(deadline), &due);
        EXPECT_THAT(TakeAll(&due), ElementsAre(&timer, &same));
      }
    }
  }
}

// Many timers in one slot: `count` of them, and time that moves in `step`.
class TimerWheelCrowdTest : public TimerWheelTest,
                            public ::testing::WithParamInterface<std::pair<int64_t, int64_t>> {
 protected:
  // Deadlines lie within `span`, from `begin` on.
  void ExpectInOrder(int64_t begin, uint64_t span) {
    const auto [count, step] = GetParam();
    std::mt19937_64 random(1);
    std::vector<Timer*> expected;
    for (int64_t i = 0; i < count; ++i) {
      expected.push_back(Armed(At(begin + static_cast<int64_t>(random() % span))));
    }
    std::stable_sort(expected.begin(), expected.end(), &ComesBefore);

    std::vector<Timer*> fired;
    for (int64_t now = begin; !wheel_.empty(); now += step) {
      const std::vector<Timer*> some = FiredBy(At(now));
      for (Timer* timer : some) ASSERT_LE(timer->deadline(), At(now));
      fired.insert(fired.end(), some.begin(), some.end());
    }

    EXPECT_TRUE(fired == expected);
  }
};

TEST_P(TimerWheelCrowdTest, FarTimersComeInOrder) { ExpectInOrder(int64_t{1} << 32, 1'000'000); }
TEST_P(TimerWheelCrowdTest, FarTimersWithFewDeadlinesComeInOrder) { ExpectInOrder(1 << 30, 5); }
TEST_P(TimerWheelCrowdTest, NearTimersComeInOrder) { ExpectInOrder(1, 1'000'000); }

INSTANTIATE_TEST_SUITE_P(Sizes, TimerWheelCrowdTest,
                         ::testing::Values(std::pair(10, 100'000), std::pair(63, 1'000),
                                           std::pair(64, 10'000), std::pair(1'000, 10'000),
                                           std::pair(100'000, 1'000),
                                           std::pair(100'000, 10'000'000)));

}  // namespace
}  // namespace weft
