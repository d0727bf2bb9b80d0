// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/watchdog.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/loop/stack_sampler.h"

namespace weft {
namespace {

constexpr absl::Duration kPatienceForStack = absl::Seconds(1);

const WatchdogOptions& Checked(const WatchdogOptions& options) {
  if (options.limit <= absl::ZeroDuration()) throw ValueError("limit: must be positive");
  if (options.dump_interval <= absl::ZeroDuration()) {
    throw ValueError("dump_interval: must be positive");
  }
  if (options.stack_signal != 0) {
    const absl::Status prepared = internal::StackSampler::Prepare(options.stack_signal);
    if (!prepared.ok()) throw ValueError(absl::StrCat("stack_signal: ", prepared.ToString()));
  }
  return options;
}

std::string Indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const size_t end = std::min(lines.find('\n'), lines.size());
    absl::StrAppend(&text, "\n  ", lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

}  // namespace

std::string BlockedLoop::ToString() const {
  std::string text =
      absl::StrCat("The loop has been blocked for ", absl::FormatDuration(blocked_for), " by ");
  if (!task.empty()) {
    absl::StrAppend(&text, "task '", task, "', which went on from ", weft::ToString(location),
                    " in ", FunctionName(location));
  } else if (location.line() != 0) {
    absl::StrAppend(&text, "a callback created at ", weft::ToString(location));
  } else {
    absl::StrAppend(&text, "something of its own");
  }
  return absl::StrCat(text, Indented(stack));
}

Watchdog::Watchdog(EventLoop& loop, WatchdogOptions options)
    : options_(Checked(options)),
      loop_(&loop),
      ref_(loop.Ref()),
      progress_(loop.observation().Publish()),
      next_report_(options_.limit) {
  loop.owned().Watch(&loop_end_);
  thread_ = std::thread([this] { Watch(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
  if (!loop_end_.closed) loop_->observation().EndPublish();
}

void Watchdog::Watch() {
  // Not for ever: that is more than wait_for() can add to the time.
  const absl::Duration interval =
      std::min({options_.limit / 4, options_.dump_interval, absl::Hours(1)});
  TimePoint next_dump = SteadyClock::Read() + options_.dump_interval;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_.wait_for(lock, absl::ToChronoNanoseconds(interval), [this] { return stopping_; })) {
    lock.unlock();
    const TimePoint now = SteadyClock::Read();
    Look(now);
    if (now >= next_dump) {
      PostDump();
      next_dump = now + options_.dump_interval;
    }
    lock.lock();
  }
}

void Watchdog::Look(TimePoint now) {
  const internal::LoopProgress::Snapshot snapshot = progress_->Read();
  if (!snapshot.is_busy() || snapshot.sequence != seen_) {
    seen_ = snapshot.sequence;
    since_ = now;
    next_report_ = options_.limit;
    return;
  }
  if (now - since_ < next_report_) return;
  if (options_.dump_when_unblocked && next_report_ == options_.limit) PostDump();
  next_report_ = (now - since_) * 2;
  Report(snapshot, now);
}

void Watchdog::Report(const internal::LoopProgress::Snapshot& snapshot, TimePoint now) {
  BlockedLoop blocked;
  blocked.blocked_for = now - since_;
  blocked.since = since_;
  blocked.location = snapshot.location;
  if (snapshot.is_step) {
    blocked.task = snapshot.task_number != 0 ? absl::StrCat("Task-", snapshot.task_number)
                                             : snapshot.task_name;
    if (blocked.task.empty()) blocked.task = "(no name)";
  }
  if (options_.stack_signal != 0) {
    absl::StatusOr<std::string> stack =
        internal::StackSampler::Take(snapshot.thread, options_.stack_signal, kPatienceForStack);
    blocked.stack = stack.ok() ? *std::move(stack) : stack.status().ToString();
  }
  if (options_.on_blocked != nullptr) {
    options_.on_blocked(blocked);
  } else {
    internal::Log(LogSeverity::kWarning, blocked.ToString());
  }
}

void Watchdog::PostDump() {
  try {
    ref_.Post([on_dump = options_.on_dump] {
      std::ostringstream out;
      GetRunningLoop().DumpTasks(out);
      if (on_dump != nullptr) {
        on_dump(out.str());
      } else {
        internal::Log(LogSeverity::kWarning, out.str());
      }
    });
  } catch (const RuntimeError&) {
    // The loop is closed.
  }
}

}  // namespace weft
