// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The wheel against a model that is too simple to be wrong: a sorted set. A
// million random operations in shards of a fixed seed each, on deadlines and
// steps of all scales, at and beside the boundaries of slots, crowded and
// sparse.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"
#include "weft/timer/timer_wheel.h"

namespace weft {
namespace {

constexpr int kOperations = 25'000;
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TimePoint At(int64_t nanoseconds) { return TimePoint::FromNanoseconds(nanoseconds); }

int64_t SaturatingAdd(int64_t a, int64_t b) {
  if (b > 0 && a > kMax - b) return kMax;
  if (b < 0 && a < kMin - b) return kMin;
  return a + b;
}

// What a shard does: where its time begins, how many timers it has, how far
// away (as a power of two of nanoseconds) deadlines and steps are at most.
struct Shard {
  int64_t start;
  size_t timers;
  int deadline_bits;
  int step_bits;
};

class Timeline {
 public:
  Timeline(const Shard& shard, uint64_t seed)
      : shard_(shard), random_(seed), now_(shard.start), wheel_(At(shard.start)) {
    for (size_t i = 0; i < shard.timers; ++i) timers_.emplace_back([](Runnable*) {});
    armed_.resize(shard.timers);
  }

  ~Timeline() {
    for (Timer& timer : timers_) wheel_.Disarm(&timer);
  }

  void Step() {
    switch (Below(8)) {
      case 0: {
        Advance(NextTime());
        break;
      }
      case 1: {
        RunSome();
        break;
      }
      case 2: {
        // Sometimes many, so that crowded slots shrink.
        for (uint64_t left = Below(64) == 0 ? timers_.size() : 1; left > 0; --left) {
          Disarm(Below(timers_.size()));
        }
        break;
      }
      default: {
        const size_t i = Below(timers_.size());
        Disarm(i);
        Arm(i);
      }
    }
    Check();
  }

  // Where time has come so far that nothing can happen any more.
  bool AtTheEnd() const { return now_ >= kMax - 1; }

 private:
  using Key = std::tuple<int64_t, uint64_t, size_t>;  // Deadline, order of arming, timer.

  uint64_t Below(uint64_t limit) { return random_() % limit; }

  // A number of a random scale: below two to the power of `bits`.
  int64_t Scaled(int bits) {
    const uint64_t scale = Below(static_cast<uint64_t>(bits) + 1);
    return static_cast<int64_t>(Below(uint64_t{1} << scale));
  }

  // The next moment after `from` at which a slot of some level begins, or one
  // beside it.
  int64_t Boundary(int64_t from, int bits) {
    const int64_t width = int64_t{1} << std::min<int>(22 + 6 * static_cast<int>(Below(7)), bits);
    const int64_t next = SaturatingAdd(from, width) & ~(width - 1);
    return SaturatingAdd(next, static_cast<int64_t>(Below(3)) - 1);
  }

  int64_t NextDeadline() {
    switch (Below(16)) {
      case 0:
        return SaturatingAdd(now_, -Scaled(shard_.deadline_bits));
      case 1:
        return Below(8) == 0 ? kMax : now_;
      case 2:
      case 3:
      case 4:
        return Boundary(now_, shard_.deadline_bits);
      case 5:
      case 6:
      case 7: {
        // The same as some other's, which may have come from higher up.
        const Timer& other = timers_[Below(timers_.size())];
        return other.deadline().nanoseconds();
      }
      default:
        return SaturatingAdd(now_, Scaled(shard_.deadline_bits));
    }
  }

  int64_t NextTime() {
    switch (Below(8)) {
      case 0:
        return SaturatingAdd(now_, -Scaled(shard_.step_bits));
      case 1:
      case 2:
        return Boundary(now_, shard_.step_bits);
      case 3:
        // What a loop does; but not so far that the shard is over at once.
        return std::min(wheel_.NextWake().nanoseconds(),
                        SaturatingAdd(now_, int64_t{1} << shard_.step_bits));
      case 4: {
        if (model_.empty()) return now_;
        const int64_t next = std::min(std::get<0>(*model_.begin()),
                                      SaturatingAdd(now_, int64_t{1} << shard_.step_bits));
        return SaturatingAdd(next, static_cast<int64_t>(Below(3)) - 1);
      }
      default:
        return SaturatingAdd(now_, Scaled(shard_.step_bits));
    }
  }

  void Arm(size_t i) {
    const int64_t deadline = NextDeadline();
    wheel_.Arm(&timers_[i], At(deadline));
    armed_[i] = {deadline, order_++, i};
    model_.insert(armed_[i]);
  }

  void Disarm(size_t i) {
    wheel_.Disarm(&timers_[i]);
    if (model_.erase(armed_[i]) == 0) std::erase(model_due_, i);
    ASSERT_FALSE(timers_[i].is_armed());
    ASSERT_FALSE(timers_[i].is_linked());
  }

  void Advance(int64_t now) {
    // At once, or some now and some when they are to run.
    wheel_.TakeDue(wheel_.due_count(), &due_);
    if (Below(2) == 0) {
      wheel_.Advance(At(now), &due_);
    } else {
      wheel_.Expire(At(now));
      wheel_.TakeDue(Below(3), &due_);
    }
    now_ = std::max(now_, std::min(now, kMax - 1));
    while (!model_.empty() && std::get<0>(*model_.begin()) <= now_) {
      model_due_.push_back(std::get<2>(*model_.begin()));
      model_.erase(model_.begin());
    }
  }

  // Runs some of what is due, as a loop would. The rest stays where `Disarm()`
  // finds it.
  void RunSome() {
    for (uint64_t left = Below(timers_.size()); left > 0 && !model_due_.empty(); --left) {
      if (due_.empty()) wheel_.TakeDue(1 + Below(3), &due_);
      ASSERT_EQ(due_.PopFront(), &timers_[model_due_.front()]);
      model_due_.pop_front();
    }
    ASSERT_EQ(due_.empty() && !wheel_.has_due(), model_due_.empty());
  }

  void Check() {
    ASSERT_EQ(wheel_.size(), model_.size());
    ASSERT_EQ(wheel_.empty(), model_.empty());
    const TimePoint first =
        model_.empty() ? TimePoint::InfiniteFuture() : At(std::get<0>(*model_.begin()));
    ASSERT_LE(wheel_.NextWake(), first);
    // Not always: it makes the bound exact that `NextWake()` returns.
    if (Below(8) == 0) {
      ASSERT_EQ(wheel_.NextDeadline(), first);
    }
  }

  const Shard shard_;
  std::mt19937_64 random_;
  int64_t now_;
  uint64_t order_ = 1;  // 0 is that of a timer that never was armed.
  std::deque<Timer> timers_;
  std::vector<Key> armed_;  // By timer: how it was armed last.
  std::set<Key> model_;
  std::deque<size_t> model_due_;
  ReadyQueue due_;
  TimerWheel wheel_;
};

class TimerWheelModelTest : public ::testing::TestWithParam<Shard> {};

TEST_P(TimerWheelModelTest, AgreesOnAMillionRandomOperations) {
  int operations = 0;
  for (uint64_t seed = 1; operations < kOperations; ++seed) {
    Timeline timeline(GetParam(), seed);
    while (operations < kOperations && !timeline.AtTheEnd()) {
      ++operations;
      timeline.Step();
      if (HasFatalFailure()) {
        FAIL() << "with seed " << seed << " after " << operations << " operations";
      }
    }
  }
}

// Forty shards, that is a million operations.
std::vector<Shard> AllShards() {
  std::vector<Shard> shards;
  for (const int64_t start :
       {int64_t{0}, kMin, int64_t{3'600'000'000'123}, kMax - (int64_t{1} << 40)}) {
    shards.push_back({start, 5, 62, 50});     // Sparse, all scales.
    shards.push_back({start, 100, 62, 55});   // All levels occupied.
    shards.push_back({start, 300, 40, 38});   // Minutes.
    shards.push_back({start, 1000, 34, 30});  // Seconds.
    shards.push_back({start, 2000, 28, 26});  // The two lowest levels, crowded.
    shards.push_back({start, 300, 24, 23});   // Some slots of level 0.
    shards.push_back({start, 2000, 24, 12});  // The same crowded, with small steps.
    shards.push_back({start, 300, 20, 12});   // Near timers alone.
    shards.push_back({start, 50, 6, 4});      // Equal deadlines all over.
    shards.push_back({start, 1, 62, 62});     // One timer.
  }
  return shards;
}

INSTANTIATE_TEST_SUITE_P(Shards, TimerWheelModelTest, ::testing::ValuesIn(AllShards()));

}  // namespace
}  // namespace weft
