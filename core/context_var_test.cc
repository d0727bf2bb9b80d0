// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/context_var.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

class ContextVarTest : public ::testing::Test {
 protected:
  ContextVar<int> number_{"number", 0};
  std::vector<int> seen_;
  VirtualScheduler loop_;
};

// CTX 316
TEST_F(ContextVarTest, ATaskBeginsWithWhatItsCreatorSeesThen) {
  const auto child = [&]() -> Coro<> {
    seen_.push_back(number_.Get());
    number_.Set(7);
    co_await Yield();
    seen_.push_back(number_.Get());
  };
  const auto main = [&]() -> Coro<> {
    number_.Set(1);
    Task<> task = CreateTask(child());
    number_.Set(5);
    co_await task;
    seen_.push_back(number_.Get());
  };

  loop_.Run(main());
  EXPECT_THAT(seen_, ElementsAre(1, 7, 5));
}

TEST_F(ContextVarTest, SoDoCallbacks) {
  const auto main = [&]() -> Coro<> {
    Future<> future = MakeFuture<void>(loop_);
    number_.Set(1);
    loop_.CallSoon([&] { seen_.push_back(number_.Get()); });
    future.AddDoneCallback([&](Future<>) { seen_.push_back(number_.Get()); });
    number_.Set(2);
    future.SetResult();
    co_await Yield();
    seen_.push_back(number_.Get());
  };

  loop_.Run(main());
  EXPECT_THAT(seen_, ElementsAre(1, 1, 2));
}

TEST_F(ContextVarTest, WhatACallbackSetsIsSeenByWhatItCreatesAndByNobodyElse) {
  loop_.CallSoon([&] {
    number_.Set(3);
    seen_.push_back(number_.Get());
    loop_.CallSoon([&] { seen_.push_back(number_.Get()); });
  });
  loop_.CallSoon([&] { seen_.push_back(number_.Get()); });
  loop_.RunUntilIdle();

  EXPECT_THAT(seen_, ElementsAre(3, 0, 3));
}

TEST_F(ContextVarTest, ResetBringsBackWhatWasThereBefore) {
  ContextVar<std::string> text("text");
  const auto main = [&]() -> Coro<> {
    EXPECT_THROW(text.Get(), LookupError);
    EXPECT_EQ(text.Get("fallback"), "fallback");
    auto first = text.Set("a");
    auto second = text.Set("b");
    text.Reset(second);
    EXPECT_EQ(text.Get(), "a");
    EXPECT_THROW(text.Reset(second), RuntimeError);
    text.Reset(first);
    EXPECT_THROW(text.Get(), LookupError);
    auto other = number_.Set(1);
    ContextVar<int> unrelated("unrelated");
    EXPECT_THROW(unrelated.Reset(other), ValueError);
    co_return;
  };

  loop_.Run(main());
}

TEST(ContextVarOutsideTest, WhatIsSetOutsideOfALoopIsTheThreads) {
  ContextVar<int> number("number", 0);
  auto token = number.Set(4);
  {
    VirtualScheduler loop;
    EXPECT_EQ(number.Get(), 0);
  }
  EXPECT_EQ(number.Get(), 4);
  number.Reset(token);
  EXPECT_EQ(number.Get(), 0);
}

}  // namespace
}  // namespace weft
