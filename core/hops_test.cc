// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// How many rounds lie between a cause and its effect, as CPython 3.13 has them: a
// case for each that has only parts of core/. Those
// of sync/ and loop/ are tested there.

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/as_completed.h"
#include "weft/core/coro.h"
#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/core/wait.h"
#include "weft/core/wait_for.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kNone = absl::ZeroDuration();
constexpr absl::Duration kSecond = absl::Seconds(1);

// When something happened, and how it ended.
struct Moment {
  Moment() {}

  int round = -1000;
  std::string ended;
};

template <class T>
std::string HowItEnded(const Outcome<T>& outcome) {
  if (outcome.has_value()) return "value";
  if (outcome.cancelled()) return "cancelled";
  try {
    std::rethrow_exception(outcome.exception());
  } catch (const TimeoutError&) {
    return "timeout";
  } catch (const ExceptionGroup&) {
    return "group";
  } catch (...) {
    return "error";
  }
}

class HopsTest : public ::testing::Test {
 protected:
  // Awaits, and notes when and how that ended.
  template <class A>
  Coro<> Note(A awaitable, Moment* moment) {
    auto outcome = co_await NoThrow(std::move(awaitable));
    Mark(moment, HowItEnded(outcome));
  }
  // The same as a task that waits by now.
  template <class A>
  Task<> Noting(A awaitable, Moment* moment) {
    Task<> task = CreateTask(Note(std::move(awaitable), moment));
    loop_.RunRound();
    return task;
  }

  void Mark(Moment* moment, std::string ended = "") {
    moment->round = loop_.round();
    moment->ended = std::move(ended);
  }

  // Ends when `future` is done, and notes that; cleans up for no time.
  Coro<int> EndWith(Future<> future, Moment* end) {
    Outcome<void> outcome = co_await NoThrow(future);
    Mark(end);
    outcome.value();
    co_return 1;
  }
  Coro<int> FailWith(Future<> future, Moment* end) {
    co_await future;
    Mark(end);
    throw std::runtime_error("failed");
  }
  // A task of it that waits by now.
  Task<int> Ending(Future<> future, Moment* end) {
    Task<int> task = CreateTask(EndWith(std::move(future), end));
    loop_.RunRound();
    return task;
  }
  Coro<int> Return() { co_return 1; }

  // Runs `cause` in a callback, then all that follows from it.
  Moment Cause(std::function<void()> cause) {
    Moment moment;
    loop_.CallSoon([&] {
      Mark(&moment);
      cause();
    });
    loop_.RunUntilIdle();
    return moment;
  }

  Future<> MakePending() { return MakeFuture<void>(loop_); }
  Future<> MakeDone() {
    Future<> future = MakePending();
    future.SetResult();
    return future;
  }

  VirtualScheduler loop_;
  Moment noted_;
};

TEST_F(HopsTest, CreateTaskToFirstStepIsOne) {
  const Moment cause = Cause([&] { CreateTask(Note(Return(), &noted_)); });

  EXPECT_EQ(noted_.round - cause.round, 1);
}

TEST_F(HopsTest, AwaitOfWhatIsDoneIsNone) {
  Task<int> done = CreateTask(Return());
  loop_.RunUntilIdle();
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    CurrentTask().Cancel();  // Goes on even so.
    co_await done;
    co_await MakeDone();
    CurrentTask().Uncancel();
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 0);
}

TEST_F(HopsTest, EndOfAFutureToEachCallbackAndAwaiterIsOneInTheirOrder) {
  const std::vector<std::function<void(Future<>&)>> ends = {
      [](Future<>& future) { future.SetResult(); },
      [](Future<>& future) { future.SetException(std::runtime_error("failed")); },
      [](Future<>& future) { future.Cancel(); },
  };
  for (const auto& end : ends) {
    Future<> future = MakePending();
    std::vector<std::string> order;
    Moment first, second, third;
    const auto callback = [&](Moment* moment, std::string name) {
      return [this, &order, moment, name](Future<>) {
        Mark(moment);
        order.push_back(name);
      };
    };
    future.AddDoneCallback(callback(&first, "callback 1"));
    const auto awaiter = [&]() -> Coro<> {
      co_await NoThrow(future);
      Mark(&second);
      order.push_back("task");
    };
    CreateTask(awaiter());
    loop_.RunRound();
    future.AddDoneCallback(callback(&third, "callback 2"));

    const Moment cause = Cause([&] { end(future); });

    EXPECT_EQ(first.round - cause.round, 1);
    EXPECT_EQ(second.round - cause.round, 1);
    EXPECT_EQ(third.round - cause.round, 1);
    EXPECT_THAT(order, ElementsAre("callback 1", "task", "callback 2"));
  }
}

TEST_F(HopsTest, AddDoneCallbackOnADoneFutureIsOne) {
  Future<> future = MakeDone();

  const Moment cause = Cause([&] { future.AddDoneCallback([&](Future<>) { Mark(&noted_); }); });

  EXPECT_EQ(noted_.round - cause.round, 1);
}

TEST_F(HopsTest, EndOfATaskToItsCallbacksAndAwaitersIsOne) {
  Moment end, called;
  Future<> future = MakePending();
  Task<int> task = Ending(future, &end);
  task.AddDoneCallback([&](Future<int>) { Mark(&called); });
  Noting(task, &noted_);

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(called.round - end.round, 1);
  EXPECT_EQ(noted_.round - end.round, 1);
}

TEST_F(HopsTest, WhatATaskReleasesAtItsEndComesBeforeItsAwaiters) {
  std::vector<std::string> order;
  Future<> released = MakePending();
  struct Releases {
    ~Releases() {
      if (future) future.SetResult();
    }
    Releases(Future<> target) : future(std::move(target)) {}
    Releases(Releases&& other) : future(std::move(other.future)) { other.future = Future<>(); }
    Future<> future;
  };
  const auto child = [](Releases) -> Coro<> { co_await Yield(); };
  const auto wait = [&](Future<> future, std::string name) -> Coro<> {
    co_await std::move(future);
    order.push_back(name);
  };
  Task<> task = CreateTask(child(Releases(released)));
  CreateTask(wait(task, "awaiter"));
  CreateTask(wait(released, "released"));
  loop_.RunUntilIdle();

  EXPECT_THAT(order, ElementsAre("released", "awaiter"));
}

// TASK 68, SLP 99, A-24
TEST_F(HopsTest, SleepOfNothingIsOne) {
  for (const absl::Duration delay : {kNone, -kSecond}) {
    const auto main = [&]() -> Coro<int> {
      const int before = loop_.round();
      co_await Sleep(delay);
      co_return loop_.round() - before;
    };

    EXPECT_EQ(loop_.Run(main()), 1);
  }
}

TEST_F(HopsTest, TimerToItsHandleIsTheSameRoundAndToTheSleeperOneMore) {
  Moment handle;
  CreateTask(Note(Sleep(kSecond), &noted_));
  loop_.RunRound();
  loop_.CallLater(kSecond, [&] { Mark(&handle); });
  loop_.RunUntilIdle();

  EXPECT_EQ(noted_.round - handle.round, 1);
}

TEST_F(HopsTest, ASleepThatIsCancelledKeepsItsTimerUntilTheTaskResumes) {
  Task<> task = Noting(Sleep(kSecond), &noted_);

  const Moment cause = Cause([&] { task.Cancel(); });

  EXPECT_EQ(noted_.round - cause.round, 1);
  EXPECT_EQ(loop_.Now(), TimePoint());
}

TEST_F(HopsTest, CallLaterOfNothingIsOneBehindWhatWasQueued) {
  std::vector<std::string> order;
  Moment later;
  const Moment cause = Cause([&] {
    loop_.CallLater(kNone, [&] {
      Mark(&later);
      order.push_back("later");
    });
    loop_.CallLater(-kSecond, [&] { order.push_back("earlier deadline"); });
    loop_.CallSoon([&] { order.push_back("soon"); });
  });

  EXPECT_EQ(later.round - cause.round, 1);
  EXPECT_THAT(order, ElementsAre("soon", "earlier deadline", "later"));
}

TEST_F(HopsTest, LastChildOfAGatherToItsAwaiterIsTwo) {
  Moment first_end, last_end;
  Future<> first = MakePending(), last = MakePending();
  Noting(Gather(EndWith(first, &first_end), EndWith(last, &last_end)), &noted_);
  loop_.RunRound();

  Cause([&] { first.SetResult(); });
  EXPECT_EQ(noted_.round, Moment().round);
  Cause([&] { last.SetResult(); });

  EXPECT_EQ(noted_.round - last_end.round, 2);
}

TEST_F(HopsTest, FirstErrorOfAGatherToItsAwaiterIsTwo) {
  Moment end, other_end;
  Future<> future = MakePending(), other = MakePending();
  Noting(Gather(FailWith(future, &end), EndWith(other, &other_end)), &noted_);
  loop_.RunRound();

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(noted_.round - end.round, 2);
  EXPECT_EQ(noted_.ended, "error");
  other.SetResult();
  loop_.RunUntilIdle();
}

TEST_F(HopsTest, AwaitOfAGatherOfTheDoneIsNone) {
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await Gather(MakeDone(), MakeDone());
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 0);
}

TEST_F(HopsTest, DecidingEndOfAWaitToItsReturnIsTwo) {
  Moment end;
  Future<> future = MakePending();
  Task<int> task = Ending(future, &end);
  std::vector<FutureRef> futures{task.Ref(), MakeDone().Ref()};
  Noting(Wait(std::move(futures)), &noted_);

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(noted_.round - end.round, 2);
}

TEST_F(HopsTest, WaitOfTheDoneIsTwo) {
  std::vector<Future<>> futures{MakeDone(), MakeDone()};
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await Wait(futures);
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 2);
}

TEST_F(HopsTest, AsCompletedIsTwo) {
  Moment end;
  Future<> future = MakePending();
  Task<int> task = Ending(future, &end);
  auto completed = AsCompleted(std::vector<Task<int>>(1, task));
  CreateTask(Note(completed.Next(), &noted_));
  loop_.RunRound();

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(noted_.round - end.round, 2);
}

TEST_F(HopsTest, WaitForAwaitsACoroutineInPlace) {
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await WaitFor(Return(), kSecond);
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 0);
}

TEST_F(HopsTest, WaitForWithNoTimeIsThreeForACoroutineTwoForAFutureNoneForTheDone) {
  Moment never;
  const auto coroutine = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await NoThrow(WaitFor(EndWith(MakeDone(), &never), kNone));
    co_return loop_.round() - before;
  };
  const auto pending = [&]() -> Coro<int> {
    Future<> future = MakePending();
    const int before = loop_.round();
    Outcome<void> outcome = co_await NoThrow(WaitFor(future, kNone));
    EXPECT_EQ(HowItEnded(outcome), "timeout");
    EXPECT_TRUE(future.Cancelled());
    co_return loop_.round() - before;
  };
  const auto done = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await WaitFor(MakeDone(), kNone);
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(coroutine()), 3);
  EXPECT_EQ(never.round, Moment().round);
  EXPECT_EQ(loop_.Run(pending()), 2);
  EXPECT_EQ(loop_.Run(done()), 0);
}

TEST_F(HopsTest, TimeoutToAWaiterOnAFutureIsOne) {
  Moment due;
  Noting(WithTimeout(kSecond, MakePending()), &noted_);
  loop_.CallLater(kSecond, [&] { Mark(&due); });
  loop_.RunUntilIdle();

  EXPECT_EQ(noted_.round - due.round, 1);
  EXPECT_EQ(noted_.ended, "timeout");
}

TEST_F(HopsTest, TimeoutToAWaiterOnATaskIsOneForTheInnerAndTwoForTheOuter) {
  Moment due, inner;
  Task<int> task = Ending(MakePending(), &inner);
  Noting(WithTimeout(kSecond, task), &noted_);
  loop_.CallLater(kSecond, [&] { Mark(&due); });
  loop_.RunUntilIdle();

  EXPECT_EQ(inner.round - due.round, 1);
  EXPECT_EQ(noted_.round - due.round, 2);
}

TEST_F(HopsTest, TimeoutOfNothingIsTwoAndAReschedulingIntoThePastToo) {
  const auto at_once = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await NoThrow(WithTimeout(kNone, MakePending()));
    co_return loop_.round() - before;
  };
  const auto rescheduled = [&]() -> Coro<int> {
    int before = 0;
    const auto body = [&](Timeout& timeout) -> Coro<> {
      co_await Yield();
      timeout.Reschedule(loop_.Now());
      before = loop_.round();
      co_await MakePending();
    };
    co_await NoThrow(WithTimeout(kSecond, body));
    co_return loop_.round() - before;
  };
  const auto never_waits = [&]() -> Coro<int> { co_return co_await WithTimeout(kNone, Return()); };

  EXPECT_EQ(loop_.Run(at_once()), 2);
  EXPECT_EQ(loop_.Run(rescheduled()), 2);
  EXPECT_EQ(loop_.Run(never_waits()), 1);
  EXPECT_EQ(loop_.Now(), TimePoint());
}

TEST_F(HopsTest, ShieldIsTwoAndOfTheDoneNone) {
  Moment end;
  Future<> future = MakePending();
  Task<int> task = Ending(future, &end);
  Noting(Shield(task), &noted_);
  Cause([&] { future.SetResult(); });
  EXPECT_EQ(noted_.round - end.round, 2);

  const auto done = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await Shield(task);
    co_return loop_.round() - before;
  };
  EXPECT_EQ(loop_.Run(done()), 0);
}

TEST_F(HopsTest, CancellingTheAwaiterOfAShieldIsOne) {
  Moment end;
  Future<> future = MakePending();
  Task<int> inner = Ending(future, &end);
  Task<> task = Noting(Shield(inner), &noted_);

  const Moment cause = Cause([&] { task.Cancel(); });

  EXPECT_EQ(noted_.round - cause.round, 1);
  EXPECT_FALSE(inner.Done());
  future.SetResult();
}

TEST_F(HopsTest, LastChildOfAGroupToItsExitIsTwo) {
  Moment end;
  Future<> future = MakePending();
  auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(EndWith(future, &end));
    co_return;
  };
  Noting(WithTaskGroup(body), &noted_);
  loop_.RunRound();

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(noted_.round - end.round, 2);
}

TEST_F(HopsTest, FailureInAGroupIsTwoToSiblingsAndBodyAndFourToTheExit) {
  Moment failure, sibling, body_end;
  Future<> future = MakePending();
  auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(FailWith(future, &failure));
    group.CreateTask(EndWith(MakePending(), &sibling));
    Outcome<void> outcome = co_await NoThrow(MakePending());
    Mark(&body_end);
    outcome.value();
  };
  Noting(WithTaskGroup(body), &noted_);
  loop_.RunRound();

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(sibling.round - failure.round, 2);
  EXPECT_EQ(body_end.round - failure.round, 2);
  EXPECT_EQ(noted_.round - failure.round, 4);
  EXPECT_EQ(noted_.ended, "group");
}

// The completion is set already when the parent is asked, so that stays pending and
// goes with the group.
TEST_F(HopsTest, FailureOfTheOnlyChildIsTwoToTheExit) {
  Moment failure;
  Future<> future = MakePending();
  auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(FailWith(future, &failure));
    co_return;
  };
  Task<> task = Noting(WithTaskGroup(body), &noted_);
  loop_.RunRound();

  Cause([&] { future.SetResult(); });

  EXPECT_EQ(noted_.round - failure.round, 2);
  EXPECT_EQ(noted_.ended, "group");
  EXPECT_EQ(task.Cancelling(), 0);
}

TEST_F(HopsTest, ExitOfAGroupWithoutChildrenIsNone) {
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    co_await WithTaskGroup([](TaskGroup&) -> Coro<> { co_return; });
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 0);
}

TEST_F(HopsTest, CancelOfATaskOnAFutureIsOneAndCancelsTheFutureForAll) {
  Moment other;
  Future<> future = MakePending();
  Task<> task = Noting(future, &noted_);
  Noting(future, &other);
  bool was_cancelled_at_once = false;

  const Moment cause = Cause([&] {
    task.Cancel();
    was_cancelled_at_once = future.Cancelled();
  });

  EXPECT_TRUE(was_cancelled_at_once);
  EXPECT_EQ(noted_.round - cause.round, 1);
  EXPECT_EQ(other.round - cause.round, 1);
  EXPECT_EQ(other.ended, "cancelled");
}

TEST_F(HopsTest, CancelOfATaskOnATaskIsOneForTheInnerAndTwoForTheOuterWhichCountBoth) {
  Moment inner;
  Task<int> inner_task = Ending(MakePending(), &inner);
  Task<> outer_task = Noting(inner_task, &noted_);

  const Moment cause = Cause([&] { outer_task.Cancel(); });

  EXPECT_EQ(inner.round - cause.round, 1);
  EXPECT_EQ(noted_.round - cause.round, 2);
  EXPECT_EQ(inner_task.Cancelling(), 1);
  EXPECT_EQ(outer_task.Cancelling(), 1);
}

// The inner may swallow it, and is asked again by the next.
TEST_F(HopsTest, AnInnerTaskThatSwallowsACancellationIsCancelledAgain) {
  std::vector<int> rounds;
  const auto stubborn = [&]() -> Coro<int> {
    for (int i = 0; i < 2; ++i) {
      Outcome<void> outcome = co_await NoThrow(MakePending());
      EXPECT_TRUE(outcome.cancelled());
      rounds.push_back(loop_.round());
    }
    co_return 1;
  };
  Task<int> inner = CreateTask(stubborn());
  loop_.RunRound();
  Task<> outer = Noting(inner, &noted_);

  const Moment first = Cause([&] { outer.Cancel(); });
  EXPECT_FALSE(outer.Done());
  const Moment second = Cause([&] { outer.Cancel(); });

  EXPECT_THAT(rounds, ElementsAre(first.round + 1, second.round + 1));
  EXPECT_EQ(noted_.round - second.round, 2);
  EXPECT_EQ(noted_.ended, "value");
  EXPECT_EQ(inner.Cancelling(), 2);
  EXPECT_EQ(outer.Cancelling(), 2);
}

TEST_F(HopsTest, CancelOfATaskThatIsQueuedIsThatSameEntry) {
  Future<> future = MakePending();
  Task<> task = Noting(future, &noted_);

  const Moment cause = Cause([&] {
    future.SetResult();
    task.Cancel();
  });

  EXPECT_EQ(noted_.round - cause.round, 1);
  EXPECT_EQ(noted_.ended, "cancelled");
}

TEST_F(HopsTest, CancelBeforeTheFirstStepIsOneToTheEndAndTwoToTheAwaiter) {
  Moment never, called;
  const auto main = [&]() -> Coro<int> {
    const int before = loop_.round();
    Task<> task = CreateTask(Note(Return(), &never));
    task.AddDoneCallback([&](Future<>) { Mark(&called); });
    task.Cancel();
    Outcome<void> outcome = co_await NoThrow(task);
    EXPECT_EQ(HowItEnded(outcome), "cancelled");
    EXPECT_EQ(called.round - before, 2);
    co_return loop_.round() - before;
  };

  EXPECT_EQ(loop_.Run(main()), 2);
  EXPECT_EQ(never.round, Moment().round);
}

TEST_F(HopsTest, CancelOfOneselfCancelsThePendingAwaitAndDropsTheValueOfAReturn) {
  Moment inner;
  Task<int> inner_task = Ending(MakePending(), &inner);
  const auto awaits_a_task = [&]() -> Coro<> {
    CurrentTask().Cancel();
    co_await inner_task;
  };
  const auto yields = [&]() -> Coro<> {
    CurrentTask().Cancel();
    const int before = loop_.round();
    Outcome<void> outcome = co_await NoThrow(Yield());
    EXPECT_EQ(loop_.round() - before, 1);
    outcome.value();
  };
  const auto returns = [&]() -> Coro<int> {
    CurrentTask().Cancel();
    co_return 5;
  };
  Task<> first = CreateTask(awaits_a_task());
  Task<> second = CreateTask(yields());
  Task<int> third = CreateTask(returns());
  loop_.RunUntilIdle();

  EXPECT_TRUE(inner_task.Cancelled());
  EXPECT_TRUE(first.Cancelled());
  EXPECT_TRUE(second.Cancelled());
  EXPECT_TRUE(third.Cancelled());
}

TEST_F(HopsTest, CancelOfTheAwaiterOfAGatherIsOneToItsChildrenAndThreeToIt) {
  Moment child;
  Task<> task = Noting(Gather(EndWith(MakePending(), &child)), &noted_);
  loop_.RunRound();

  const Moment cause = Cause([&] { task.Cancel(); });

  EXPECT_EQ(child.round - cause.round, 1);
  EXPECT_EQ(noted_.round - cause.round, 3);
}

TEST_F(HopsTest, CancelOfAGatherIsRefusedOnceAllItsChildrenAreDone) {
  Future<> future = MakePending();
  auto gather = Gather(future);
  bool was_done = true, answer = true;

  Cause([&] {
    future.SetResult();
    was_done = gather.Done();
    answer = gather.Cancel();
  });

  EXPECT_FALSE(was_done);
  EXPECT_FALSE(answer);
  EXPECT_FALSE(gather.Cancelled());
}

TEST_F(HopsTest, UncancelToNoneTakesBackWhatIsNotDelivered) {
  const auto main = [&]() -> Coro<int> {
    CurrentTask().Cancel();
    CurrentTask().Cancel();
    EXPECT_EQ(CurrentTask().Uncancel(), 1);
    EXPECT_EQ(CurrentTask().Uncancel(), 0);
    co_await Yield();
    co_return 5;
  };

  EXPECT_EQ(loop_.Run(main()), 5);
}

}  // namespace
}  // namespace weft
