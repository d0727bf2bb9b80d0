// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_SIGNAL_WATCHER_H_
#define WEFT_LOOP_SIGNAL_WATCHER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/loop/loop_ref.h"
#include "weft/loop/signals.h"

namespace weft::internal {

// Hears of signals as the loop collects them, before any callback of that round.
class SignalListener {
 public:
  virtual void OnSignal(int signal) = 0;

 protected:
  ~SignalListener() = default;
};

// The signals that a loop handles. What the system calls does no more than leave the
// signal in a mailbox and wake the loop; the callback is an ordinary one, queued
// with what other threads posted, once for each time that the signal came.
//
// For each signal there are one handler, any number of listeners, and a fallback,
// a listener that hears of it only while there is neither of the others: Run()'s, for
// SIGINT.
//
// A signal belongs to the loop that handled it last; several loops of the main
// thread, one after the other, do not get in each other's way.
//
// Threads: the loop's.
class SignalWatcher {
 public:
  SignalWatcher(Scheduler* scheduler, std::shared_ptr<LoopShared> shared, Signals* signals);
  ~SignalWatcher();

  // See EventLoop::AddSignalHandler().
  absl::Status Add(int signal, absl::AnyInvocable<void()> callback, const SourceLocation& location);
  bool Remove(int signal);

  // The caller removes `listener` before it goes. Errors: as Add().
  absl::Status AddListener(int signal, SignalListener* listener);
  void RemoveListener(int signal, SignalListener* listener);

  // While it is asked, a third signal that the loop has not looked at does what it
  // does without us. Errors: as Add().
  absl::Status SetFallback(int signal, SignalListener* fallback);
  // It still hears of those that came until now, and of no others: none is lost.
  void ClearFallback(int signal);

  // True if a signal came since the last call of QueuePending(). One load.
  bool has_pending() const { return mailbox_.has_pending(); }
  void QueuePending();

  // What is watched, in words: "<handler of signal 15 created at a.cc:12>".
  std::vector<std::string> DescribeAll() const;

  // Restores the dispositions of all signals.
  void Close();

  // Whether nobody handles SIGINT in this process, and this is the main thread:
  // Run() may then handle it.
  bool MayHandleInterrupt() const { return signals_->MayWatchInterrupt(); }

 private:
  struct Callback;
  struct Watched {
    std::shared_ptr<Callback> handler;
    SignalListener* fallback = nullptr;
    std::vector<SignalListener*> listeners;
  };

  std::shared_ptr<Callback> MakeCallback(absl::AnyInvocable<void()> callback,
                                         const SourceLocation& location) const;
  absl::Status Watch(int signal);
  void Update(int signal);
  void Queue(const std::shared_ptr<Callback>& callback);

  Scheduler* const scheduler_;
  Signals* const signals_;
  SignalMailbox mailbox_;
  std::map<int, Watched> watched_;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_SIGNAL_WATCHER_H_
