// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The race itself, in virtual time: an attempt is a sleep. That real connections
// race is in connect_test.

#include "weft/net/happy_eyeballs.h"

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kDelay = absl::Milliseconds(250);

std::string Interleaved(const std::vector<std::string>& hosts, int first_count) {
  Addresses addresses;
  for (const std::string& host : hosts) {
    addresses.push_back(SocketAddress::FromHost(host, 1).value());
  }
  std::string text;
  for (const SocketAddress& address : InterleaveFamilies(addresses, first_count)) {
    absl::StrAppend(&text, address.host(), " ");
  }
  return text;
}

TEST(InterleaveFamiliesTest, TakesTurns) {
  EXPECT_EQ(Interleaved({"::1", "::2", "::3", "1.1.1.1", "2.2.2.2"}, 1),
            "::1 1.1.1.1 ::2 2.2.2.2 ::3 ");
  EXPECT_EQ(Interleaved({"::1", "::2", "::3", "1.1.1.1", "2.2.2.2"}, 2),
            "::1 ::2 1.1.1.1 ::3 2.2.2.2 ");
  EXPECT_EQ(Interleaved({"1.1.1.1", "2.2.2.2", "3.3.3.3", "::1"}, 1),
            "1.1.1.1 ::1 2.2.2.2 3.3.3.3 ");
  EXPECT_EQ(Interleaved({"::1", "::2", "1.1.1.1"}, 0), "::1 ::2 1.1.1.1 ");
  EXPECT_EQ(Interleaved({"::1", "::2"}, 1), "::1 ::2 ");
  EXPECT_EQ(Interleaved({}, 1), "");
}

// What an attempt does.
struct Plan {
  Plan(absl::Duration duration, std::string failure = "")
      : takes(duration), fails(std::move(failure)) {}
  absl::Duration takes;
  std::string fails;  // Empty: it succeeds.
};

class HappyEyeballsTest : public NetTest {
 protected:
  // Runs a race, and returns how it ended: by which attempt, or why.
  Coro<std::string> Run(std::vector<Plan> plans, absl::Duration delay = kDelay) {
    begun.clear();
    errors.clear();
    open_ = 0;
    start_ = GetRunningLoop().Time();
    const auto attempt = [this, &plans](size_t i) { return Attempt(i, plans[i]); };
    ConnectAttempt attempts = attempt;
    absl::StatusOr<Socket> socket =
        co_await RaceToConnect(plans.size(), delay, std::move(attempts), &errors);
    took = GetRunningLoop().Time() - start_;
    EXPECT_EQ(open_, 0) << "attempts have not ended";
    if (!socket.ok()) co_return std::string(socket.status().message());
    co_return absl::StrCat("won by ", winner_of_[socket->handle()]);
  }

  std::vector<absl::Duration> begun;  // When each attempt began.
  std::vector<absl::Status> errors;
  absl::Duration took;

 private:
  Coro<absl::StatusOr<Socket>> Attempt(size_t index, Plan plan) {
    begun.push_back(GetRunningLoop().Time() - start_);
    struct Counted {
      explicit Counted(int* number) : count(number) { ++*count; }
      ~Counted() { --*count; }
      int* count;
    } counted(&open_);
    Socket socket = Socket::Open(SocketDomain::kInet).value();
    if (plan.takes > absl::ZeroDuration()) co_await Sleep(plan.takes);
    if (plan.fails == "throw") throw ValueError("thrown");
    if (!plan.fails.empty()) co_return absl::UnavailableError(plan.fails);
    winner_of_[socket.handle()] = index;
    co_return socket;
  }

  int open_ = 0;
  TimePoint start_;
  std::map<NativeHandle, size_t> winner_of_;
};

constexpr absl::Duration Ms(int64_t count) { return absl::Milliseconds(count); }

// CONN 229.
WEFT_TEST_F(HappyEyeballsTest, TheFirstThatAnswersWins) {
  std::vector<Plan> plans = {Plan(Ms(10)), Plan(Ms(10))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 0");
  EXPECT_THAT(begun, ElementsAre(Ms(0)));  // The second had no reason to begin.
  EXPECT_EQ(took, Ms(10));
}

WEFT_TEST_F(HappyEyeballsTest, TheNextBeginsAfterTheDelay) {
  std::vector<Plan> plans = {Plan(absl::Hours(1)), Plan(Ms(400)), Plan(Ms(100))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 2");
  EXPECT_THAT(begun, ElementsAre(Ms(0), Ms(250), Ms(500)));
  EXPECT_EQ(took, Ms(600));
}

WEFT_TEST_F(HappyEyeballsTest, AnEarlierOneMayStillWin) {
  std::vector<Plan> plans = {Plan(Ms(300)), Plan(absl::Hours(1))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 0");
  EXPECT_EQ(took, Ms(300));
}

WEFT_TEST_F(HappyEyeballsTest, TheNextBeginsWhenTheLastHasFailed) {
  std::vector<Plan> plans = {Plan(Ms(30), "a"), Plan(Ms(0), "b"), Plan(Ms(5))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 2");
  EXPECT_THAT(begun, ElementsAre(Ms(0), Ms(30), Ms(30)));
  EXPECT_EQ(errors[0].message(), "a");
  EXPECT_EQ(errors[1].message(), "b");
  EXPECT_TRUE(errors[2].ok());
}

// The delay counts from the attempt that it belongs to: one that fails just before
// it has passed brings one new attempt forward, not two.
WEFT_TEST_F(HappyEyeballsTest, AFailureJustBeforeTheDelayStartsOneAttempt) {
  std::vector<Plan> plans = {Plan(Ms(249), "a"), Plan(absl::Hours(1)), Plan(Ms(1))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 2");
  EXPECT_THAT(begun, ElementsAre(Ms(0), Ms(249), Ms(499)));
}

WEFT_TEST_F(HappyEyeballsTest, AFailureOfAnEarlierOneChangesNothing) {
  std::vector<Plan> plans = {Plan(Ms(300), "a"), Plan(absl::Hours(1)), Plan(Ms(1))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 2");
  EXPECT_THAT(begun, ElementsAre(Ms(0), Ms(250), Ms(500)));
}

WEFT_TEST_F(HappyEyeballsTest, IfAllFailTheFirstFailureIsTheResult) {
  std::vector<Plan> plans = {Plan(Ms(600), "a"), Plan(Ms(10), "b"), Plan(Ms(10), "c")};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "a");
  EXPECT_THAT(begun, ElementsAre(Ms(0), Ms(250), Ms(260)));
  EXPECT_EQ(errors[1].message(), "b");
  EXPECT_EQ(errors[2].message(), "c");
}

WEFT_TEST_F(HappyEyeballsTest, WithoutADelayOneAfterTheOther) {
  std::vector<Plan> plans = {Plan(absl::Hours(1), "a"), Plan(Ms(10))};
  std::string end = co_await Run(plans, absl::InfiniteDuration());
  EXPECT_EQ(end, "won by 1");
  EXPECT_EQ(took, absl::Hours(1) + Ms(10));
}

// Both are done in the same round: one socket is returned, the other closed.
WEFT_TEST_F(HappyEyeballsTest, OfTwoWinnersOneIsClosed) {
  std::vector<Plan> plans = {Plan(Ms(260)), Plan(Ms(10))};
  const int before = CountDescriptors();
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 0");
  EXPECT_EQ(CountDescriptors(), before);
}

WEFT_TEST_F(HappyEyeballsTest, WhatAnAttemptThrowsIsAFailure) {
  std::vector<Plan> plans = {Plan(Ms(1), "throw"), Plan(Ms(1))};
  std::string end = co_await Run(plans);
  EXPECT_EQ(end, "won by 1");

  plans[1] = Plan(Ms(1), "b");
  Coro<std::string> run = Run(plans);
  WEFT_EXPECT_THROW(static_cast<void>(co_await std::move(run)), ValueError);
}

// Wherever it is cancelled, and whatever has happened by then: all attempts have
// ended, and nothing is left open.
WEFT_TEST_F(HappyEyeballsTest, CancellingItEndsAllAttempts) {
  std::mt19937 random(7);
  const int before = CountDescriptors();
  int cancelled = 0, won = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Plan> plans;
    for (uint32_t count = 2 + random() % 3; count > 0; --count) {
      plans.emplace_back(Ms(random() % 8), random() % 2 == 0 ? "x" : "");
    }
    Task<std::string> race = CreateTask(Run(plans, Ms(random() % 4)));
    const int64_t after = random() % 12;
    if (after > 0) co_await Sleep(Ms(after));
    co_await Rounds(static_cast<int>(random() % 6));
    race.Cancel();
    if (random() % 2 == 0) co_await Yield();
    race.Cancel();
    co_await NoThrow(race);
    ++(race.Cancelled() ? cancelled : won);
    WEFT_ASSERT_EQ(CountDescriptors(), before);
  }
  EXPECT_GT(cancelled, 100);
  EXPECT_GT(won, 100);
}

// The tasks of the attempts may be cancelled by somebody else, as Run() does at its
// end.
WEFT_TEST_F(HappyEyeballsTest, AttemptsThatAreCancelledHaveFailed) {
  std::vector<Plan> plans = {Plan(absl::Hours(1)), Plan(absl::Hours(1))};
  Task<std::string> race = CreateTask(Run(plans));
  co_await Sleep(Ms(300));
  for (TaskRef& task : AllTasks()) {
    if (!(task == CurrentTask()) && !(task == TaskRef(race))) task.Cancel();
  }
  std::string end = co_await std::move(race);
  EXPECT_EQ(end, "the attempts to connect were cancelled");
}

}  // namespace
}  // namespace weft::internal
