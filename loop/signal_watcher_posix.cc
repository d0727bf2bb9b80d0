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
#include "weft/core/context.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/loop/signal_watcher.h"

namespace weft::internal {
namespace {

// Who hears of a signal.
struct Listener {
  std::atomic<bool> came{false};
  std::atomic<bool>* any_pending = nullptr;
  LoopShared* shared = nullptr;
};

std::atomic<Listener*> listeners[NSIG];
std::atomic<int> running_handlers{0};

void OnSignal(int signal) {
  const int saved_errno = errno;
  running_handlers.fetch_add(1, std::memory_order_seq_cst);
  if (Listener* listener = listeners[signal].load(std::memory_order_seq_cst)) {
    listener->came.store(true, std::memory_order_release);
    listener->any_pending->store(true, std::memory_order_release);
    // Not only if it sleeps: it may be about to.
    listener->shared->Wake();
  }
  running_handlers.fetch_sub(1, std::memory_order_seq_cst);
  errno = saved_errno;
}

void ClearListener(int signal) {
  listeners[signal].store(nullptr, std::memory_order_seq_cst);
  while (running_handlers.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

// Static initialisation happens on the main thread.
const std::thread::id main_thread = std::this_thread::get_id();

bool IsMainThread() { return std::this_thread::get_id() == main_thread; }

}  // namespace

struct SignalWatcher::Watched {
  Listener listener;
  absl::AnyInvocable<void()> callback;
  SourceLocation location;
  ContextRef context;  // The context variables of whoever added it.
  bool removed = false;
};

SignalWatcher::SignalWatcher(Scheduler* scheduler, std::shared_ptr<LoopShared> shared)
    : scheduler_(scheduler), shared_(std::move(shared)) {}

SignalWatcher::~SignalWatcher() { Close(); }

absl::Status SignalWatcher::Add(int signal, absl::AnyInvocable<void()> callback,
                                const SourceLocation& location) {
  if (signal < 1 || signal >= NSIG) {
    throw ValueError(absl::StrCat("signal number out of range: ", signal));
  }
  if (!IsMainThread()) {
    throw RuntimeError("add_signal_handler() can only be called from the main thread");
  }
  auto watched = std::make_shared<Watched>();
  watched->callback = std::move(callback);
  watched->location = location;
  watched->context = scheduler_->current_context();
  watched->listener.any_pending = &pending_;
  watched->listener.shared = shared_.get();

  struct sigaction action = {};
  action.sa_handler = &OnSignal;
  action.sa_flags = SA_RESTART;  // System calls of others are not interrupted.
  ::sigfillset(&action.sa_mask);
  Listener* const previous = listeners[signal].exchange(&watched->listener);
  if (::sigaction(signal, &action, nullptr) != 0) {
    const int error = errno;
    listeners[signal].store(previous);
    if (error == EINVAL) throw RuntimeError(absl::StrCat("sig ", signal, " cannot be caught"));
    return absl::ErrnoToStatus(error, absl::StrCat("sigaction for signal ", signal));
  }
  while (running_handlers.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  std::shared_ptr<Watched>& place = watched_[signal];
  if (place != nullptr) {
    place->removed = true;
    // A signal that came for the old one is the new one's.
    if (place->listener.came.load()) watched->listener.came.store(true);
  }
  place = std::move(watched);
  return absl::OkStatus();
}

bool SignalWatcher::Remove(int signal) {
  auto found = watched_.find(signal);
  if (found == watched_.end()) return false;
  if (listeners[signal].load() == &found->second->listener) {
    ::signal(signal, SIG_DFL);
    ClearListener(signal);
  }
  found->second->removed = true;
  watched_.erase(found);
  return true;
}

void SignalWatcher::QueuePending() {
  pending_.store(false, std::memory_order_seq_cst);
  for (auto& [signal, watched] : watched_) {
    if (!watched->listener.came.exchange(false, std::memory_order_acq_rel)) continue;
    CallbackSlot* slot = scheduler_->MakeCallback(
        [watched = watched] {
          if (watched->removed) return;
          watched->callback();
        },
        watched->location);
    slot->context() = watched->context;
    scheduler_->ready().PushBack(slot);
  }
}

void SignalWatcher::Close() {
  while (!watched_.empty()) Remove(watched_.begin()->first);
}

bool SignalWatcher::MayHandleInterrupt() {
  if (!IsMainThread()) return false;
  struct sigaction current;
  return ::sigaction(SIGINT, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         current.sa_handler == SIG_DFL;
}

}  // namespace weft::internal
