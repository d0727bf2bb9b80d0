// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Signals by sigaction(2). The handler may run on any thread at any time, so all
// that it touches is in one static table of atomics; what a table entry points
// to must not go away under it. So whoever clears an entry then waits until no
// handler is running: handlers take nanoseconds, and the thread that clears is
// not in one itself (signal-safety(7) forbids what would get us there).

#include <signal.h>

#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/loop/signals.h"

namespace weft {
namespace {

using internal::SignalMailbox;

static_assert(NSIG <= internal::kSignalEnd);

std::atomic<SignalMailbox*> mailboxes[NSIG];
std::atomic<int> running_handlers{0};

void OnSignal(int signal) {
  const int saved_errno = errno;
  running_handlers.fetch_add(1, std::memory_order_seq_cst);
  SignalMailbox* const mailbox = mailboxes[signal].load(std::memory_order_seq_cst);
  if (mailbox != nullptr && !mailbox->Deliver(signal)) {
    // What would happen without us; when this handler returns, for all signals are
    // blocked in it.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  running_handlers.fetch_sub(1, std::memory_order_seq_cst);
  errno = saved_errno;
}

void WaitForHandlers() {
  while (running_handlers.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

// Static initialisation happens on the main thread.
const std::thread::id main_thread = std::this_thread::get_id();

bool IsMainThread() { return std::this_thread::get_id() == main_thread; }

class PosixSignals final : public Signals {
 public:
  absl::Status Watch(int signal, SignalMailbox* mailbox) override {
    if (signal < 1 || signal >= NSIG) {
      throw ValueError(absl::StrCat("signal number out of range: ", signal));
    }
    if (!IsMainThread()) {
      throw RuntimeError("signals can only be handled on the main thread");
    }
    SignalMailbox* const previous = mailboxes[signal].exchange(mailbox);
    struct sigaction action = {};
    action.sa_handler = &OnSignal;
    action.sa_flags = SA_RESTART;  // System calls of others are not interrupted.
    sigfillset(&action.sa_mask);   // A macro, on macOS.
    struct sigaction before;
    if (::sigaction(signal, &action, &before) != 0) {
      const int error = errno;
      mailboxes[signal].store(previous);
      if (error == EINVAL) throw RuntimeError(absl::StrCat("sig ", signal, " cannot be caught"));
      return absl::ErrnoToStatus(error, absl::StrCat("sigaction for signal ", signal));
    }
    if (!IsOurs(before)) originals_[signal] = before;
    WaitForHandlers();
    return absl::OkStatus();
  }

  void Unwatch(int signal, SignalMailbox* mailbox) override {
    if (mailboxes[signal].load() != mailbox) return;
    struct sigaction now;
    // Somebody else's, set since, is left alone.
    if (::sigaction(signal, nullptr, &now) == 0 && IsOurs(now)) {
      ::sigaction(signal, &originals_[signal], nullptr);
    }
    mailboxes[signal].store(nullptr, std::memory_order_seq_cst);
    WaitForHandlers();
  }

  bool MayWatchInterrupt() override {
    struct sigaction now;
    return IsMainThread() && ::sigaction(SIGINT, nullptr, &now) == 0 &&
           (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
  }

 private:
  static bool IsOurs(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &OnSignal;
  }

  struct sigaction originals_[NSIG] = {};
};

}  // namespace

Signals* SystemSignals() {
  static PosixSignals signals;
  return &signals;
}

}  // namespace weft
