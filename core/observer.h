// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_OBSERVER_H_
#define WEFT_CORE_OBSERVER_H_

#include <utility>

#include "weft/core/future_state.h"
#include "weft/core/runnable.h"

namespace weft::internal {

class Observer;

// What somebody does when a future that he observes is done.
class Observing {
 public:
  // He stays as long as an observer of his waits: one reference for each.
  virtual void Hold() = 0;
  virtual void LetGo() = 0;
  // `observer` runs: its target is done.
  virtual void OnTargetDone(Observer* observer) = 0;
  // `observer` will never run.
  virtual void OnTargetDropped(Observer* observer) = 0;

 protected:
  ~Observing() = default;
};

// A future that is made of others: a gather, a shield.
class ObservingFuture : public Observing {
 public:
  // The future itself.
  virtual FutureState* outer() = 0;

  // As a callback holds its future.
  void Hold() final { outer()->AddCallbackRef(); }
  void LetGo() final { outer()->ReleaseCallbackRef(); }

 protected:
  ~ObservingFuture() = default;
};

// The entry of one who waits in the list of those who wait for a future, as a
// callback is; a member of the one that waits.
//
// Ownership: a future that is made of others must end, and call its own
// callbacks, when those end, though nobody holds it. So an observer that waits
// holds its owner, and its target strongly, since whoever holds the owner may
// cancel the target through it. That is a ring, and it is cut when nobody else
// holds the owner: then it becomes no more than a callback of the target
// (`Weaken()`), which goes with the target if that is never completed.
class Observer : public Runnable {
 public:
  Observer() : Runnable(&RunObserver) {}
  ~Observer() {
    if (target_ == nullptr) return;
    if (is_weak_) {
      target_->ReleaseCallbackRef();
    } else {
      target_->Release();
    }
  }

  FutureState* target() const { return target_; }
  void set_target(FutureStateRef target) { target_ = target.Detach(); }

  // Waits for the target. REQUIRES: that is not done.
  void Start(Observing* owner) {
    owner_ = owner;
    owner->Hold();
    target_->waiters().PushBack(this);
  }
  bool is_started() const { return owner_ != nullptr; }

  // Takes that back. REQUIRES: somebody else holds the owner.
  void Stop() {
    Unlink();
    std::exchange(owner_, nullptr)->LetGo();
  }

  // Nobody holds the owner. May call Drop().
  void Weaken() {
    if (is_weak_ || target_ == nullptr) return;
    is_weak_ = true;
    target_->AddCallbackRef();
    target_->Release();
  }

  // It will never run: the target goes and is not done, or the loop has closed.
  // REQUIRES: in no list.
  void Drop() {
    Observing* owner = std::exchange(owner_, nullptr);
    if (is_weak_) std::exchange(target_, nullptr)->ReleaseCallbackRef();
    owner->OnTargetDropped(this);
    owner->LetGo();  // May be the end of this.
  }

  static bool IsObserver(const Runnable* runnable) { return runnable->run_fn() == &RunObserver; }

 private:
  static void RunObserver(Runnable* runnable) {
    Observing* owner = std::exchange(static_cast<Observer*>(runnable)->owner_, nullptr);
    owner->OnTargetDone(static_cast<Observer*>(runnable));
    owner->LetGo();  // May be the end of this.
  }

  bool is_weak_ = false;
  FutureState* target_ = nullptr;
  Observing* owner_ = nullptr;  // While it waits.
};

}  // namespace weft::internal

#endif  // WEFT_CORE_OBSERVER_H_
