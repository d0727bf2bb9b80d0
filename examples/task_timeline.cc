// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What each task of a program does, and when: an instrument that prints it. In
// virtual time, so the same in every run.
//
//   tools/bazel run //examples:task_timeline

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/loop/instrument.h"
#include "weft/loop/run.h"
#include "weft/sync/queue.h"

namespace {

// One line for each time that a task starts, waits, wakes or ends.
class Timeline final : public weft::Instrument {
 public:
  void TaskStarts(const weft::TaskRef& task) override { Print(task, "starts"); }
  void TaskWakes(const weft::TaskRef& task) override { Print(task, "wakes"); }
  void TaskWaits(const weft::TaskRef& task) override {
    Print(task, absl::StrCat("waits for ", task.WaitsFor()));
  }
  void TaskEnds(const weft::TaskRef& task) override {
    Print(task, task.Cancelled() ? "ends, cancelled" : "ends");
  }
  void RoundBegins() override { ++round_; }

 private:
  void Print(const weft::TaskRef& task, const std::string& what) const {
    const absl::Duration now = weft::GetRunningLoop().Time() - weft::TimePoint();
    std::printf("%5.1f s  round %2d  %-8s  %s\n", absl::ToDoubleSeconds(now), round_,
                task.name().c_str(), what.c_str());
  }

  int round_ = 0;
};

weft::Coro<> Produce(weft::Queue<int>& queue) {
  for (int i = 0; i < 2; ++i) {
    co_await weft::Sleep(absl::Seconds(1));
    co_await queue.Put(i);
  }
  queue.Shutdown();
}

weft::Coro<> Consume(weft::Queue<int>& queue) {
  while (true) {
    weft::Outcome<int> item = co_await weft::NoThrow(queue.Get());
    if (!item.has_value()) break;
  }
}

weft::Coro<int> Main() {
  Timeline timeline;
  weft::GetRunningLoop().AddInstrument(&timeline);
  weft::CurrentTask().SetName("main");
  co_await weft::Yield();  // It is told of what happens from the next round on.
  weft::Queue<int> queue;
  co_await weft::WithTaskGroup([&](weft::TaskGroup& group) -> weft::Coro<> {
    group.CreateTask(Consume(queue), "consumer");
    group.CreateTask(Produce(queue), "producer");
    co_return;
  });
  co_return 0;
}

}  // namespace

int main() {
  weft::VirtualClock clock;
  weft::RunOptions options;
  options.environment.clock = &clock;
  return weft::Run(Main(), options);
}
