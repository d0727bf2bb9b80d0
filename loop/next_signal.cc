// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/next_signal.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/loop/event_loop.h"

namespace weft {

using internal::kSignalEnd;

void SignalSet::Add(int signal) {
  if (signal < 1 || signal >= kSignalEnd) {
    throw ValueError(absl::StrCat("signal number out of range: ", signal));
  }
  bits_ |= uint64_t{1} << (signal - 1);
}

SignalReceiver::SignalReceiver(SignalSet signals)
    : core_(GetRunningLoop().core()), signals_(signals) {
  if (signals.empty()) throw ValueError("signals: there are none");
  for (int signal = 1; signal < kSignalEnd; ++signal) {
    if (!signals_.Contains(signal)) continue;
    try {
      absl::Status added = GetRunningLoop().signal_watcher().AddListener(signal, this);
      if (!added.ok()) throw RuntimeError(std::string(added.message()));
    } catch (...) {
      Stop(signal);
      throw;
    }
  }
}

SignalReceiver::~SignalReceiver() { Stop(kSignalEnd); }

// Receives none of those before `end` any more.
void SignalReceiver::Stop(int end) {
  if (core_->owner == nullptr) return;
  internal::SignalWatcher& watcher = static_cast<EventLoop*>(core_->owner)->signal_watcher();
  for (int signal = 1; signal < end; ++signal) {
    if (signals_.Contains(signal)) watcher.RemoveListener(signal, this);
  }
}

int SignalReceiver::TryNext() {
  if (unreceived_.empty()) return 0;
  const int signal = unreceived_.front();
  unreceived_.pop_front();
  return signal;
}

void SignalReceiver::OnSignal(int signal) {
  if (!HandOver(signal)) unreceived_.push_back(signal);
}

bool SignalReceiver::HandOver(int signal) {
  internal::Waiter* waiter = waiters_.WakeFirst();
  if (waiter == nullptr) return false;
  static_cast<internal::NextSignalAwaiter*>(waiter)->signal_ = signal;
  return true;
}

// The task was cancelled after it was woken: what for is another's now.
void internal::NextSignalAwaiter::GiveBack() {
  if (signal_ == 0 || receiver_->HandOver(signal_)) return;
  receiver_->unreceived_.push_front(signal_);
}

Coro<int> NextSignal(SignalSet signals) {
  SignalReceiver receiver(signals);
  co_return co_await receiver.Next();
}

}  // namespace weft
