// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/barrier.h"

#include <exception>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

// CPython builds this on a Condition. Nobody holds that one's lock across an
// await, so it is always free when it is asked for, and what is left of the
// condition is its list of waiters, with one rule: a waiter that is cancelled
// wakes the next, who looks, finds no reason to go on, and waits again at the
// back. That decides in which order the others go on, so it is kept.

namespace weft {

// A task inside the barrier.
class Barrier::Visit {
 public:
  explicit Visit(const internal::BackRef<Barrier>& barrier) : barrier_(barrier) {}
  Visit(const Visit&) = delete;
  ~Visit() {
    if (barrier_.get() != nullptr) barrier_.get()->Leave();
  }

 private:
  const internal::BackRef<Barrier>& barrier_;
};

Barrier::Barrier(int parties) : parties_(parties) {
  if (parties < 1) throw ValueError("parties must be > 0");
}

int Barrier::Pass() {
  if (Broken()) throw BrokenBarrierError();
  const int index = count_++;
  state_ = State::kDraining;
  waiters_.WakeAll();
  Leave();
  return index;
}

void Barrier::Leave() {
  if (--count_ > 0) return;
  if (state_ == State::kResetting || state_ == State::kDraining) state_ = State::kFilling;
  waiters_.WakeAll();
}

Coro<int> Barrier::WaitSlowly(Barrier* self) {
  internal::BackRef<Barrier> barrier(self, self->refs_);

  while (self->state_ == State::kDraining || self->state_ == State::kResetting) {
    internal::ListWait wait(&self->waiters_, "Barrier.Wait");
    Outcome<void> ended = co_await wait;
    if (!ended.has_value()) {
      if (barrier.get() != nullptr) self->waiters_.WakeFirst();
      std::rethrow_exception(ended.exception());
    }
    if (barrier.get() == nullptr) throw BrokenBarrierError();  // Woken, then it was destroyed.
  }
  if (self->CanPass()) co_return self->Pass();

  Visit visit(barrier);
  const int index = self->count_++;
  while (self->state_ == State::kFilling) {
    internal::ListWait wait(&self->waiters_, "Barrier.Wait");
    Outcome<void> ended = co_await wait;
    if (!ended.has_value()) {
      if (barrier.get() != nullptr) self->waiters_.WakeFirst();
      std::rethrow_exception(ended.exception());
    }
    if (barrier.get() == nullptr) co_return index;  // Woken, then it was destroyed.
  }
  if (self->state_ != State::kDraining) throw BrokenBarrierError("Abort or reset of barrier");
  co_return index;
}

void Barrier::Reset() {
  waiters_.CheckThread();
  state_ = count_ > 0 ? State::kResetting : State::kFilling;
  waiters_.WakeAll();
}

void Barrier::Abort() {
  waiters_.CheckThread();
  state_ = State::kBroken;
  waiters_.WakeAll();
}

std::string Barrier::ToString() const {
  static constexpr const char* kNames[] = {"filling", "draining", "resetting", "broken"};
  const std::string name = kNames[static_cast<int>(state_)];
  if (Broken()) return absl::StrCat("<Barrier [", name, "]>");
  return absl::StrCat("<Barrier [", name, ", waiters:", NWaiting(), "/", parties_, "]>");
}

namespace internal {

int BarrierAwaiter::await_resume() {
  return slow_.has_value() ? slow_->await_resume() : barrier_->Pass();
}

Outcome<int> BarrierAwaiter::await_outcome() {
  if (slow_.has_value()) return slow_->await_outcome();
  Outcome<int> outcome;
  try {
    outcome.Emplace(barrier_->Pass());
  } catch (...) {
    outcome.SetCurrentException();
  }
  return outcome;
}

}  // namespace internal
}  // namespace weft
