// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/as_completed.h"

#include <coroutine>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/outcome.h"

namespace weft::internal {

// Waits until something may be in the queue. As at the getters of asyncio's
// Queue, nothing is handed over: who wakes looks again.
class CompletionQueue::ItemAwaiter : public Waiter {
 public:
  explicit ItemAwaiter(CompletionQueue* queue) : queue_(queue) {}

  bool await_ready() const { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    Begin(handle);
    queue_->consumers_.PushBack(this);
  }
  void await_resume() {
    Unlink();
    if (!End()) return;
    // Woken and then cancelled: what it was woken for is the next one's.
    if (was_woken() && queue_->taken_ < queue_->done_.size()) queue_->WakeConsumer();
    std::rethrow_exception(task()->cancelled_error());
  }
  std::string Description() const override {
    DescribedList futures;
    for (size_t i = 0; i < queue_->count_; ++i) {
      if (queue_->entries_[i].is_waiting) futures.Add(*queue_->entries_[i].future);
    }
    return absl::StrCat("<AsCompleted>", futures.text());
  }
  Outcome<void> await_outcome() {
    Outcome<void> outcome;
    try {
      await_resume();
      outcome.Emplace();
    } catch (...) {
      outcome.SetCurrentException();
    }
    return outcome;
  }

 private:
  CompletionQueue* queue_;
};

CompletionQueue::CompletionQueue(Scheduler* scheduler, std::vector<FutureStateRef> futures,
                                 absl::Duration timeout)
    : Timer(&OnTimeout),
      scheduler_(scheduler),
      count_(futures.size()),
      entries_(std::make_unique<Entry[]>(count_)) {
  for (const FutureStateRef& future : futures) {
    if (future->scheduler() == scheduler->core()) continue;
    throw ValueError(
        "The future belongs to a different loop than the one specified as the loop argument");
  }
  done_.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    Entry& entry = entries_[i];
    entry.owner = this;
    entry.future = std::move(futures[i]);
    if (!entry.future->Mark()) continue;
    entry.is_waiting = true;
    ++waiting_;
    // What is done already comes a round later all the same.
    (entry.future->done() ? scheduler->ready() : entry.future->waiters()).PushBack(&entry);
  }
  for (size_t i = 0; i < count_; ++i) entries_[i].future->Unmark();
  left_ = waiting_;
  if (left_ > 0 && timeout < absl::InfiniteDuration()) {
    scheduler->Arm(this, scheduler->Now() + timeout);
  }
}

CompletionQueue::~CompletionQueue() {
  StopTimer();
  for (size_t i = 0; i < count_; ++i) entries_[i].Unlink();
}

Coro<size_t> CompletionQueue::Next() {
  --left_;
  while (taken_ == done_.size()) co_await ItemAwaiter(this);
  co_return done_[taken_++];
}

void CompletionQueue::OnDone(Runnable* runnable) {
  auto* entry = static_cast<Entry*>(runnable);
  CompletionQueue* queue = entry->owner;
  entry->is_waiting = false;
  if (--queue->waiting_ == 0) queue->StopTimer();
  queue->Put(entry - queue->entries_.get());
}

void CompletionQueue::OnTimeout(Runnable* runnable) {
  auto* queue = static_cast<CompletionQueue*>(runnable);
  for (size_t i = 0; i < queue->count_; ++i) {
    Entry& entry = queue->entries_[i];
    if (!entry.is_waiting) continue;
    entry.is_waiting = false;
    entry.Unlink();
    queue->Put(kTimedOut);
  }
  queue->waiting_ = 0;
}

void CompletionQueue::StopTimer() {
  if (is_armed()) {
    scheduler_->Disarm(this);
  } else {
    Unlink();
  }
}

void CompletionQueue::Put(size_t index) {
  done_.push_back(index);
  WakeConsumer();
}

void CompletionQueue::WakeConsumer() {
  for (Waiter* waiter = consumers_.front(); waiter != nullptr; waiter = consumers_.Next(waiter)) {
    if (waiter->Wake()) return;
  }
}

}  // namespace weft::internal
