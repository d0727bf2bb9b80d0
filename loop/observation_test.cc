// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a loop tells while it runs: to debug mode, to instruments, and in figures.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/instrument.h"
#include "weft/loop/loop_stats.h"
#include "weft/poller/socket_api.h"
#include "weft/testing/captured_log.h"
#include "weft/testing/matches_regex.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// A loop in virtual time, in which a callback blocks by moving it.
class ObservationTest : public ::testing::Test {
 protected:
  ObservationTest() {
    LoopOptions options;
    options.environment.clock = &clock_;
    loop_ = *EventLoop::Create(options);
    loop_->SetExceptionHandler([this](EventLoop&, const ExceptionContext& context) {
      reports_.push_back(context.message);
    });
  }
  ~ObservationTest() override { loop_->Close(); }

  void RunUntilIdle() {
    loop_->CallLater(absl::Hours(10), [this] { loop_->Stop(); });
    loop_->RunForever();
  }
  void Block(absl::Duration time) { clock_.Advance(time); }

  VirtualClock clock_;
  CapturedLog log_;
  std::unique_ptr<EventLoop> loop_;
  std::vector<std::string> reports_;
};

// -- Slow callbacks.

TEST_F(ObservationTest, ASlowCallbackIsNamedInDebugMode) {  // DBG 309, A-80
  loop_->SetDebug(true);
  loop_->CallSoon([this] { Block(absl::Milliseconds(200)); });
  loop_->CallLater(absl::Seconds(1), [this] { Block(absl::Milliseconds(1234)); });
  loop_->CallSoon([this] { Block(absl::Milliseconds(99)); });

  RunUntilIdle();

  EXPECT_THAT(log_.Take(),
              ElementsAre(MatchesRegex("Executing <Handle created at "
                                       "loop/observation_test.cc:[0-9]+> took 0.200 seconds"),
                          MatchesRegex("Executing <Handle created at "
                                       "loop/observation_test.cc:[0-9]+> took 1.234 seconds")));
}

TEST_F(ObservationTest, ASlowStepOfATaskIsNamedWithItsPlace) {  // DBG 309, A-80
  loop_->SetDebug(true);
  const auto work = [this]() -> Coro<> {
    co_await Yield();
    Block(absl::Milliseconds(300));
    co_await Sleep(absl::Seconds(1));
    Block(absl::Milliseconds(400));
  };
  loop_->CreateTask(work(), "worker");

  RunUntilIdle();

  EXPECT_THAT(
      log_.Take(),
      ElementsAre(MatchesRegex("Executing <Task pending name='worker' coro=[^\n]* at "
                               "loop/observation_test.cc:[0-9]+> took 0.300 seconds\n"
                               "  went on from: loop/observation_test.cc:[0-9]+"),
                  MatchesRegex("Executing <Task finished name='worker' coro=[^\n]* created at "
                               "loop/observation_test.cc:[0-9]+> took 0.400 seconds\n"
                               "  went on from: loop/observation_test.cc:[0-9]+")));
}

TEST_F(ObservationTest, TheThresholdIsTheUsersAndTheModeIsSwitchedWhileItRuns) {
  loop_->SetSlowCallbackDuration(absl::Seconds(5));
  EXPECT_EQ(loop_->slow_callback_duration(), absl::Seconds(5));
  loop_->CallSoon([this] { Block(absl::Seconds(6)); });  // Not in debug mode.
  loop_->CallLater(absl::Minutes(1), [this] { loop_->SetDebug(true); });
  loop_->CallLater(absl::Minutes(2), [this] { Block(absl::Seconds(4)); });
  loop_->CallLater(absl::Minutes(3), [this] { Block(absl::Seconds(5)); });
  loop_->CallLater(absl::Minutes(4), [this] { loop_->SetDebug(false); });
  loop_->CallLater(absl::Minutes(5), [this] { Block(absl::Seconds(6)); });

  RunUntilIdle();

  EXPECT_THAT(log_.Take(), ElementsAre(HasSubstr("took 5.000 seconds")));
}

TEST_F(ObservationTest, ASlowReaderIsNamed) {
  LoopOptions options;
  options.debug = true;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create(options);
  loop->SetSlowCallbackDuration(absl::ZeroDuration());
  NativeHandle ends[2];
  ASSERT_EQ(SystemSocketApi()->OpenPair(SocketType::kStream, ends), 0);
  DatagramSlot byte;
  byte.data = const_cast<char*>("x");
  byte.size = 1;
  ASSERT_EQ(SystemSocketApi()->SendMany(ends[1], &byte, 1), 1);
  ASSERT_TRUE(loop->AddReader(ends[0], [&] { loop->Stop(); }).ok());

  loop->RunForever();

  EXPECT_THAT(
      log_.Take(),
      ::testing::Contains(StartsWith("Executing <Handle created at loop/observation_test.cc:")));
  loop->RemoveReader(ends[0]);
  loop->Close();
  SystemSocketApi()->Close(ends[0]);
  SystemSocketApi()->Close(ends[1]);
}

// -- Close.

TEST_F(ObservationTest, InDebugModeCloseListsWhatWasPending) {
  for (bool debug : {false, true}) {
    std::unique_ptr<EventLoop> loop = *EventLoop::Create();
    loop->SetDebug(debug);
    loop->CallSoon([] {});
    loop->CallLater(absl::Hours(1), [] {});
    loop->CallLater(absl::Hours(1), [] {}).Cancel();
    NativeHandle ends[2];
    ASSERT_EQ(SystemSocketApi()->OpenPair(SocketType::kStream, ends), 0);
    ASSERT_TRUE(loop->AddReader(ends[0], [] {}).ok());
    loop->Close();
    SystemSocketApi()->Close(ends[0]);
    SystemSocketApi()->Close(ends[1]);

    const std::vector<std::string> log = log_.Take();
    if (!debug) {
      EXPECT_THAT(log, IsEmpty());
      continue;
    }
    EXPECT_THAT(log,
                ElementsAre(MatchesRegex(
                    "event loop closed with what was pending:\n"
                    "  <reader of descriptor [0-9]+ created at loop/observation_test.cc:[0-9]+>\n"
                    "  <Handle created at loop/observation_test.cc:[0-9]+>\n"
                    "  <Handle created at loop/observation_test.cc:[0-9]+>")));
  }
}

TEST_F(ObservationTest, AnUnclosedLoopIsNamed) {  // A-60, DBG 314
  {
    std::unique_ptr<EventLoop> unclosed = *EventLoop::Create();
  }

  EXPECT_THAT(log_.Take(), ElementsAre(MatchesRegex("unclosed event loop <EventLoop [a-z_]+ "
                                                    "running=0 closed=0 debug=[01]>")));
}

// -- Instruments.

// Writes down what it is told.
class Recorder final : public Instrument {
 public:
  void TaskStarts(const TaskRef& task) override { Add("starts", task); }
  void TaskWaits(const TaskRef& task) override {
    Add(absl::StrCat("waits for ", task.WaitsFor()), task);
  }
  void TaskWakes(const TaskRef& task) override { Add("wakes", task); }
  void TaskEnds(const TaskRef& task) override { Add("ends", task); }
  void RunBegins(const Activity& activity) override {
    if (activity.kind == Activity::Kind::kCallback) {
      events.push_back(absl::StrCat("callback of line ", activity.location.line()));
    }
  }
  void RunEnds(const Activity& activity) override {
    if (activity.kind == Activity::Kind::kCallback) events.push_back("end of callback");
  }
  void RoundBegins() override { ++rounds; }
  void RoundEnds(size_t callbacks) override {
    --open_rounds;
    total += callbacks;
  }

  std::vector<std::string> Take() { return std::exchange(events, {}); }

  std::vector<std::string> events;
  int rounds = 0;
  int open_rounds = 0;
  size_t total = 0;

 private:
  void Add(std::string what, const TaskRef& task) {
    events.push_back(absl::StrCat(task.name(), " ", what));
  }
};

TEST_F(ObservationTest, AnInstrumentHearsOfEachStepOfATask) {
  Recorder recorder;
  loop_->AddInstrument(&recorder);
  const auto work = []() -> Coro<> {
    co_await Sleep(absl::Seconds(1));
    co_await Yield();
  };
  Task<> task = loop_->CreateTask(work(), "worker");

  loop_->RunUntilComplete(Future<void>(task));

  EXPECT_THAT(recorder.Take(),
              ElementsAre("worker starts", "worker waits for <Sleep for another 1s>",
                          "worker wakes", "worker waits for its turn", "worker wakes",
                          "worker ends", HasSubstr("callback of line "), "end of callback"));
}

TEST_F(ObservationTest, ATaskThatIsCancelledBeforeItsFirstStepOnlyEnds) {
  Recorder recorder;
  loop_->AddInstrument(&recorder);
  Task<> task = loop_->CreateTask(Sleep(absl::Seconds(1)), "never");
  task.Cancel();
  loop_->RunOnce(absl::ZeroDuration());

  EXPECT_THAT(recorder.Take(), ElementsAre("never ends"));
}

TEST_F(ObservationTest, AnInstrumentHearsOfRoundsAndOfCallbacks) {
  Recorder recorder;
  loop_->AddInstrument(&recorder);
  const uint32_t here = SourceLocation::current().line();
  loop_->CallSoon([] {});
  loop_->CallSoon([] {});
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());

  EXPECT_EQ(recorder.rounds, 2);
  EXPECT_EQ(recorder.total, 2u);
  EXPECT_THAT(recorder.Take(),
              ElementsAre(absl::StrCat("callback of line ", here + 1), "end of callback",
                          absl::StrCat("callback of line ", here + 2), "end of callback"));
}

TEST_F(ObservationTest, SeveralInstrumentsComeAndGo) {
  Recorder stays;
  auto goes = std::make_unique<Recorder>();
  loop_->AddInstrument(&stays);
  loop_->AddInstrument(goes.get());
  EXPECT_THROW(loop_->AddInstrument(goes.get()), RuntimeError);
  loop_->CallSoon([&] { goes = nullptr; });  // In the midst of a batch.
  loop_->CallSoon([] {});
  loop_->RunOnce(absl::ZeroDuration());

  EXPECT_EQ(stays.Take().size(), 4u);
  EXPECT_TRUE(loop_->RemoveInstrument(&stays));
  EXPECT_FALSE(loop_->RemoveInstrument(&stays));
  loop_->CallSoon([] {});
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_THAT(stays.Take(), IsEmpty());
}

TEST_F(ObservationTest, AnInstrumentMayOutliveItsLoop) {
  Recorder recorder;
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  loop->AddInstrument(&recorder);
  loop->Close();
  loop.reset();

  loop_->AddInstrument(&recorder);
  loop_->CallSoon([] {});
  loop_->RunOnce(absl::ZeroDuration());
  EXPECT_EQ(recorder.Take().size(), 2u);
}

TEST_F(ObservationTest, OneThatThrowsIsReportedAndRemoved) {
  struct Throws final : Instrument {
    void RunBegins(const Activity&) override { throw std::runtime_error("from an instrument"); }
  } throws;
  Recorder recorder;
  loop_->AddInstrument(&throws);
  loop_->AddInstrument(&recorder);
  loop_->CallSoon([] {});
  loop_->CallSoon([] {});
  loop_->RunOnce(absl::ZeroDuration());

  EXPECT_THAT(reports_, ElementsAre("Exception in an instrument, which is removed"));
  EXPECT_EQ(recorder.Take().size(), 4u);
  EXPECT_FALSE(loop_->RemoveInstrument(&throws));
}

TEST_F(ObservationTest, AnObservedLoopRunsInTheSameOrder) {
  const auto trace = [&] {
    std::vector<std::string> log;
    const auto worker = [&](std::string name) -> Coro<> {
      log.push_back(name + "1");
      co_await Yield();
      log.push_back(name + "2");
      co_await Sleep(absl::Seconds(1));
      log.push_back(name + "3");
    };
    loop_->CreateTask(worker, "a");
    loop_->CallSoon([&] { log.push_back("soon"); });
    loop_->CreateTask(worker, "b");
    loop_->CallLater(absl::Seconds(1), [&] { log.push_back("later"); });
    RunUntilIdle();
    return log;
  };
  const std::vector<std::string> plain = trace();
  Recorder recorder;
  loop_->AddInstrument(&recorder);
  loop_->SetDebug(true);

  EXPECT_EQ(trace(), plain);
}

// -- Figures.

TEST_F(ObservationTest, ATimerForTheLongPastIsNotLate) {
  RunUntilIdle();
  loop_->CallLater(-absl::Hours(1), [] {});
  loop_->CallLater(-absl::InfiniteDuration(), [] {});
  loop_->CallAt(TimePoint::InfinitePast(), [] {});
  RunUntilIdle();
  EXPECT_EQ(loop_->Stats().max_lag, absl::ZeroDuration());

  loop_->CallLater(-absl::Hours(1), [] {});
  clock_.Advance(absl::Seconds(3));
  RunUntilIdle();
  EXPECT_EQ(loop_->Stats().max_lag, absl::Seconds(3));  // Since the poll before.
}

TEST(LagHistogramTest, CountsInBucketsThatDouble) {
  LagHistogram lag;
  lag.Add(absl::ZeroDuration());
  lag.Add(absl::Microseconds(1));
  lag.Add(absl::Nanoseconds(1001));
  lag.Add(absl::Microseconds(2));
  lag.Add(absl::Microseconds(1024));
  lag.Add(absl::Microseconds(1025));
  lag.Add(absl::Hours(1));

  EXPECT_EQ(lag.count(0), 2u);
  EXPECT_EQ(lag.count(1), 2u);
  EXPECT_EQ(lag.count(10), 1u);
  EXPECT_EQ(lag.count(11), 1u);
  EXPECT_EQ(lag.count(LagHistogram::kBuckets - 1), 1u);
  EXPECT_EQ(LagHistogram::UpperBound(10), absl::Microseconds(1024));
  EXPECT_EQ(LagHistogram::UpperBound(LagHistogram::kBuckets - 1), absl::InfiniteDuration());
  EXPECT_EQ(lag.total(), 7u);
  EXPECT_EQ(lag.Quantile(0.5), absl::Microseconds(2));
  EXPECT_EQ(lag.Quantile(1), absl::InfiniteDuration());
  EXPECT_EQ(LagHistogram().Quantile(0.99), absl::ZeroDuration());

  LagHistogram more = lag;
  more.Add(absl::Milliseconds(1));
  EXPECT_EQ(more.Since(lag).total(), 1u);
}

TEST_F(ObservationTest, StatsTellWhatTheLoopHasDoneAndByHowMuchItIsLate) {
  loop_->CallSoon([this] { Block(absl::Milliseconds(10)); });
  loop_->CallLater(absl::Milliseconds(4), [] {});
  loop_->CallLater(absl::Milliseconds(9), [] {});
  loop_->RunOnce(absl::ZeroDuration());
  loop_->RunOnce(absl::ZeroDuration());
  loop_->CallLater(absl::Seconds(1), [] {});
  loop_->RunOnce(absl::Seconds(2));
  loop_->CallSoon([] {});
  loop_->CallLater(absl::Hours(1), [] {});
  loop_->CreateTask(Sleep(absl::Seconds(1)));

  LoopStats stats = loop_->Stats();
  EXPECT_EQ(stats.rounds, 3u);
  EXPECT_EQ(stats.polls, 3u);
  EXPECT_EQ(stats.callbacks, 4u);
  EXPECT_EQ(stats.tasks_created, 1u);
  EXPECT_EQ(stats.lag.total(), 2u);  // Rounds with timers that were due.
  EXPECT_EQ(stats.max_lag, absl::Milliseconds(6));
  EXPECT_EQ(stats.lag.Quantile(0.5), absl::Microseconds(1));
  EXPECT_EQ(stats.lag.Quantile(0.99), absl::Microseconds(8192));
  EXPECT_EQ(stats.ready, 2u);
  EXPECT_EQ(stats.timers, 1u);
  EXPECT_EQ(stats.tasks, 1u);
  EXPECT_EQ(stats.uptime, absl::Milliseconds(1010));
  EXPECT_EQ(loop_->TakeMaxLag(), absl::Milliseconds(6));
  EXPECT_EQ(loop_->Stats().max_lag, absl::ZeroDuration());
  for (TaskRef task : loop_->AllTasks()) task.Cancel();
  loop_->RunOnce(absl::ZeroDuration());
}

TEST(LoopStatsTest, IdleIsTheTimeAsleep) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  loop->CallLater(absl::Milliseconds(30), [&] { loop->Stop(); });
  loop->RunForever();

  const LoopStats stats = loop->Stats();
  EXPECT_GE(stats.idle, absl::Milliseconds(15));
  EXPECT_LE(stats.idle, stats.uptime + absl::Milliseconds(5));
  loop->Close();
}

}  // namespace
}  // namespace weft
