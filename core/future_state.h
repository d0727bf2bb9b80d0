// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_FUTURE_STATE_H_
#define WEFT_CORE_FUTURE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "weft/core/block_pool.h"
#include "weft/core/cancellable.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/core/runnable.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"

namespace weft::internal {

// What a `Future`, and whatever behaves as one (a task, a gather, a shield),
// refers to: whether it is done, and who waits for it.
//
// All who wait stand in one list in the order in which they came: tasks by
// their own runnable, callbacks by a slot. Being done is one splice of that
// list to the ready queue.
//
// Who may end it and how it is cancelled is the kind's own business: Cancel and
// SetResult ask the state, not the type of the reference.
//
// Ownership: counted. A callback that waits holds a reference too, so that it
// can be given the future; those are counted apart, and when nobody else is
// left, nobody can complete the future any more, and it goes.
//
// Threads: belongs to the loop's thread; the count is not atomic.
class FutureState : public Cancellable, public PooledObject {
 public:
  enum class Status : uint8_t { kPending, kFinished, kCancelled };

  // What an outcome is aligned to at most: its place is kept in a byte.
  static constexpr size_t kMaxOutcomeAlignment = 1024;

  FutureState(const FutureState&) = delete;

  void AddRef() { ++refs_; }
  void Release() {
    if (ABSL_PREDICT_FALSE(--refs_ == callback_refs_)) OnUnreferenced();
  }
  // A callback's reference.
  void AddCallbackRef() {
    ++refs_;
    ++callback_refs_;
  }
  void ReleaseCallbackRef() {
    --callback_refs_;
    Release();
  }
  uint32_t refs() const { return refs_; }
  bool IsUniquelyReferenced() const { return refs_ == 1; }

  Status status() const { return status_; }
  bool done() const { return status_ != Status::kPending; }
  bool cancelled() const { return status_ == Status::kCancelled; }

  SchedulerCore* scheduler() const { return scheduler_.get(); }
  const SourceLocation& created_at() const { return created_at_; }

  // In debug mode, for whoever changes it from outside: RuntimeError if another
  // thread is running its loop, or this one another loop.
  void CheckUse() const {
    if (ABSL_PREDICT_FALSE(scheduler_->guarded)) CheckUseSlowly();
  }

  // Who waits. REQUIRES for adding: not done.
  ReadyQueue& waiters() {
    waiters_.Make();
    return waiters_;
  }

  // Asks this, and what it waits for, to end. False if it is done already.
  // Never throws. Once the loop is closed nothing is queued.
  bool Cancel(std::string message);

  // The CancelledError of a cancelled future; one object however often asked.
  const std::exception_ptr& cancelled_error();

  // "Task" or "Future": how messages call it.
  virtual std::string_view kind() const { return "Future"; }
  // "<Future pending>", "<Task finished name='Task-1' coro=Main result=3>". As long
  // as it is, whatever it waits for.
  virtual std::string Repr() const;
  std::string Description() const override { return Repr(); }
  const FutureState* AsFuture() const override { return this; }
  // Whether SetResult and SetException are the owner's to call.
  virtual bool is_settable() const { return true; }

  // -- How it ended. The type of the outcome is the reference's to know.

  OutcomeBase& outcome_base() {
    return *std::launder(reinterpret_cast<OutcomeBase*>(reinterpret_cast<char*>(this) +
                                                        outcome_offset_ * kOffsetGrain));
  }
  template <class T>
  Outcome<T>& outcome() {
    return static_cast<Outcome<T>&>(outcome_base());
  }
  template <class T>
  const Outcome<T>& outcome() const {
    return const_cast<FutureState*>(this)->outcome<T>();
  }

  // Whether there is a value to be read.
  bool has_result() const {
    return status_ == Status::kFinished && (flags_ & (kHasError | kMovedOut)) == 0;
  }

  // Whether it finished with an error, and that error; else null.
  bool has_error() const { return (flags_ & kHasError) != 0; }
  virtual std::exception_ptr error() const = 0;

  // The value in words, for Repr(); empty if there is none to show.
  virtual std::string value_text() const { return std::string(); }

  // A mark for whoever goes through a list of futures that may hold one twice.
  // Returns whether it was not set; whoever sets it takes it away at once.
  bool Mark() {
    const bool is_new = (flags_ & kMarked) == 0;
    flags_ |= kMarked;
    return is_new;
  }
  void Unmark() { flags_ &= ~kMarked; }
  bool is_marked() const { return (flags_ & kMarked) != 0; }

  bool exception_retrieved() const { return (flags_ & kUnretrieved) == 0; }
  void MarkRetrieved() { flags_ &= ~kUnretrieved; }
  bool moved_out() const { return (flags_ & kMovedOut) != 0; }
  void MarkMovedOut() { flags_ |= kMovedOut; }

  // The outcome is in place: publishes it and queues all who wait.
  // REQUIRES: not done.
  void Finish(bool has_error) {
    status_ = Status::kFinished;
    if (has_error) flags_ |= kUnretrieved | kHasError;
    WakeWaiters();
  }
  // The same for a cancellation. `error`: null, or the one to throw.
  void FinishCancelled(std::exception_ptr error) {
    status_ = Status::kCancelled;
    if (error != nullptr) cancel_error_ = std::move(error);
    WakeWaiters();
  }

  Step BeginCancel(const std::exception_ptr& error) override;

 protected:
  // `outcome` lies in the object that this is of, which makes it later. `refs`: how many
  // references it begins with.
  FutureState(SchedulerCore* scheduler, OutcomeBase* outcome, uint32_t refs,
              const SourceLocation& created_at)
      : outcome_offset_(static_cast<uint8_t>(
            (reinterpret_cast<char*>(outcome) - reinterpret_cast<char*>(this)) / kOffsetGrain)),
        refs_(refs),
        scheduler_(IntrusivePtr<SchedulerCore>::Adopt(scheduler)),
        created_at_(created_at) {
    scheduler->AddRef();
  }
  ABSL_ATTRIBUTE_ALWAYS_INLINE virtual ~FutureState() {}

  // Nobody refers to it but callbacks, and what waits of its own accord for
  // others (see Observer). Whether such waits are left that can still end it; to
  // be answered again when one of them has let go.
  virtual bool GoesOnAlone() { return false; }

  // Nobody refers to it but callbacks that wait for it. What goes with it may be
  // the last to refer to another, and so on down a chain that may be as long as
  // the program likes: so beyond a depth the others wait.
  virtual void OnUnreferenced();

  // Tells the loop's exception handler of this future. Later, not here: this is
  // called where references are dropped and in the midst of a cancellation, and
  // the handler is the user's code. Never throws; once the loop is closed it is
  // logged.
  void ReportLater(std::string message);

  static constexpr uint8_t kUnretrieved = 1;
  static constexpr uint8_t kMovedOut = 2;
  static constexpr uint8_t kKindFlag1 = 4;  // The kind's own.
  static constexpr uint8_t kKindFlag2 = 8;
  static constexpr uint8_t kMarked = 16;
  static constexpr uint8_t kHasError = 32;
  static constexpr uint8_t kUnreferenced = 64;  // In SchedulerCore::unreferenced.
  static constexpr uint8_t kKindFlag3 = 128;

  // "pending", or "finished" and what it ended with: " result=3", " exception=...".
  std::string_view StatusText() const;
  std::string OutcomeText() const;

  static constexpr ptrdiff_t kOffsetGrain = alignof(std::exception_ptr);

  uint8_t flags_ = 0;

 private:
  void WakeWaiters() {
    if (waiters_.is_made()) WakeAllWaiters();
  }
  void WakeAllWaiters();
  void EndSlowly();
  void EndIfUnreferenced();
  static void EndOthers(SchedulerCore* core);
  void CheckUseSlowly() const;

  // In the order that leaves no hole; see the size check in future_state.cc.
  Status status_ = Status::kPending;
  const uint8_t outcome_offset_;

 protected:
  // What the step that is running comes to: it waits, unless it is told otherwise. A task's.
  enum class Progress : uint8_t { kWaits, kGoesOn, kEnds };
  Progress progress_ = Progress::kWaits;

 private:
  uint32_t refs_;
  uint32_t callback_refs_ = 0;

 protected:
  int32_t cancels_ = 0;  // A task's count of requests.
  // The request's CancelledError while pending, if it had a message; what
  // awaiters are thrown once cancelled.
  std::exception_ptr cancel_error_;

 private:
  IntrusivePtr<SchedulerCore> scheduler_;
  SourceLocation created_at_;
  ReadyQueue waiters_{ReadyQueue::Unmade()};
};

using FutureStateRef = IntrusivePtr<FutureState>;

// The futures that something waits for, in words, behind its own: ": <Task ...>,
// <Future pending>, and 3 more". Those that are done are passed over.
class DescribedList {
 public:
  void Add(const FutureState& state);
  std::string text() const;

 private:
  static constexpr size_t kMost = 8;

  std::string text_;
  size_t count_ = 0;
};

// Throws why `state` has no result to be read: what it ended with, which somebody
// knows of from now on, or the InvalidStateError that reading it deserves.
[[noreturn]] void ThrowNoResult(FutureState& state);
[[noreturn]] void ThrowInvalidState();

}  // namespace weft::internal

#endif  // WEFT_CORE_FUTURE_STATE_H_
