// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_SIGNALS_H_
#define WEFT_LOOP_SIGNALS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "weft/loop/loop_ref.h"

namespace weft {

namespace internal {

// One more than the highest number of a signal.
inline constexpr int kSignalEnd = 65;

// Where a loop's signals are left, in the order in which they came and each as often
// as it came, until the loop looks: by a signal handler, which may interrupt anything
// and may call next to nothing.
//
// A ring of bytes: a handler takes a place by advancing the head, then writes to it.
// The loop reads up to the first place that is not written yet; whoever is about to
// write there wakes it afterwards. What does not fit is counted by number, and comes
// behind the others.
//
// Threads: Deliver() on any thread and in signal handlers, the rest on the loop's.
class SignalMailbox {
 public:
  explicit SignalMailbox(std::shared_ptr<LoopShared> shared) : shared_(std::move(shared)) {}
  SignalMailbox(const SignalMailbox&) = delete;

  // Leaves `signal`, and wakes the loop. False if `signal` is the urgent one and this
  // is the third that the loop has not looked at: then it is stuck.
  bool Deliver(int signal) noexcept;

  // True if a signal came since the last Open(). One load.
  bool has_pending() const { return pending_.load(std::memory_order_relaxed); }

  // Takes the oldest; 0 if there is none. Open() comes first.
  void Open();
  int Take();

  // 0: none is.
  void set_urgent(int signal) { urgent_.store(signal, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kRing = 256;
  static constexpr int kPatience = 2;

  const std::shared_ptr<LoopShared> shared_;
  std::atomic<bool> pending_{false};
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> tail_{0};
  std::atomic<uint8_t> ring_[kRing] = {};
  std::atomic<uint32_t> overflow_[kSignalEnd] = {};
  std::atomic<int> urgent_{0};
  std::atomic<int> unanswered_{0};
  static_assert(std::atomic<uint32_t>::is_always_lock_free &&
                std::atomic<uint8_t>::is_always_lock_free);
};

}  // namespace internal

// Signals
//
// Where a loop gets signals from. `Environment::signals` replaces the system's: a test
// then says itself when one comes, by `SignalMailbox::Deliver()`.
//
// Threads: that of the loop, which for `SystemSignals()` is the main thread.
class Signals {
 public:
  virtual ~Signals() = default;

  // Has `signal` left in `mailbox` from now on, instead of wherever it went before.
  // Errors: ValueError if there is no such signal; RuntimeError "sig 9 cannot be
  // caught", and on a thread that cannot have them.
  virtual absl::Status Watch(int signal, internal::SignalMailbox* mailbox) = 0;

  // Ends it, unless another mailbox has taken its place: what happened to `signal`
  // before the first Watch() happens again. When it returns, `mailbox` is not in use.
  virtual void Unwatch(int signal, internal::SignalMailbox* mailbox) = 0;

  // Whether Run() may take SIGINT: nobody handles it, and this is the right thread.
  virtual bool MayWatchInterrupt() = 0;
};

// Those of the process. Lives as long as the program.
Signals* SystemSignals();

}  // namespace weft

#endif  // WEFT_LOOP_SIGNALS_H_
