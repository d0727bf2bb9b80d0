// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/task_group.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/timeout.h"
#include "weft/testing/virtual_scheduler.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TaskGroupTest : public ::testing::Test {
 protected:
  Coro<int> After(int seconds) {
    Outcome<void> outcome = co_await NoThrow(Sleep(absl::Seconds(seconds)));
    log_.push_back((outcome.cancelled() ? "cancelled " : "end ") + std::to_string(seconds));
    outcome.value();
    co_return seconds;
  }
  Coro<> Fail(int seconds, std::string text) {
    co_await Sleep(absl::Seconds(seconds));
    throw std::runtime_error(text);
  }

  // Runs a group and says how it ended: "ok", "cancelled", "timeout", or the
  // errors of the ExceptionGroup in brackets.
  template <class F>
  Coro<std::string> Group(F body) {
    auto outcome = co_await NoThrow(WithTaskGroup(body));
    co_return outcome.has_value() ? "ok" : Words(outcome.exception());
  }
  static std::string Words(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const ExceptionGroup& group) {
      std::string text = "[";
      for (const std::exception_ptr& inner : group.exceptions()) {
        text += (text.size() > 1 ? " " : "") + Words(inner);
      }
      return text + "]";
    } catch (const CancelledError&) {
      return "cancelled";
    } catch (const TimeoutError&) {
      return "timeout";
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "?";
    }
  }

  std::vector<std::string> log_;
  VirtualScheduler loop_;
};

// TG 142
TEST_F(TaskGroupTest, WaitsForItsChildren) {
  const auto main = [&]() -> Coro<int> {
    Task<int> first, second;
    auto body = [&](TaskGroup& group) -> Coro<int> {
      first = group.CreateTask(After(1));
      second = group.CreateTask(After(2));
      co_return 3;
    };
    const int value = co_await WithTaskGroup(body);
    co_return first.Result() + second.Result() + value;
  };

  EXPECT_EQ(loop_.Run(main()), 6);
}

// TG 143, A-40
TEST_F(TaskGroupTest, AFailureCancelsSiblingsAndBody) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(Fail(1, "failed"));
    group.CreateTask(After(5));
    co_await After(9);
  };

  EXPECT_EQ(loop_.Run(Group(body)), "[failed]");
  EXPECT_THAT(log_, ElementsAre("cancelled 5", "cancelled 9"));
}

// TG 144
TEST_F(TaskGroupTest, AFailureOfTheBodyCancelsTheChildren) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(After(5));
    co_await Fail(1, "of the body");
  };

  EXPECT_EQ(loop_.Run(Group(body)), "[of the body]");
  EXPECT_THAT(log_, ElementsAre("cancelled 5"));
}

// TG 145
TEST_F(TaskGroupTest, AllFailuresOfARoundAreReportedInTheirOrder) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    for (const char* name : {"a", "b", "c"}) group.CreateTask(Fail(1, name));
    co_return;
  };

  EXPECT_EQ(loop_.Run(Group(body)), "[a b c]");
}

// TG 146
TEST_F(TaskGroupTest, ACancellationFromOutsideGoesOnWhenTheChildrenHaveEnded) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(After(5));
    co_await After(9);
  };
  Task<std::string> task = CreateTask(Group(body));
  loop_.RunRounds(2);
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "cancelled");
  EXPECT_EQ(task.Cancelling(), 1);
  EXPECT_THAT(log_, ElementsAre("cancelled 9", "cancelled 5"));
}

// TG 147
TEST_F(TaskGroupTest, AChildThatIsCancelledOnItsOwnIsNoFailure) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    Task<int> child = group.CreateTask(After(5));
    group.CreateTask(After(1));
    co_await Yield();
    child.Cancel();
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_THAT(log_, ElementsAre("cancelled 5", "end 1"));
}

// TG 149
TEST_F(TaskGroupTest, RefusesChildrenOnceItShutsDown) {
  std::vector<std::string> refusals;
  auto argument = std::make_shared<int>(1);
  const auto keeps = [&](std::shared_ptr<int>) -> Coro<> {
    log_.push_back("ran");
    co_return;
  };
  const auto tries = [&](TaskGroup& group) -> Coro<> {
    co_await NoThrow(Sleep(absl::Seconds(5)));
    try {
      group.CreateTask(keeps(argument));
    } catch (const RuntimeError& error) {
      refusals.push_back(error.what());
    }
  };
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(Fail(0, "failed"));
    group.CreateTask(tries(group));
    co_await tries(group);
  };

  EXPECT_EQ(loop_.Run(Group(body)), "[failed]");
  EXPECT_THAT(refusals,
              ElementsAre("TaskGroup <TaskGroup tasks=1 errors=1 cancelling> is shutting down",
                          "TaskGroup <TaskGroup tasks=1 errors=1 cancelling> is shutting down"));
  EXPECT_EQ(argument.use_count(), 1);
  EXPECT_THAT(log_, IsEmpty());
}

// TG 148: none is to be had that was not entered.
TEST_F(TaskGroupTest, RefusesChildrenOnceItIsFinished) {
  static_assert(!std::is_constructible_v<TaskGroup, internal::TaskState*>);
  std::string refusal;
  auto argument = std::make_shared<int>(1);
  const auto keeps = [&](std::shared_ptr<int>) -> Coro<> {
    log_.push_back("ran");
    co_return;
  };
  const auto body = [&](TaskGroup& group) -> Coro<> {
    Task<> child = group.CreateTask(Sleep(absl::Seconds(1)));
    // Behind the group's own callback, and before the group ends.
    child.AddDoneCallback([&](Future<>) {
      try {
        group.CreateTask(keeps(argument));
      } catch (const RuntimeError& error) {
        refusal = error.what();
      }
    });
    co_return;
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_EQ(refusal, "TaskGroup <TaskGroup entered> is finished");
  EXPECT_EQ(argument.use_count(), 1);
  EXPECT_THAT(log_, IsEmpty());
}

// TG 150
TEST_F(TaskGroupTest, WaitsForChildrenOfChildren) {
  const auto child = [&](TaskGroup& group) -> Coro<> {
    co_await Sleep(absl::Seconds(1));
    group.CreateTask(After(2));
  };
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(child(group));
    co_return;
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_THAT(log_, ElementsAre("end 2"));
}

// TG 151
TEST_F(TaskGroupTest, GroupsNest) {
  const auto inner = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(Fail(1, "inner"));
    co_return;
  };
  const auto outer = [&](TaskGroup&) -> Coro<> { co_await WithTaskGroup(inner); };

  EXPECT_EQ(loop_.Run(Group(outer)), "[[inner]]");
}

// TG 152
TEST_F(TaskGroupTest, ACancellationWhileItWaitsCancelsTheChildren) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(After(5));
    co_return;
  };
  Task<std::string> task = CreateTask(Group(body));
  loop_.RunRounds(2);
  task.Cancel();
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "cancelled");
  EXPECT_THAT(log_, ElementsAre("cancelled 5"));
}

// TG 153
TEST_F(TaskGroupTest, ATimeoutAroundItIsATimeout) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(After(5));
    co_return;
  };
  const auto main = [&]() -> Coro<std::string> {
    Outcome<void> outcome = co_await NoThrow(WithTimeout(absl::Seconds(1), WithTaskGroup(body)));
    EXPECT_EQ(CurrentTask().Cancelling(), 0);
    co_return Words(outcome.exception());
  };

  EXPECT_EQ(loop_.Run(main()), "timeout");
}

// TG 154
TEST_F(TaskGroupTest, ChildrenHaveNames) {
  std::string name;
  const auto body = [&](TaskGroup& group) -> Coro<> {
    name = group.CreateTask(After(1), "fetcher").name();
    co_return;
  };

  loop_.Run(Group(body));
  EXPECT_EQ(name, "fetcher");
}

// TG 155
TEST_F(TaskGroupTest, OneFailureAmongTenThousand) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    for (int i = 0; i < 10'000; ++i) {
      if (i == 5'000) {
        group.CreateTask(Fail(1, "one"));
      } else {
        group.CreateTask(After(2));
      }
    }
    co_return;
  };

  EXPECT_EQ(loop_.Run(Group(body)), "[one]");
  EXPECT_EQ(log_.size(), 9'999u);
}

TEST_F(TaskGroupTest, ChildrenOfFunctionsAndArguments) {
  std::vector<int> seen;
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(
        [&seen](int value) -> Coro<> {
          co_await Yield();
          seen.push_back(value);
        },
        7);
    co_return;
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_THAT(seen, ElementsAre(7));
}

TEST_F(TaskGroupTest, TheBodysLocalsDieBeforeItWaits) {
  struct Local {
    ~Local() { log->push_back("local"); }
    explicit Local(std::vector<std::string>* target) : log(target) {}
    std::vector<std::string>* log;
  };
  const auto body = [&](TaskGroup& group) -> Coro<> {
    Local local(&log_);
    group.CreateTask(After(1));
    co_await Yield();
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_THAT(log_, ElementsAre("local", "end 1"));
}

TEST_F(TaskGroupTest, JoinWaitsWhileLocalsLive) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    int local = 0;
    const auto child = [&local]() -> Coro<> {
      co_await Sleep(absl::Seconds(1));
      local = 5;
    };
    group.CreateTask(child());
    co_await group.Join();
    EXPECT_EQ(local, 5);
    group.CreateTask(After(1));
  };

  EXPECT_EQ(loop_.Run(Group(body)), "ok");
  EXPECT_THAT(log_, ElementsAre("end 1"));
}

TEST_F(TaskGroupTest, JoinEndsOnlyWithTheLastChildWhateverCancelsIt) {
  const auto cleans = [&]() -> Coro<> {
    co_await NoThrow(Sleep(absl::Seconds(9)));
    co_await NoThrow(Sleep(absl::Seconds(2)));
    log_.push_back("cleaned");
  };
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(cleans());
    Outcome<void> outcome = co_await NoThrow(group.Join());
    log_.push_back(outcome.cancelled() ? "join cancelled" : "?");
    outcome.value();
  };
  Task<std::string> cancelled = CreateTask(Group(body));
  loop_.RunRounds(2);
  cancelled.Cancel();
  loop_.RunUntilIdle();
  EXPECT_EQ(cancelled.Result(), "cancelled");
  EXPECT_THAT(log_, ElementsAre("cleaned", "join cancelled"));

  log_.clear();
  const auto fails = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(Fail(1, "failed"));
    co_await body(group);
  };
  EXPECT_EQ(loop_.Run(Group(fails)), "[failed]");
  EXPECT_THAT(log_, ElementsAre("cleaned", "join cancelled"));
}

// A request from outside that comes with a failure is made again behind the group.
TEST_F(TaskGroupTest, ARequestFromOutsideIsNotLostBehindAFailure) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(Fail(1, "failed"));
    co_await Sleep(absl::Seconds(9));
  };
  const auto main = [&]() -> Coro<std::string> {
    std::string ended = co_await Group(body);
    Outcome<void> outcome = co_await NoThrow(Yield());
    co_return ended + (outcome.cancelled() ? ", then cancelled" : "");
  };
  Task<std::string> task = CreateTask(main());
  loop_.RunRounds(2);
  loop_.CallLater(absl::Seconds(1), [&] { task.Cancel(); });
  loop_.RunUntilIdle();

  EXPECT_EQ(task.Result(), "[failed], then cancelled");
}

TEST_F(TaskGroupTest, IsGoneWithALoopThatClosesInTheMidstOfIt) {
  const auto body = [&](TaskGroup& group) -> Coro<> {
    group.CreateTask(After(5));
    co_return;
  };
  CreateTask(Group(body));
  loop_.RunRounds(2);

  loop_.Close();
}

}  // namespace
}  // namespace weft
