// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What Windows has of signals: the events of the console, which come on a thread that the
// system makes for each, and what the program itself raises by raise(3).
//
//   SIGINT    Ctrl-C
//   SIGBREAK  Ctrl-Break; also what a parent sends to a process group
//   SIGTERM   the console is closed, the user logs off, the machine goes down; the system
//             leaves the program some seconds
//
// As with POSIX, all that a handler touches is in a static table of atomics, and whoever
// clears an entry waits until no handler is running.

#include <windows.h>
// Behind it.
#include <signal.h>

#include <atomic>
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

enum class Delivery { kNobody, kDelivered, kStuck };

Delivery Deliver(int signal) {
  running_handlers.fetch_add(1, std::memory_order_seq_cst);
  SignalMailbox* const mailbox = mailboxes[signal].load(std::memory_order_seq_cst);
  Delivery delivery = Delivery::kNobody;
  if (mailbox != nullptr) {
    delivery = mailbox->Deliver(signal) ? Delivery::kDelivered : Delivery::kStuck;
  }
  running_handlers.fetch_sub(1, std::memory_order_seq_cst);
  return delivery;
}

// FALSE: whoever comes next, in the end the system, which ends the program.
BOOL WINAPI OnConsoleEvent(DWORD event) {
  switch (event) {
    case CTRL_C_EVENT:
      return Deliver(SIGINT) == Delivery::kDelivered;
    case CTRL_BREAK_EVENT:
      return Deliver(SIGBREAK) == Delivery::kDelivered;
    case CTRL_CLOSE_EVENT:
    case CTRL_LOGOFF_EVENT:
    case CTRL_SHUTDOWN_EVENT:
      if (Deliver(SIGTERM) != Delivery::kDelivered) return FALSE;
      // The program is ended when this returns. It has the time that the system gives it.
      ::Sleep(INFINITE);
      return TRUE;
    default:
      return FALSE;
  }
}

// By raise(3), which has set the disposition back to the default.
void OnRaised(int signal) {
  if (Deliver(signal) == Delivery::kStuck) {
    ::raise(signal);
    return;
  }
  ::signal(signal, &OnRaised);
}

void WaitForHandlers() {
  while (running_handlers.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

// Static initialisation happens on the main thread.
const std::thread::id main_thread = std::this_thread::get_id();

bool IsMainThread() { return std::this_thread::get_id() == main_thread; }

bool IsKnown(int signal) { return signal == SIGINT || signal == SIGBREAK || signal == SIGTERM; }

class WindowsSignals final : public Signals {
 public:
  absl::Status Watch(int signal, SignalMailbox* mailbox) override {
    if (signal < 1 || signal >= internal::kSignalEnd) {
      throw ValueError(absl::StrCat("signal number out of range: ", signal));
    }
    if (!IsMainThread()) {
      throw RuntimeError("signals can only be handled on the main thread");
    }
    if (!IsKnown(signal)) {
      return absl::UnimplementedError(absl::StrCat(
          "signal ", signal,
          ": Windows has SIGINT (Ctrl-C), SIGBREAK (Ctrl-Break) and SIGTERM (the console is "
          "closed), and no other that a program could wait for"));
    }
    mailboxes[signal].store(mailbox, std::memory_order_seq_cst);
    const auto before = ::signal(signal, &OnRaised);
    if (before != &OnRaised) originals_[signal] = before;
    // Behind that: the C library has a handler of its own, and the last one comes first.
    ::SetConsoleCtrlHandler(&OnConsoleEvent, FALSE);
    ::SetConsoleCtrlHandler(&OnConsoleEvent, TRUE);
    WaitForHandlers();
    return absl::OkStatus();
  }

  void Unwatch(int signal, SignalMailbox* mailbox) override {
    if (mailboxes[signal].load() != mailbox) return;
    // Somebody else's, set since, is left alone.
    const auto now = ::signal(signal, originals_[signal]);
    if (now != &OnRaised) ::signal(signal, now);
    mailboxes[signal].store(nullptr, std::memory_order_seq_cst);
    WaitForHandlers();
  }

  // Of handlers for the console nobody can tell whether there are any.
  bool MayWatchInterrupt() override {
    if (!IsMainThread()) return false;
    const auto now = ::signal(SIGINT, SIG_DFL);
    if (now == SIG_DFL) return true;
    ::signal(SIGINT, now);
    return false;
  }

 private:
  using Handler = void (*)(int);

  Handler originals_[NSIG] = {};
};

}  // namespace

Signals* SystemSignals() {
  static WindowsSignals signals;
  return &signals;
}

}  // namespace weft
