// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_WATCHDOG_H_
#define WEFT_LOOP_WATCHDOG_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/time/time.h"
#include "weft/core/source_location.h"
#include "weft/core/time_point.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/loop_owned.h"
#include "weft/loop/loop_progress.h"

namespace weft {

// BlockedLoop
//
// What a watchdog has found: a callback, or a step of a task, that does not end.
struct BlockedLoop {
  BlockedLoop() {}

  // For how long, as far as the watchdog has seen; a bit more in truth.
  absl::Duration blocked_for;
  TimePoint since;  // On the SteadyClock.

  // The task's name, of which 64 characters are kept; empty for a callback.
  std::string task;
  // Of a task, the await at which it went on, at first its coroutine's definition;
  // of a callback, where it was scheduled. Line 0: something of the loop's own.
  SourceLocation location;

  // Where the thread is, a line a frame, if that was asked for; or why not.
  std::string stack;

  // "The loop has been blocked for 1.25s by task 'Task-3', which went on from
  // server.cc:41 in Serve", and the stack.
  std::string ToString() const;
};

// What a watchdog is made with.
struct WatchdogOptions {
  WatchdogOptions() {}

  // How long one callback may take, in real time. It is reported a bit later than
  // that, and again whenever it has taken twice as long.
  absl::Duration limit = absl::Seconds(1);

  // Is told of a blocked loop, on the watchdog's thread; null: a warning in the log.
  // It must not throw.
  std::function<void(const BlockedLoop& blocked)> on_blocked;

  // Has all tasks dumped (DumpTasks()) so often; each dump also when the loop goes
  // on after it was blocked, if `dump_when_unblocked`.
  absl::Duration dump_interval = absl::InfiniteDuration();
  bool dump_when_unblocked = false;

  // Is given the dumps, on the loop's thread; null: a warning in the log.
  std::function<void(std::string_view dump)> on_dump;

  // A signal by which the stack of a blocked loop is taken, SIGURG for example; 0:
  // none. It interrupts what the thread does: sleep(3) and its like end early, other
  // system calls go on. The signal is the watchdog's for the rest of the process's
  // life. Linux only.
  int stack_signal = 0;
};

// Watchdog
//
// A thread that sees whether a loop turns, and says what blocks it if not: the task
// or callback by name and place. As a loop that is blocked cannot tell, it publishes
// what it begins, in a few atomics, and the watchdog looks at those four times in
// each `limit`.
//
//   Coro<int> Main() {
//     Watchdog watchdog(GetRunningLoop());
//     co_return co_await Serve();
//   }
//
// Cheap enough for production: a few nanoseconds for each callback, and a thread
// that hardly ever runs. Only what takes `limit` in one piece is found; for many short
// ones see EventLoop::Stats().
//
// Threads: made and destroyed on the loop's thread, before the loop is destroyed.
// Python: none; debug mode's slow callbacks, but while they are at it.
class Watchdog {
 public:
  // Errors: ValueError if `limit` or `dump_interval` is not positive, or `stack_signal`
  // cannot be used.
  explicit Watchdog(EventLoop& loop, WatchdogOptions options = WatchdogOptions());
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

 private:
  // Hears of the loop's end.
  struct LoopEnd final : internal::LoopOwned {
    void OnLoopClose() override { closed = true; }
    bool closed = false;
  };

  void Watch();
  void Look(TimePoint now);
  void Report(const internal::LoopProgress::Snapshot& snapshot, TimePoint now);
  void PostDump();

  const WatchdogOptions options_;
  EventLoop* const loop_;
  LoopEnd loop_end_;
  const LoopRef ref_;
  const std::shared_ptr<internal::LoopProgress> progress_;

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;

  // The watchdog's thread's.
  uint64_t seen_ = 0;  // The sequence of the last look.
  TimePoint since_;    // When it was seen first.
  absl::Duration next_report_;

  std::thread thread_;
};

}  // namespace weft

#endif  // WEFT_LOOP_WATCHDOG_H_
