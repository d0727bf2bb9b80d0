// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/run.h"

#include <csignal>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/log.h"
#include "weft/loop/signal_watcher.h"

namespace weft {
namespace {

// Asks those of `tasks` that are not done once more, each time `patience` has
// passed, and names them. Stops when it is destroyed.
class Insistence {
 public:
  Insistence(EventLoop& loop, const std::vector<TaskRef>& tasks, absl::Duration patience)
      : loop_(loop), tasks_(tasks), patience_(patience) {
    if (patience_ < absl::InfiniteDuration()) Wait();
  }
  ~Insistence() { timer_.Cancel(); }

 private:
  void Wait() {
    timer_ = loop_.CallLater(patience_, [this] {
      for (TaskRef task : tasks_) {
        if (task.Done()) continue;
        internal::Log(LogSeverity::kWarning,
                      absl::StrCat("not done by the shutdown deadline: ", task.ToString()));
        task.Cancel();
      }
      Wait();
    });
  }

  EventLoop& loop_;
  const std::vector<TaskRef>& tasks_;
  const absl::Duration patience_;
  TimerHandle timer_;
};

void LogClosingFailed() {
  internal::Log(LogSeverity::kError, absl::StrCat("closing a Runner failed: ",
                                                  DescribeException(std::current_exception())));
}

}  // namespace

Runner::~Runner() {
  try {
    Close();
  } catch (...) {
    LogClosingFailed();
  }
}

void Runner::CloseAfterError() {
  try {
    Close();
  } catch (const KeyboardInterrupt&) {
    throw;
  } catch (...) {
    LogClosingFailed();
  }
}

EventLoop& Runner::GetLoop() {
  if (closed_) throw RuntimeError("Runner is closed");
  if (loop_ == nullptr) {
    absl::StatusOr<std::unique_ptr<EventLoop>> made = EventLoop::Create(options_);
    if (!made.ok()) throw ValueError(std::string(made.status().message()));
    loop_ = *std::move(made);
    context_ = loop_->current_context();
  }
  return *loop_;
}

void Runner::CheckMayRun(const char* caller) const {
  if (Scheduler::Current() != nullptr) {
    throw RuntimeError(absl::StrCat(caller, " cannot be called from a running event loop"));
  }
  if (closed_) throw RuntimeError("Runner is closed");
}

void Runner::Close() {
  if (closed_) return;
  if (loop_ != nullptr) {
    if (loop_->IsRunning()) throw RuntimeError("Cannot close a running event loop");
    if (!loop_->IsClosed()) {
      // Whatever fails here, the loop gets closed.
      struct Closer {
        Runner* runner;
        ~Closer() {
          runner->closed_ = true;
          runner->loop_->Close();
        }
      } closer{this};
      InterruptScope interrupt(*loop_, /*main=*/TaskRef());
      CancelAllTasks();
      loop_->RunUntilComplete(loop_->ShutdownAsyncGenerators());
      loop_->RunUntilComplete(loop_->ShutdownDefaultExecutor());
      if (interrupt.EndsWell()) throw KeyboardInterrupt();
    }
  }
  closed_ = true;
}

// As asyncio does: each is asked once, in the order of creation, and its cleanup
// awaited; what it throws instead of the cancellation is reported.
void Runner::CancelAllTasks() {
  std::vector<TaskRef> tasks = loop_->AllTasks();
  if (tasks.empty()) return;
  for (TaskRef& task : tasks) task.Cancel();
  Future<void> all_done = loop_->CreateFuture<void>();
  size_t left = tasks.size();
  for (TaskRef& task : tasks) {
    internal::AddDoneCallback(
        task.state(),
        [&left, all_done]() mutable {
          if (--left == 0) all_done.SetResult();
        },
        SourceLocation::current());
  }
  {
    Insistence insistence(*loop_, tasks, options_.shutdown_deadline);
    loop_->RunUntilComplete(all_done);
  }
  for (TaskRef& task : tasks) {
    if (task.Cancelled()) continue;
    std::exception_ptr error = task.Exception();
    if (error == nullptr) continue;
    ExceptionContext context("unhandled exception during Run() shutdown");
    context.exception = error;
    context.location = task.state()->created_at();
    context.future = task;
    loop_->CallExceptionHandler(context);
  }
}

// -- SIGINT.

Runner::InterruptScope::InterruptScope(EventLoop& loop, TaskRef main)
    : loop_(loop), main_(std::move(main)) {
  internal::SignalWatcher& signals = loop_.signal_watcher();
  if (!signals.MayHandleInterrupt()) return;
  is_handling_ = signals.SetFallback(SIGINT, this).ok();
}

void Runner::InterruptScope::OnSignal(int) {
  const bool is_first = ++count_ == 1;
  if (!loop_.IsRunning() || (main_ && main_.Done())) {
    came_late_ = true;
  } else if (is_first && main_) {
    main_.Cancel();
  } else {
    loop_.Interrupt();
  }
}

// What comes in the last round of a run, or just before we stop to hear of it, is found
// by this.
void Runner::InterruptScope::Stop() {
  if (std::exchange(is_handling_, false)) loop_.signal_watcher().ClearFallback(SIGINT);
}

// In CPython it would have interrupted the last step of main, whose value is lost then.
bool Runner::InterruptScope::EndsWell() {
  Stop();
  return came_late_;
}

// Not if somebody else has cancelled main as well.
bool Runner::InterruptScope::EndsCancelled() {
  Stop();
  if (came_late_) return count_ > 1 || main_.Cancelling() == 0;
  return count_ > 0 && main_.Uncancel() == 0;
}

// The error that main ended with has answered for one, but not for two.
bool Runner::InterruptScope::EndsBadly() {
  Stop();
  return came_late_ && count_ > 1;
}

Runner::InterruptScope::~InterruptScope() { Stop(); }

}  // namespace weft
