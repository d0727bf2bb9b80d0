// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_TEST_LOOP_H_
#define WEFT_SYNC_TEST_LOOP_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/core/exception_context.h"
#include "weft/core/scheduler.h"
#include "weft/core/task.h"
#include "weft/core/timer.h"

namespace weft {

// The least loop that plays asyncio's rounds in virtual time: what is ready now,
// then the timers that are due; if nothing is ready, time jumps to the next.
// Errors that nobody asked for are kept in `errors`.
class TestLoop final : public Scheduler {
 public:
  TestLoop() : running_(this) {}
  ~TestLoop() { Close(); }

  // Destroys the frames of all tasks that are left, as a loop that ends does.
  void Close() {
    SetClosed();
    for (auto& [deadline, timer] : std::exchange(timers_, {})) timer->Unlink();
    while (internal::TaskLink* link = core()->tasks.front()) {
      internal::TaskState::FromLink(link)->DestroyFrames();
    }
    ready().Clear();
  }

  // One round. False if there is nothing to do, ever.
  bool RunRound() {
    if (ready().empty()) {
      if (timers_.empty()) return false;
      now_ = timers_.begin()->first;
    }
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      ready().PushBack(timers_.extract(timers_.begin()).mapped());
    }
    ReadyQueue batch;
    batch.Splice(&ready());
    ++rounds;
    while (Runnable* runnable = batch.PopFront()) runnable->Run();
    return true;
  }

  // Until nothing is ready and no timer is pending.
  void RunUntilIdle() {
    while (RunRound()) {
    }
  }

  // Runs `coro` as a task, and whatever else there is, until idle.
  template <class T>
  T Run(Coro<T> coro) {
    Task<T> task = CreateTask(std::move(coro));
    RunUntilIdle();
    return T(task.Result());
  }

  TimePoint Now() const override { return now_; }
  void Arm(Timer* timer, TimePoint deadline) override { timers_.emplace(deadline, timer); }
  void Disarm(Timer* timer) override {
    timer->Unlink();
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
      if (it->second == timer) {
        timers_.erase(it);
        return;
      }
    }
  }
  void HandleException(ExceptionContext context) noexcept override {
    errors.push_back(ToString(context));
  }

  size_t pending_tasks() const { return core()->tasks.CountSlowly(); }

  int rounds = 0;
  std::vector<std::string> errors;

 private:
  Running running_;
  TimePoint now_;
  std::multimap<TimePoint, Timer*> timers_;
};

// Starts a task that nobody keeps.
template <class... Args>
void Spawn(Args&&... args) {
  (void)CreateTask(std::forward<Args>(args)...);
}

// What happened, in order: "a, b".
class Trace {
 public:
  template <class... Args>
  void operator()(const Args&... args) {
    absl::StrAppend(&text_, text_.empty() ? "" : ", ", args...);
  }
  // What was added since the last call.
  std::string Take() { return std::exchange(text_, std::string()); }

 private:
  std::string text_;
};

}  // namespace weft

#endif  // WEFT_SYNC_TEST_LOOP_H_
