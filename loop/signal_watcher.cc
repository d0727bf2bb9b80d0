// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/signal_watcher.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/context.h"
#include "weft/core/errors.h"

namespace weft::internal {

// -- SignalMailbox.

bool SignalMailbox::Deliver(int signal) noexcept {
  while (true) {
    // In this order, for the head never falls behind the tail.
    const uint32_t tail = tail_.load(std::memory_order_acquire);
    uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - tail >= kRing) {
      overflow_[signal].fetch_add(1, std::memory_order_relaxed);
      break;
    }
    if (head_.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) {
      ring_[head % kRing].store(static_cast<uint8_t>(signal), std::memory_order_release);
      break;
    }
  }
  pending_.store(true, std::memory_order_release);
  shared_->Wake();  // Not only if it sleeps: it may be about to.
  return urgent_.load(std::memory_order_relaxed) != signal ||
         unanswered_.fetch_add(1, std::memory_order_relaxed) < kPatience;
}

void SignalMailbox::Open() {
  pending_.exchange(false, std::memory_order_acq_rel);
  unanswered_.store(0, std::memory_order_relaxed);
}

int SignalMailbox::Take() {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (const int signal = ring_[tail % kRing].exchange(0, std::memory_order_acquire)) {
    tail_.store(tail + 1, std::memory_order_release);
    return signal;
  }
  for (int signal = 1; signal < kSignalEnd; ++signal) {
    if (overflow_[signal].load(std::memory_order_relaxed) == 0) continue;
    overflow_[signal].fetch_sub(1, std::memory_order_relaxed);
    return signal;
  }
  return 0;
}

// -- SignalWatcher.

struct SignalWatcher::Callback {
  absl::AnyInvocable<void()> function;
  SourceLocation location;
  ContextRef context;  // The context variables of whoever added it.
  bool removed = false;
};

SignalWatcher::SignalWatcher(Scheduler* scheduler, std::shared_ptr<LoopShared> shared,
                             Signals* signals)
    : scheduler_(scheduler), signals_(signals), mailbox_(std::move(shared)) {}

SignalWatcher::~SignalWatcher() { Close(); }

std::shared_ptr<SignalWatcher::Callback> SignalWatcher::MakeCallback(
    absl::AnyInvocable<void()> callback, const SourceLocation& location) const {
  auto made = std::make_shared<Callback>();
  made->function = std::move(callback);
  made->location = location;
  made->context = scheduler_->current_context();
  return made;
}

// Begins to watch `signal`, unless this loop does.
absl::Status SignalWatcher::Watch(int signal) {
  absl::Status status = signals_->Watch(signal, &mailbox_);
  if (status.ok()) watched_.try_emplace(signal);
  return status;
}

// Watches `signal` no more if nobody is left who wants to hear of it.
void SignalWatcher::Update(int signal) {
  const auto found = watched_.find(signal);
  const Watched& watched = found->second;
  const bool is_asked = watched.handler != nullptr || !watched.listeners.empty();
  if (watched.fallback != nullptr) mailbox_.set_urgent(is_asked ? 0 : signal);
  if (is_asked || watched.fallback != nullptr) return;
  watched_.erase(found);
  signals_->Unwatch(signal, &mailbox_);
}

absl::Status SignalWatcher::Add(int signal, absl::AnyInvocable<void()> callback,
                                const SourceLocation& location) {
  if (callback == nullptr) throw ValueError("callback: a callable was expected, got an empty one");
  std::shared_ptr<Callback> handler = MakeCallback(std::move(callback), location);
  absl::Status status = Watch(signal);
  if (!status.ok()) return status;
  std::swap(watched_[signal].handler, handler);
  if (handler != nullptr) handler->removed = true;
  Update(signal);
  return status;
}

bool SignalWatcher::Remove(int signal) {
  const auto found = watched_.find(signal);
  if (found == watched_.end() || found->second.handler == nullptr) return false;
  found->second.handler->removed = true;
  const std::shared_ptr<Callback> removed = std::move(found->second.handler);
  found->second.handler = nullptr;
  Update(signal);
  return true;
}

absl::Status SignalWatcher::AddListener(int signal, SignalListener* listener) {
  absl::Status status = Watch(signal);
  if (!status.ok()) return status;
  watched_[signal].listeners.push_back(listener);
  Update(signal);
  return status;
}

void SignalWatcher::RemoveListener(int signal, SignalListener* listener) {
  const auto found = watched_.find(signal);
  if (found == watched_.end()) return;
  std::vector<SignalListener*>& listeners = found->second.listeners;
  listeners.erase(std::remove(listeners.begin(), listeners.end(), listener), listeners.end());
  Update(signal);
}

absl::Status SignalWatcher::SetFallback(int signal, SignalListener* fallback) {
  absl::Status status = Watch(signal);
  if (!status.ok()) return status;
  watched_[signal].fallback = fallback;
  Update(signal);
  return status;
}

void SignalWatcher::ClearFallback(int signal) {
  const auto found = watched_.find(signal);
  if (found == watched_.end() || found->second.fallback == nullptr) return;
  mailbox_.set_urgent(0);
  const Watched& watched = found->second;
  // In this order: after Unwatch() no more come, and before it some may have.
  if (watched.handler == nullptr && watched.listeners.empty()) {
    signals_->Unwatch(signal, &mailbox_);
  }
  if (has_pending()) QueuePending();
  found->second.fallback = nullptr;
  Update(signal);
}

void SignalWatcher::Queue(const std::shared_ptr<Callback>& callback) {
  CallbackSlot* slot = scheduler_->MakeCallback(
      [callback] {
        if (callback->removed) return;
        callback->function();
      },
      callback->location);
  slot->set_context(callback->context);
  scheduler_->ready().PushBack(slot);
}

void SignalWatcher::QueuePending() {
  mailbox_.Open();
  while (const int signal = mailbox_.Take()) {
    const auto found = watched_.find(signal);
    if (found == watched_.end()) continue;  // It came, and then nobody wanted it.
    const Watched& watched = found->second;
    if (watched.handler != nullptr) {
      Queue(watched.handler);
    } else if (watched.listeners.empty()) {
      watched.fallback->OnSignal(signal);
    }
    for (SignalListener* listener : watched.listeners) listener->OnSignal(signal);
  }
}

std::vector<std::string> SignalWatcher::DescribeAll() const {
  std::vector<std::string> texts;
  for (const auto& [signal, watched] : watched_) {
    if (watched.handler == nullptr) continue;
    texts.push_back(absl::StrCat("<handler of signal ", signal, " created at ",
                                 ToString(watched.handler->location), ">"));
  }
  return texts;
}

void SignalWatcher::Close() {
  for (auto& [signal, watched] : watched_) {
    if (watched.handler != nullptr) watched.handler->removed = true;
    signals_->Unwatch(signal, &mailbox_);
  }
  const std::map<int, Watched> removed = std::move(watched_);
  watched_.clear();
}

}  // namespace weft::internal
