// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_SIGNAL_WATCHER_H_
#define WEFT_LOOP_SIGNAL_WATCHER_H_

#include <atomic>
#include <map>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/loop/loop_ref.h"

namespace weft::internal {

// The signals that a loop handles. The handler that the system calls does no
// more than mark the signal and wake the loop; the callback is an ordinary one,
// queued with what other threads posted.
//
// A signal belongs to the loop that handled it last; several loops of the main
// thread, one after the other, do not get in each other's way.
//
// Threads: the main thread, which is that of the loop.
class SignalWatcher {
 public:
  SignalWatcher(Scheduler* scheduler, std::shared_ptr<LoopShared> shared);
  ~SignalWatcher();

  // See EventLoop::AddSignalHandler().
  absl::Status Add(int signal, absl::AnyInvocable<void()> callback, const SourceLocation& location);
  bool Remove(int signal);

  // True if a signal came since the last call of QueuePending(). One load.
  bool has_pending() const { return pending_.load(std::memory_order_relaxed); }
  void QueuePending();

  // Restores the dispositions of all signals.
  void Close();

  // Whether nobody handles SIGINT in this process, and this is the main thread:
  // Run() may then handle it.
  static bool MayHandleInterrupt();

 private:
  struct Watched;

  Scheduler* const scheduler_;
  const std::shared_ptr<LoopShared> shared_;
  std::atomic<bool> pending_{false};
  std::map<int, std::shared_ptr<Watched>> watched_;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_SIGNAL_WATCHER_H_
