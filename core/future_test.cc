// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/future.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/testing/thrown_by.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class FutureTest : public ::testing::Test {
 protected:
  Future<int> Make() { return MakeFuture<int>(loop_); }

  VirtualScheduler loop_;
  std::vector<std::string> log_;
};

// FUT 49, A-29
TEST_F(FutureTest, APendingOneHasNoResult) {
  Future<int> future = Make();

  EXPECT_FALSE(future.Done());
  EXPECT_FALSE(future.Cancelled());
  EXPECT_EQ(ThrownBy([&] { future.Result(); }), "weft::InvalidStateError: Result is not set.");
  EXPECT_EQ(ThrownBy([&] { future.Exception(); }),
            "weft::InvalidStateError: Exception is not set.");
}

// FUT 50, A-29
TEST_F(FutureTest, ASecondOutcomeIsRefused) {
  Future<int> value = Make(), error = Make(), cancelled = Make();
  value.SetResult(1);
  error.SetException(std::runtime_error("first"));
  cancelled.Cancel("first");

  for (Future<int> future : {value, error, cancelled}) {
    EXPECT_EQ(ThrownBy([&] { future.SetResult(2); }), "weft::InvalidStateError: invalid state");
    EXPECT_EQ(ThrownBy([&] { future.SetException(std::runtime_error("second")); }),
              "weft::InvalidStateError: invalid state");
    EXPECT_FALSE(future.Cancel("second"));
  }
  EXPECT_EQ(value.Result(), 1);
  EXPECT_EQ(ThrownBy([&] { error.Result(); }), "std::runtime_error: first");
  EXPECT_EQ(ThrownBy([&] { cancelled.Result(); }), "weft::CancelledError: first");
}

// FUT 51
TEST_F(FutureTest, CancelEndsIt) {
  Future<int> future = Make();

  EXPECT_TRUE(future.Cancel());

  EXPECT_TRUE(future.Cancelled());
  EXPECT_TRUE(future.Done());
  EXPECT_THROW(future.Result(), CancelledError);
  EXPECT_THROW(future.Exception(), CancelledError);
  EXPECT_FALSE(future.Cancel());
}

// FUT 52, A-29
TEST_F(FutureTest, CancelOfADoneOneChangesNothing) {
  Future<int> future = Make();
  future.SetResult(1);

  EXPECT_FALSE(future.Cancel());
  EXPECT_EQ(future.Result(), 1);
}

// FUT 53, A-30
TEST_F(FutureTest, CallbacksRunInTheNextRoundInTheirOrder) {
  Future<int> future = Make();
  for (const char* name : {"1", "2", "3"}) {
    future.AddDoneCallback([this, name, future](Future<int> done) {
      EXPECT_EQ(done, future);
      log_.push_back(name);
    });
  }
  future.SetResult(1);
  log_.push_back("set");
  loop_.RunRound();

  EXPECT_THAT(log_, ElementsAre("set", "1", "2", "3"));
}

// FUT 54
TEST_F(FutureTest, ACallbackOnADoneOneRunsInTheNextRound) {
  Future<int> future = Make();
  future.SetResult(1);
  future.AddDoneCallback([&](Future<int>) { log_.push_back("called"); });
  EXPECT_THAT(log_, IsEmpty());

  loop_.RunRound();

  EXPECT_THAT(log_, ElementsAre("called"));
}

// FUT 55
TEST_F(FutureTest, ACallbackCanBeTakenBack) {
  Future<int> future = Make();
  const auto add = [&] {
    return future.AddDoneCallback([&](Future<int>) { log_.push_back("called"); });
  };
  CallbackId first = add();
  CallbackId second = add();

  EXPECT_TRUE(future.RemoveDoneCallback(first));
  EXPECT_FALSE(future.RemoveDoneCallback(first));
  future.SetResult(1);
  EXPECT_FALSE(future.RemoveDoneCallback(second));
  loop_.RunUntilIdle();
  EXPECT_THAT(log_, ElementsAre("called"));
}

// FUT 56
TEST_F(FutureTest, ACallbackThatThrowsDoesNotStopTheNext) {
  Future<int> future = Make();
  future.AddDoneCallback([](Future<int>) { throw std::runtime_error("failed"); });
  future.AddDoneCallback([&](Future<int>) { log_.push_back("called"); });
  future.SetResult(1);
  loop_.RunUntilIdle();

  EXPECT_THAT(log_, ElementsAre("called"));
  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre(StartsWith("Exception in callback")));
}

// FUT 57
TEST_F(FutureTest, AllWhoAwaitItGetTheValueInTheirOrder) {
  Future<int> future = Make();
  const auto awaits = [&](std::string name) -> Coro<> {
    const int value = co_await future;
    log_.push_back(name + std::to_string(value));
  };
  for (const char* name : {"a", "b", "c", "d"}) CreateTask(awaits(name));
  loop_.RunRound();
  future.SetResult(7);
  log_.push_back("set");
  loop_.RunRound();

  EXPECT_THAT(log_, ElementsAre("set", "a7", "b7", "c7", "d7"));
}

// FUT 58, A-31
TEST_F(FutureTest, AwaitingADoneOneGoesOn) {
  Future<int> future = Make();
  future.SetResult(1);
  const auto main = [&]() -> Coro<> {
    loop_.CallSoon([&] { log_.push_back("callback"); });
    co_await future;
    log_.push_back("after");
  };

  loop_.Run(main());
  EXPECT_THAT(log_, ElementsAre("after", "callback"));
}

// FUT 59, A-34
TEST_F(FutureTest, AnErrorThatNobodyReadIsReportedWhenTheLastReferenceGoes) {
  {
    Future<int> future = Make();
    future.SetException(std::runtime_error("unheard"));
    loop_.RunUntilIdle();
    EXPECT_THAT(loop_.errors(), IsEmpty());
  }
  loop_.RunUntilIdle();

  ASSERT_EQ(loop_.errors().size(), 1u);
  EXPECT_EQ(loop_.errors()[0].message, "Future exception was never retrieved");
  EXPECT_NE(loop_.errors()[0].exception, nullptr);
  EXPECT_TRUE(loop_.errors()[0].future);
}

TEST_F(FutureTest, AnErrorThatWasReadIsNotReported) {
  {
    Future<int> read = Make();
    read.SetException(std::runtime_error("heard"));
    EXPECT_NE(read.Exception(), nullptr);
    Future<int> awaited = Make();
    awaited.SetException(7);
    const auto main = [&]() -> Coro<> { co_await NoThrow(awaited); };
    loop_.Run(main());
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.errors(), IsEmpty());
}

// FUT 60
TEST_F(FutureTest, ManyMayReadTheValue) {
  Future<std::string> future = MakeFuture<std::string>(loop_);
  future.SetResult(std::string(100, 'x'));
  const auto main = [&]() -> Coro<size_t> {
    const std::string& kept = co_await future;
    std::string copied = co_await Future<std::string>(future);
    co_return kept.size() + copied.size() + future.Result().size();
  };

  EXPECT_EQ(loop_.Run(main()), 300u);
}

// FUT 61, A-29
TEST_F(FutureTest, TheMessageOfACancellationIsKept) {
  Future<int> future = Make();
  const auto awaits = [&]() -> Coro<> { co_await future; };
  Task<> waits = CreateTask(awaits());
  loop_.RunRound();
  future.Cancel("why");
  Task<> comes = CreateTask(awaits());
  loop_.RunUntilIdle();

  EXPECT_EQ(ThrownBy([&] { future.Result(); }), "weft::CancelledError: why");
  EXPECT_EQ(ThrownBy([&] { future.Exception(); }), "weft::CancelledError: why");
  EXPECT_EQ(ThrownBy([&] { waits.Result(); }), "weft::CancelledError: why");
  EXPECT_EQ(ThrownBy([&] { comes.Result(); }), "weft::CancelledError: why");
}

// FUT 62
TEST_F(FutureTest, OneThatOnlyItsAwaiterHoldsCanBeCancelledThroughIt) {
  const auto awaits = [&]() -> Coro<> { co_await Make(); };
  Task<> task = CreateTask(awaits());
  loop_.RunUntilIdle();
  EXPECT_FALSE(task.Done());

  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_TRUE(task.Cancelled());
}

// FUT 63
TEST_F(FutureTest, ItsTextNamesItsState) {
  Future<int> pending = Make(), value = Make(), error = Make(), cancelled = Make();
  value.SetResult(3);
  error.SetException(std::runtime_error("bad"));
  cancelled.Cancel();

  EXPECT_EQ(pending.ToString(), "<Future pending>");
  EXPECT_EQ(value.ToString(), "<Future finished result=3>");
  EXPECT_THAT(error.ToString(), HasSubstr("finished exception=std::runtime_error: bad"));
  EXPECT_EQ(cancelled.ToString(), "<Future cancelled>");
  EXPECT_NE(error.Exception(), nullptr);
}

TEST_F(FutureTest, ACallbackWhoseFutureNobodyCanCompleteGoesWithIt) {
  auto held = std::make_shared<int>(0);
  Make().AddDoneCallback([held](Future<int>) {});

  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(FutureTest, AMoveOnlyResultIsTakenOnce) {
  Future<std::unique_ptr<int>> future = MakeFuture<std::unique_ptr<int>>(loop_);
  future.SetResult(std::make_unique<int>(4));
  const auto main = [&]() -> Coro<int> {
    std::unique_ptr<int> taken = co_await Future<std::unique_ptr<int>>(future);
    co_return *taken;
  };

  EXPECT_EQ(loop_.Run(main()), 4);
  EXPECT_EQ(ThrownBy([&] { future.Result(); }), "weft::InvalidStateError: Result was moved out");
}

TEST_F(FutureTest, AnErrorOfAnyTypeComesOutAsItWas) {
  Future<int> future = Make();
  future.SetException(std::make_exception_ptr(std::string("text")));
  const auto main = [&]() -> Coro<std::string> {
    try {
      co_await future;
    } catch (const std::string& text) {
      co_return text;
    }
    co_return "";
  };

  EXPECT_EQ(loop_.Run(main()), "text");
  EXPECT_THROW(Make().SetException(std::exception_ptr()), ValueError);
}

//
TEST_F(FutureTest, ACoroutineIsNoCallback) {
  const auto coroutine = [](Future<int>) -> Coro<> { co_return; };
  const auto function = [](Future<int>) {};
  const auto is_callback = []<class F>(const F& callable) {
    return requires(Future<int> future) { future.AddDoneCallback(callable); };
  };

  EXPECT_TRUE(is_callback(function));
  EXPECT_FALSE(is_callback(coroutine));
}

// An error of that type is a cancellation, as it is where it is thrown.
TEST_F(FutureTest, ACancelledErrorThatWasSetIsACancellation) {
  for (const bool as_pointer : {false, true}) {
    Future<int> future = Make();
    if (as_pointer) {
      future.SetException(std::make_exception_ptr(CancelledError("set")));
    } else {
      future.SetException(CancelledError("set"));
    }
    const auto main = [&]() -> Coro<bool> {
      Outcome<int> outcome = co_await NoThrow(future);
      co_return outcome.cancelled();
    };

    EXPECT_TRUE(loop_.Run(main()));
    EXPECT_FALSE(future.Cancelled());  // As in CPython.
    EXPECT_EQ(ThrownBy([&] { future.Result(); }), "weft::CancelledError: set");
  }
}

// The error was delivered, though something else was thrown.
TEST_F(FutureTest, AnErrorThatACancellationReplacesCountsAsRetrieved) {
  {
    Future<int> future = Make();
    const auto awaits = [&]() -> Coro<> { co_await future; };
    Task<> task = CreateTask(awaits());
    loop_.RunRound();
    future.SetException(std::runtime_error("replaced"));
    task.Cancel("instead");
    loop_.RunUntilIdle();
    EXPECT_EQ(ThrownBy([&] { task.Result(); }), "weft::CancelledError: instead");
  }
  loop_.RunUntilIdle();

  EXPECT_THAT(loop_.errors(), IsEmpty());
}

TEST_F(FutureTest, AReportThatIsStillQueuedIsMadeWhenTheLoopCloses) {
  Make().SetException(std::runtime_error("unheard"));
  EXPECT_THAT(loop_.errors(), IsEmpty());

  loop_.Close();

  EXPECT_THAT(loop_.TakeErrorMessages(), ElementsAre("Future exception was never retrieved"));
}

// Each is held by nothing but the callback of the one before it.
TEST_F(FutureTest, ALongChainGoesWithoutRecursion) {
  Future<int> first = Make();
  Future<int> last = first;
  for (int i = 0; i < 200'000; ++i) {
    Future<int> next = Make();
    last.AddDoneCallback(
        [next](const Future<int>& done) mutable { next.SetResult(done.Result()); });
    last = next;
  }
  auto held = std::make_shared<int>(0);
  last.AddDoneCallback([held](const Future<int>&) {});
  last = Future<int>();
  EXPECT_EQ(held.use_count(), 2);

  first = Future<int>();

  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(FutureTest, AwaitingAnEmptyOneIsAnError) {
  const auto main = []() -> Coro<std::string> {
    Task<int> task = CreateTask([]() -> Coro<int> { co_return 1; });
    co_await std::move(task);
    try {
      co_await task;  // NOLINT(bugprone-use-after-move): what it is about.
    } catch (const InvalidStateError& error) {
      co_return error.what();
    }
    co_return "";
  };
  EXPECT_THAT(loop_.Run(main()), HasSubstr("This future is empty"));
}

TEST_F(FutureTest, CompletingOneOfAClosedLoopQueuesNothingAndThrowsNothing) {
  auto held = std::make_shared<int>(0);
  Future<int> first = Make(), second = Make();
  first.AddDoneCallback([held](Future<int>) {});
  loop_.Close();

  first.SetResult(1);
  EXPECT_TRUE(second.Cancel());
  EXPECT_TRUE(loop_.ready().empty());
  EXPECT_THROW(second.AddDoneCallback([](Future<int>) {}), RuntimeError);
  first = Future<int>();
  EXPECT_EQ(held.use_count(), 1);
}

// As vector registers' types are.
struct alignas(64) Wide {
  bool IsAligned() const { return reinterpret_cast<uintptr_t>(this) % 64 == 0; }
  char bytes[64] = {};
};

TEST_F(FutureTest, AResultMayBeStrictlyAligned) {
  std::vector<Future<Wide>> futures;
  for (int i = 0; i < 100; ++i) {
    if (i % 2 == 0) {
      futures.push_back(MakeFuture<Wide>(loop_));
      futures.back().SetResult(Wide());
    } else {
      futures.push_back(CreateTask([]() -> Coro<Wide> { co_return Wide(); }));
    }
  }
  loop_.RunUntilIdle();

  for (const Future<Wide>& future : futures) EXPECT_TRUE(future.Result().IsAligned());
}

}  // namespace
}  // namespace weft
