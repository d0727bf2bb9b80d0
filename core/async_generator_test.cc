// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/async_generator.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class AsyncGeneratorTest : public ::testing::Test {
 protected:
  // Says in the log when its locals go.
  struct Guard {
    explicit Guard(std::vector<std::string>* target) : log(target) {}
    ~Guard() { log->push_back("locals gone"); }
    std::vector<std::string>* log;
  };

  AsyncGenerator<int> Count(int limit) {
    Guard guard(&log_);
    for (int i = 0; i < limit; ++i) {
      co_await Sleep(absl::Seconds(1));
      co_yield i;
    }
  }
  // Cleans up, which takes a second.
  AsyncGenerator<int> Cleans(bool fails = false) {
    bool exits = false;
    try {
      for (int i = 0;; ++i) co_yield i;
    } catch (const GeneratorExit&) {
      exits = true;
    }
    co_await Sleep(absl::Seconds(1));
    log_.push_back(exits ? "cleaned" : "?");
    if (fails) throw std::runtime_error("cleanup failed");
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

TEST_F(AsyncGeneratorTest, YieldsItsValuesAndThenNothing) {
  const auto main = [&]() -> Coro<std::vector<int>> {
    std::vector<int> seen;
    auto numbers = Count(3);
    while (std::optional<int> number = co_await numbers.Next()) seen.push_back(*number);
    log_.push_back("end");
    std::optional<int> more = co_await numbers.Next();
    EXPECT_FALSE(more.has_value());
    co_return seen;
  };

  EXPECT_THAT(loop_.Run(main()), ElementsAre(0, 1, 2));
  EXPECT_THAT(log_, ElementsAre("locals gone", "end"));
  EXPECT_EQ(loop_.Now(), TimePoint() + absl::Seconds(3));
}

TEST_F(AsyncGeneratorTest, ValuesAreMovedOrCopied) {
  const auto texts = []() -> AsyncGenerator<std::string> {
    std::string kept(40, 'a');
    co_yield kept;
    co_yield kept + "b";
    co_yield std::move(kept);
  };
  const auto unique = []() -> AsyncGenerator<std::unique_ptr<int>> {
    co_yield std::make_unique<int>(5);
  };
  const auto main = [&]() -> Coro<> {
    auto some = texts();
    std::optional<std::string> first = co_await some.Next();
    std::optional<std::string> second = co_await some.Next();
    std::optional<std::string> third = co_await some.Next();
    EXPECT_EQ(*first, std::string(40, 'a'));
    EXPECT_EQ(*second, std::string(40, 'a') + "b");
    EXPECT_EQ(*third, *first);
    auto others = unique();
    std::optional<std::unique_ptr<int>> pointer = co_await others.Next();
    EXPECT_EQ(**pointer, 5);
  };

  loop_.Run(main());
}

TEST_F(AsyncGeneratorTest, AnErrorIsItsEnd) {
  const auto fails = []() -> AsyncGenerator<int> {
    co_yield 1;
    throw std::runtime_error("failed");
  };
  const auto main = [&]() -> Coro<> {
    auto numbers = fails();
    co_await numbers.Next();
    Outcome<std::optional<int>> outcome = co_await NoThrow(numbers.Next());
    EXPECT_THROW(outcome.value(), std::runtime_error);
    std::optional<int> more = co_await numbers.Next();
    EXPECT_FALSE(more.has_value());
  };

  loop_.Run(main());
}

TEST_F(AsyncGeneratorTest, ACancellationReachesWhatItAwaits) {
  const auto main = [&]() -> Coro<> {
    auto numbers = Count(3);
    co_await numbers.Next();
  };
  Task<> task = CreateTask(main());
  loop_.RunRound();
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
  EXPECT_THAT(log_, ElementsAre("locals gone"));
}

TEST_F(AsyncGeneratorTest, OneThatIsDroppedGoesAtOnce) {
  const auto main = [&]() -> Coro<> {
    {
      auto numbers = Count(3);
      co_await numbers.Next();
      auto never_begun = Count(3);
      auto moved = std::move(numbers);
    }
    log_.push_back("behind");
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("locals gone", "behind"));
}

TEST_F(AsyncGeneratorTest, CloseRunsCleanupThatAwaits) {
  const auto main = [&]() -> Coro<> {
    auto numbers = Cleans();
    co_await numbers.Next();
    co_await numbers.Close();
    log_.push_back("closed");
    std::optional<int> more = co_await numbers.Next();
    EXPECT_FALSE(more.has_value());
    co_await numbers.Close();
    auto never_begun = Cleans();
    co_await never_begun.Close();
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("cleaned", "closed"));
}

TEST_F(AsyncGeneratorTest, CloseThrowsWhatTheCleanupThrows) {
  const auto main = [&]() -> Coro<> {
    auto numbers = Cleans(/*fails=*/true);
    co_await numbers.Next();
    Outcome<void> outcome = co_await NoThrow(numbers.Close());
    EXPECT_THROW(outcome.value(), std::runtime_error);
  };

  loop_.Run(main());
}

TEST_F(AsyncGeneratorTest, OneThatYieldsAgainIsRefused) {
  const auto stubborn = []() -> AsyncGenerator<int> {
    while (true) {
      try {
        co_yield 1;
      } catch (const GeneratorExit&) {
      }
    }
  };
  const auto main = [&]() -> Coro<std::string> {
    auto numbers = stubborn();
    co_await numbers.Next();
    Outcome<void> outcome = co_await NoThrow(numbers.Close());
    try {
      outcome.value();
    } catch (const RuntimeError& error) {
      co_return error.what();
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "async generator ignored GeneratorExit");
}

TEST_F(AsyncGeneratorTest, TwoTasksCannotBeInTheMidstOfIt) {
  auto numbers = Count(3);
  const auto next = [&]() -> Coro<> { co_await numbers.Next(); };
  Task<> first = CreateTask(next());
  Task<> second = CreateTask(next());
  loop_.RunUntilIdle();

  EXPECT_FALSE(first.Cancelled());
  EXPECT_THROW(second.Result(), RuntimeError);
}

//
TEST_F(AsyncGeneratorTest, WhatStillLivesIsClosedAtTheEndOfTheLoop) {
  auto first = Cleans();
  auto second = Cleans(/*fails=*/true);
  auto third = Count(3);
  const auto main = [&]() -> Coro<> {
    co_await first.Next();
    co_await second.Next();
    co_await third.Next();
  };
  loop_.Run(main());
  const TimePoint before = loop_.Now();

  loop_.Run(CloseAsyncGenerators(loop_));

  EXPECT_THAT(log_, ElementsAre("locals gone", "cleaned", "cleaned"));
  EXPECT_EQ(loop_.Now(), before + absl::Seconds(1));
  EXPECT_THAT(loop_.TakeErrorMessages(),
              ElementsAre("an error occurred during closing of asynchronous generator"));
  loop_.Run(CloseAsyncGenerators(loop_));
}

TEST_F(AsyncGeneratorTest, AFrameThatGoesWithItsTaskLeavesAnEmptyGenerator) {
  auto numbers = Count(3);
  const auto main = [&]() -> Coro<> { co_await numbers.Next(); };
  CreateTask(main());
  loop_.RunRound();

  loop_.Close();

  EXPECT_THAT(log_, ElementsAre("locals gone"));
}

TEST_F(AsyncGeneratorTest, AMillionValuesInConstantStack) {
  const auto many = []() -> AsyncGenerator<int> {
    for (int i = 0; i < 1'000'000; ++i) co_yield i;
  };
  const auto main = [&]() -> Coro<int> {
    int count = 0;
    auto numbers = many();
    while (std::optional<int> number = co_await numbers.Next()) ++count;
    co_return count;
  };

  EXPECT_EQ(loop_.Run(main()), 1'000'000);
}

AsyncGenerator<int> Wrap(AsyncGenerator<int> inner) {
  while (std::optional<int> value = co_await inner.Next()) co_yield *value;
}

TEST_F(AsyncGeneratorTest, AChainOfGeneratorsThatIsDroppedNeedsNoStack) {
  AsyncGenerator<int> chain = Count(1);
  for (int i = 0; i < 100'000; ++i) chain = Wrap(std::move(chain));
}

}  // namespace
}  // namespace weft
