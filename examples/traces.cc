// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Small programs, and the order in which they print: what runs when in an event
// loop. Each is one of asyncio's that people puzzle over, and prints the same
// lines here.
//
//   tools/bazel run //examples:traces              all of them
//   tools/bazel run //examples:traces -- G3 G14    these
//   tools/bazel run //examples:traces -- --list    what each of them shows
//
// They run in virtual time: two seconds of sleep take none, and the order never
// depends on how fast the machine is. Remarks that are no part of a trace, such
// as how long it took, go to stderr.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "weft/core/async_generator.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/examples/flags.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"

namespace {

using weft::Coro;
using weft::CreateTask;
using weft::Future;
using weft::GetRunningLoop;
using weft::Handle;
using weft::Sleep;
using weft::Task;
using weft::TimerHandle;

constexpr absl::Duration kYield = absl::ZeroDuration();

// The time of the trace that is running.
weft::VirtualClock* trace_clock = nullptr;

// Holds the thread up, as a computation does, or a call that blocks.
void BlockThread(absl::Duration duration) { trace_clock->Advance(duration); }

void Print(std::string_view line) { std::puts(std::string(line).c_str()); }

void Remark(std::string_view text) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", std::string(text).c_str());
}

template <class T>
T RunVirtually(Coro<T> main) {
  weft::VirtualClock clock;
  trace_clock = &clock;
  weft::RunOptions options;
  options.environment.clock = &clock;
  return weft::Run(std::move(main), options);
}

// G1: a task starts when its creator first waits, and Sleep(0) is one turn.
Coro<> StartAndYield(std::string name) {
  Print(name + " start");
  co_await Sleep(kYield);
  Print(name + " after yield");
}
Coro<> G1() {
  Task<> a = CreateTask(StartAndYield("A"));
  Task<> b = CreateTask(StartAndYield("B"));
  Print("main before sleep");
  co_await Sleep(kYield);
  Print("main after sleep");
  co_await Sleep(kYield);
}

// G2: a callback runs when main yields.
Coro<> G2() {
  GetRunningLoop().CallSoon([] { Print("sync callback runs"); });
  Print("main before yield");
  co_await Sleep(kYield);
  Print("main after yield");
}

// G3: who blocks the thread holds up everybody.
Coro<> BlockingWorker() {
  Print("W go");
  BlockThread(absl::Milliseconds(200));
  Print("W done");
  co_return;
}
Coro<> G3() {
  Task<> worker = CreateTask(BlockingWorker());
  for (int i = 0; i < 3; ++i) {
    Print(absl::StrCat("tick ", i));
    co_await Sleep(absl::Milliseconds(50));
  }
}

// G4: a timer that is overdue fires once, late, and goes on from there.
Coro<> Heartbeat() {
  for (int i = 0;; ++i) {
    Print(absl::StrCat("heartbeat ", i));
    co_await Sleep(absl::Milliseconds(50));
  }
}
Coro<> G4() {
  Task<> heartbeat = CreateTask(Heartbeat());
  co_await Sleep(absl::Milliseconds(20));
  BlockThread(absl::Milliseconds(300));
  Remark("(300 ms)");
  co_await Sleep(absl::Milliseconds(90));
}

// G5: they wait at the same time, and end in the order of their delays.
Coro<> Job(std::string name, absl::Duration duration) {
  Print(name + " begin");
  co_await Sleep(duration);
  Print(name + " end");
}
Coro<> G5() {
  Task<> fast = CreateTask(Job("fast", absl::Milliseconds(50)));
  Task<> mid = CreateTask(Job("mid", absl::Milliseconds(100)));
  Task<> slow = CreateTask(Job("slow", absl::Milliseconds(150)));
  Print("main waiting");
  co_await Sleep(absl::Milliseconds(200));
  Print("main done");
}

// G6: Gather() waits for tasks that take turns.
Coro<> StartAndResume(std::string name) {
  Print(name + " start");
  co_await Sleep(kYield);
  Print(name + " resume");
}
Coro<> G6() {
  Print("create");
  Task<> t1 = CreateTask(StartAndResume("t1"));
  Task<> t2 = CreateTask(StartAndResume("t2"));
  Print("wait");
  co_await weft::Gather(t1, t2);
  Print("end");
}

// G7: what is ready and what has to wait are two kinds of handle.
const char* TypeName(const Handle&) { return "Handle"; }
const char* TypeName(const TimerHandle&) { return "TimerHandle"; }
Coro<> G7() {
  auto soon = GetRunningLoop().CallSoon([] { Print("ready callback"); });
  auto later = GetRunningLoop().CallLater(absl::Seconds(1), [] { Print("timer callback"); });
  Print(TypeName(soon));
  Print(TypeName(later));
  co_await Sleep(absl::Milliseconds(1200));
}

// G8: tasks run from the moment they are created, not from the await.
Coro<> SayAfter(absl::Duration delay) {
  co_await Sleep(delay);
  Print(absl::StrCat(absl::ToInt64Seconds(delay), " s"));
}
Coro<> G8() {
  const weft::TimePoint begin = GetRunningLoop().Time();
  Print("start");
  Task<> first = CreateTask(SayAfter(absl::Seconds(1)));
  Task<> second = CreateTask(SayAfter(absl::Seconds(2)));
  Print("created");
  co_await first;
  co_await second;
  Print("end");
  Remark(absl::StrCat(absl::ToInt64Seconds(GetRunningLoop().Time() - begin), " s in all"));
}

// G9: the loop does not wait for its timers.
Coro<> G9() {
  GetRunningLoop().CallSoon([] { Print("soon"); });
  GetRunningLoop().CallLater(absl::Milliseconds(200), [] { Print("later"); });
  Print("start");
  co_await Sleep(absl::Milliseconds(100));
  Print("end");
}

// G10: callbacks run in their order, all in one turn.
Coro<> G10() {
  for (int i = 0; i < 5; ++i) {
    GetRunningLoop().CallSoon([i] { Print(absl::StrCat("cb ", i)); });
  }
  co_await Sleep(kYield);
  Print("main resumed");
}

// G11: main's end does not overtake what was ready before.
Coro<> G11() {
  for (int i = 0; i < 5; ++i) {
    GetRunningLoop().CallSoon([i] { Print(absl::StrCat("cb ", i)); });
  }
  Print("main returns");
  co_return;
}

// G12: when main ends, tasks that run are cancelled.
Coro<> Background() {
  for (int i = 0; i < 5; ++i) {
    co_await Sleep(absl::Seconds(1));
    Print(absl::StrCat("bg ", i));
  }
}
Coro<> G12() {
  Task<> background = CreateTask(Background());
  Print("main does not wait");
  co_await Sleep(absl::Milliseconds(1500));
}

// G13: what a callback adds waits for the next round.
Coro<> G13() {
  GetRunningLoop().CallSoon([] {
    Print("a");
    GetRunningLoop().CallSoon([] { Print("b"); });
  });
  GetRunningLoop().CallSoon([] { Print("c"); });
  co_await Sleep(kYield);
  Print("main 1");
  co_await Sleep(kYield);
  Print("main 2");
}

// G14: a timer of no delay is a timer all the same: it takes a round more.
Coro<> G14() {
  GetRunningLoop().CallLater(absl::ZeroDuration(), [] { Print("later0"); });
  GetRunningLoop().CallSoon([] { Print("soon"); });
  co_await Sleep(kYield);
  Print("main 1");
  co_await Sleep(kYield);
  Print("main 2");
}

// G15: a future's callbacks are queued, not called.
Coro<> G15() {
  Future<> future = GetRunningLoop().CreateFuture();
  for (int i = 1; i <= 3; ++i) {
    future.AddDoneCallback([i](const Future<>&) { Print(absl::StrCat(i)); });
  }
  future.SetResult();
  Print("set");
  co_await Sleep(kYield);
}

// G16: how Run() ends: tasks clean up, then generators, then jobs are waited for.
Coro<> CleanUpWhenCancelled() {
  auto slept = co_await weft::NoThrow(Sleep(absl::InfiniteDuration()));
  Print("child cancelled");
  co_await Sleep(kYield);
  Print("child cleanup done");
  slept.value();  // Throws the CancelledError on.
}
Coro<> FailWhenCancelled() {
  co_await weft::NoThrow(Sleep(absl::InfiniteDuration()));
  throw std::runtime_error("what is reported");
}
weft::AsyncGenerator<int> Numbers(absl::Notification* is_closed) {
  const absl::Cleanup cleanup = [is_closed] {
    Print("generator's cleanup");
    is_closed->Notify();
  };
  for (int i = 0;; ++i) co_yield i;
}
Coro<std::string> G16(weft::AsyncGenerator<int>* numbers, absl::Notification* is_closed) {
  GetRunningLoop().SetExceptionHandler(
      [](weft::EventLoop&, const weft::ExceptionContext&) { Print("report of the failure"); });
  Task<> child = CreateTask(CleanUpWhenCancelled());
  Task<> failing = CreateTask(FailWhenCancelled());
  co_await numbers->Next();  // The first of them, and no more.
  Future<> job = GetRunningLoop().RunInExecutor(nullptr, [is_closed] {
    is_closed->WaitForNotification();
    Print("job done");
  });
  co_await Sleep(kYield);
  co_return "result";
}
void PlayG16() {
  absl::Notification is_closed;
  weft::AsyncGenerator<int> numbers = Numbers(&is_closed);
  Print(RunVirtually(G16(&numbers, &is_closed)));
}

// G17: results, from a coroutine, threads, and two ways to run.
Coro<std::string> Ping() { co_return "pong"; }
Coro<int> Once() { co_return 99; }
int Power(int base, int exponent) { return exponent == 0 ? 1 : base * Power(base, exponent - 1); }
Coro<> G17() {
  Print("ping: " + co_await Ping());
  Print(absl::StrCat("ToThread(1 + 2): ", co_await weft::ToThread([] { return 1 + 2; })));
  Future<int> two = GetRunningLoop().RunInExecutor(nullptr, [] { return Power(2, 10); });
  Future<int> three = GetRunningLoop().RunInExecutor(nullptr, [] { return Power(3, 5); });
  auto [a, b] = co_await weft::Gather(two, three);
  Print(absl::StrCat("two RunInExecutor powers: ", a, " ", b));
}
void RunOnceTwice() {
  const int run = RunVirtually(Once());
  auto loop = weft::EventLoop::Create().value();
  const int until_complete = loop->RunUntilComplete(Once());
  loop->Close();
  Print(absl::StrCat("once: ", run, " under Run, ", until_complete, " under RunUntilComplete"));
}

struct Trace {
  std::string_view name;
  std::string_view shows;
  void (*play)();
};

const Trace kTraces[] = {
    {"G1", "tasks start when their creator waits, and take turns", [] { RunVirtually(G1()); }},
    {"G2", "a callback runs when main yields", [] { RunVirtually(G2()); }},
    {"G3", "who blocks the thread holds up everybody", [] { RunVirtually(G3()); }},
    {"G4", "an overdue timer fires once and goes on from there", [] { RunVirtually(G4()); }},
    {"G5", "three jobs wait at the same time", [] { RunVirtually(G5()); }},
    {"G6", "Gather() waits for tasks that take turns", [] { RunVirtually(G6()); }},
    {"G7", "handles of what is ready, and of what has to wait", [] { RunVirtually(G7()); }},
    {"G8", "tasks run from their creation, not from the await", [] { RunVirtually(G8()); }},
    {"G9", "the loop does not wait for its timers", [] { RunVirtually(G9()); }},
    {"G10", "callbacks run in their order, in one round", [] { RunVirtually(G10()); }},
    {"G11", "what is ready when main ends still runs", [] { RunVirtually(G11()); }},
    {"G12", "when main ends, tasks that run are cancelled", [] { RunVirtually(G12()); }},
    {"G13", "what a callback adds waits for the next round", [] { RunVirtually(G13()); }},
    {"G14", "a timer of no delay takes a round more", [] { RunVirtually(G14()); }},
    {"G15", "a future's callbacks are queued, not called", [] { RunVirtually(G15()); }},
    {"G16", "how Run() ends: tasks, generators, jobs", [] { PlayG16(); }},
    {"G17", "results of coroutines, threads and runs",
     [] {
       RunVirtually(G17());
       RunOnceTwice();
     }},
};

const Trace* FindTrace(std::string_view name) {
  for (const Trace& trace : kTraces) {
    if (trace.name == name) return &trace;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  bool list = false;
  weft::Flags flags("traces [NAME...]");
  flags.Add("list", &list, "print what each trace shows");
  const std::vector<std::string> names = flags.Parse(argc, argv);

  std::vector<const Trace*> chosen;
  for (const std::string& name : names) {
    chosen.push_back(FindTrace(name));
    if (chosen.back() == nullptr) {
      return flags.Fail(absl::StrCat("there is no trace \"", name, "\"; --list names them"));
    }
  }
  if (names.empty()) {
    for (const Trace& trace : kTraces) chosen.push_back(&trace);
  }

  for (const Trace* trace : chosen) {
    if (list) {
      Print(absl::StrCat(trace->name, trace->name.size() < 3 ? "   " : "  ", trace->shows));
      continue;
    }
    if (chosen.size() > 1) Print(absl::StrCat("// ", trace->name));
    try {
      trace->play();
    } catch (const weft::ValueError& error) {
      return flags.Fail(error.what());  // There is no such poller.
    }
  }
  return 0;
}
