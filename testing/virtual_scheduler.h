// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_VIRTUAL_SCHEDULER_H_
#define WEFT_TESTING_VIRTUAL_SCHEDULER_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/callback.h"
#include "weft/core/coro.h"
#include "weft/core/exception_context.h"
#include "weft/core/observer.h"
#include "weft/core/runnable.h"
#include "weft/core/scheduler.h"
#include "weft/core/task.h"
#include "weft/core/time_point.h"
#include "weft/timer/timer_wheel.h"

namespace weft {

// VirtualScheduler
//
// The least loop that plays asyncio's rounds, in virtual time: for tests of what
// needs a Scheduler and no more. It is this thread's running one as long as it
// lives.
//
//   VirtualScheduler loop;
//   EXPECT_EQ(loop.Run(Main()), 42);
//
// Threads: belongs to the thread that made it.
class VirtualScheduler final : public Scheduler {
 public:
  VirtualScheduler() : wheel_(TimePoint()), running_(this) {}
  ~VirtualScheduler() { Close(); }

  // Destroys what is left, in the order in which EventLoop::Close() does.
  void Close() {
    if (closed()) return;
    SetClosed();
    while (internal::TaskLink* link = core()->tasks.front()) {
      internal::TaskState::FromLink(link)->DestroyFrames();
    }
    wheel_.DisarmAll(&ready());
    while (Runnable* next = ready().PopFront()) {
      if (internal::Observer::IsObserver(next)) {
        static_cast<internal::Observer*>(next)->Drop();
      } else if (internal::CallbackSlot::IsSlot(next)) {
        static_cast<internal::CallbackSlot*>(next)->Drop();
      }
    }
  }

  // One round: the timers that are due, then all that is ready now. If nothing is
  // ready, time moves to the next timer first. False if there is none either.
  bool RunRound() {
    if (ready().empty()) {
      const TimePoint next = wheel_.NextDeadline();
      if (next == TimePoint::InfiniteFuture()) return false;
      if (next > now_) now_ = next;
    }
    wheel_.Advance(now_, &ready());
    ReadyQueue batch;
    batch.Splice(&ready());
    ++round_;
    while (Runnable* next = batch.PopFront()) next->Run();
    return true;
  }
  void RunRounds(int count) {
    for (int i = 0; i < count; ++i) RunRound();
  }

  // Until nothing is ready and no timer is pending.
  void RunUntilIdle() {
    while (RunRound()) {
    }
  }

  // Runs `main` as a task, and all that it starts, until idle; returns what it
  // returned, or throws what it threw. std::logic_error if it is not done then.
  template <class T>
  T Run(Coro<T> main) {
    Task<T> task = CreateTask(std::move(main));
    RunUntilIdle();
    if (!task.Done()) throw std::logic_error(absl::StrCat("waits for ever: ", task.ToString()));
    return task.TakeResult();
  }

  // The round that is running, or the last one that ran; from 1.
  int round() const { return round_; }

  // Plays a callback that blocks.
  void Advance(absl::Duration time) { now_ += time; }

  // What was given to HandleException(), in order.
  std::vector<ExceptionContext>& errors() { return errors_; }
  std::vector<std::string> TakeErrorMessages() {
    std::vector<std::string> messages;
    for (const ExceptionContext& error : std::exchange(errors_, {})) {
      messages.push_back(error.message);
    }
    return messages;
  }

  TimePoint Now() const override { return now_; }
  void Arm(Timer* timer, TimePoint deadline) override { wheel_.Arm(timer, deadline); }
  void Disarm(Timer* timer) override { wheel_.Disarm(timer); }
  void HandleException(ExceptionContext context) noexcept override {
    errors_.push_back(std::move(context));
  }

 private:
  TimePoint now_;
  int round_ = 0;
  TimerWheel wheel_;
  std::vector<ExceptionContext> errors_;
  Running running_;
};

}  // namespace weft

#endif  // WEFT_TESTING_VIRTUAL_SCHEDULER_H_
