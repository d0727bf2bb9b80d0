// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/observation.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "weft/core/exception_context.h"
#include "weft/core/log.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/fd_watcher.h"
#include "weft/loop/stack_sampler.h"

namespace weft {

std::string Activity::ToString() const {
  if (task) return task.ToString();
  if (kind == Kind::kCallback) {
    return absl::StrCat("<Handle created at ", weft::ToString(location), ">");
  }
  return "<a callback of the loop's own>";
}

// The default is to do nothing.
void Instrument::TaskStarts(const TaskRef&) {}
void Instrument::TaskWaits(const TaskRef&) {}
void Instrument::TaskWakes(const TaskRef&) {}
void Instrument::TaskEnds(const TaskRef&) {}
void Instrument::RunBegins(const Activity&) {}
void Instrument::RunEnds(const Activity&) {}
void Instrument::RoundBegins() {}
void Instrument::RoundEnds(size_t) {}

Instrument::~Instrument() {
  if (observation_ != nullptr) observation_->Remove(this);
}

namespace internal {

Observation::~Observation() {
  for (Instrument* instrument : instruments_) {
    if (instrument != nullptr) instrument->observation_ = nullptr;
  }
}

void Observation::Add(Instrument* instrument) {
  if (instrument->observation_ != nullptr) throw RuntimeError("the instrument has a loop already");
  instrument->observation_ = this;
  instruments_.push_back(instrument);
  loop_->core()->SetObserved(true);
}

bool Observation::Remove(Instrument* instrument) {
  const auto found = std::find(instruments_.begin(), instruments_.end(), instrument);
  if (found == instruments_.end()) return false;
  instrument->observation_ = nullptr;
  *found = nullptr;
  if (!is_running_) Compact();
  return true;
}

void Observation::Compact() {
  std::erase(instruments_, nullptr);
  loop_->core()->SetObserved(!instruments_.empty() || progress_ != nullptr);
}

std::shared_ptr<LoopProgress> Observation::Publish() {
  if (publishers_++ == 0) {
    progress_ = std::make_shared<LoopProgress>();
    progress_->SetThread(StackSampler::CurrentThread());
    loop_->core()->SetObserved(true);
  }
  return progress_;
}

void Observation::EndPublish() {
  if (--publishers_ > 0) return;
  progress_ = nullptr;
  if (!is_running_) Compact();
}

template <class F>
void Observation::Tell(F call) {
  // By index: an instrument may add another.
  for (size_t i = 0; i < instruments_.size(); ++i) {
    Instrument* instrument = instruments_[i];
    if (instrument == nullptr) continue;
    try {
      call(*instrument);
    } catch (...) {
      Remove(instrument);
      ExceptionContext context("Exception in an instrument, which is removed");
      context.exception = std::current_exception();
      loop_->CallExceptionHandler(context);
    }
  }
}

int Observation::RunBatch(ReadyQueue* batch) {
  is_running_ = true;
  Tell([](Instrument& instrument) { instrument.RoundBegins(); });
  int count = 0;
  while (Runnable* next = batch->PopFront()) {
    Run(next);
    ++count;
  }
  Tell([count](Instrument& instrument) { instrument.RoundEnds(static_cast<size_t>(count)); });
  is_running_ = false;
  Compact();
  return count;
}

void Observation::Run(Runnable* runnable) {
  TaskState* task = TaskState::FromRunnable(runnable);
  Activity activity;
  if (task != nullptr) {
    activity.kind = Activity::Kind::kStep;
    activity.location = task->position();
  } else if (IsSlot(runnable)) {
    activity.kind = Activity::Kind::kCallback;
    activity.location = static_cast<CallbackSlot*>(runnable)->location();
  } else if (const SourceLocation* watched = FdWatcher::LocationOf(runnable)) {
    activity.kind = Activity::Kind::kCallback;
    activity.location = *watched;
  }
  if (progress_ != nullptr) {
    if (task != nullptr) {
      progress_->BeginStep(activity.location, task->number(), task->given_name());
    } else {
      progress_->BeginCallback(activity.location);
    }
  }

  if (instruments_.empty() && !loop_->debug()) {
    runnable->Run();
  } else if (task != nullptr) {
    activity.task = TaskRef(task);  // It may end, and go.
    RunStep(task, activity);
  } else {
    Tell([&](Instrument& instrument) { instrument.RunBegins(activity); });
    RunTimed(runnable, activity);
    Tell([&](Instrument& instrument) { instrument.RunEnds(activity); });
  }

  if (progress_ != nullptr) progress_->End();
}

void Observation::RunStep(TaskState* task, const Activity& activity) {
  const bool is_first = !task->has_started();
  const bool will_start = !is_first || !task->has_pending_cancellation();
  Tell([&](Instrument& instrument) {
    instrument.RunBegins(activity);
    if (!will_start) return;
    is_first ? instrument.TaskStarts(activity.task) : instrument.TaskWakes(activity.task);
  });
  RunTimed(task, activity);
  Tell([&](Instrument& instrument) {
    task->done() ? instrument.TaskEnds(activity.task) : instrument.TaskWaits(activity.task);
    instrument.RunEnds(activity);
  });
}

void Observation::RunTimed(Runnable* runnable, const Activity& activity) {
  if (!loop_->debug()) return runnable->Run();
  const TimePoint start = loop_->Now();
  runnable->Run();
  const absl::Duration taken = loop_->Now() - start;
  if (taken < loop_->slow_callback_duration()) return;
  std::string text = absl::StrFormat("Executing %s took %.3f seconds", activity.ToString(),
                                     absl::ToDoubleSeconds(taken));
  if (activity.task) absl::StrAppend(&text, "\n  went on from: ", ToString(activity.location));
  Log(LogSeverity::kWarning, text);
}

bool Observation::IsSlot(const Runnable* runnable) {
  const auto [found, is_new] = is_slot_.try_emplace(runnable->run_fn(), false);
  if (is_new) found->second = CallbackSlot::IsSlot(runnable);
  return found->second;
}

}  // namespace internal
}  // namespace weft
