// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SCHEDULER_H_
#define WEFT_CORE_SCHEDULER_H_

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "weft/core/block_pool.h"
#include "weft/core/callback.h"
#include "weft/core/context.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/runnable.h"
#include "weft/core/source_location.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"

namespace weft {

struct ExceptionContext;
class Scheduler;

namespace internal {

class FutureState;
class TaskState;

// A task's place in the list of its loop's tasks.
struct TaskLink : ListNode {};

// The same for an asynchronous generator that was begun and is not at its end.
struct GeneratorLink : ListNode {};

// The scheduler whose callbacks this thread is running.
extern constinit thread_local Scheduler* current_scheduler;

// What futures and tasks see of their scheduler. It is counted and outlives the
// scheduler: a future that is completed or dropped later, by a destructor for
// example, finds it closed and queues nothing.
//
// Threads: belongs to the loop's thread; the count is not atomic.
struct SchedulerCore : PooledObject {
  explicit SchedulerCore(Scheduler* scheduler) : owner(scheduler) {}

  void AddRef() { ++refs; }
  void Release() {
    if (ABSL_PREDICT_FALSE(--refs == 0)) DeleteUnlessEnding();
  }
  // Not while futures end: who ends the last of them looks again.
  void DeleteUnlessEnding();

  uint32_t refs = 0;
  bool closed = false;
  bool debug = false;
  bool observed = false;  // Somebody wants to hear of whatever it runs.
  bool embedded = false;  // A foreign loop sleeps in its place, and is to be woken.
  // Any of these four: calls are looked at first, and so is what is run.
  bool guarded = false;
  // Whether some thread is running it; written by that one.
  std::atomic<bool> running{false};
  // Operations that the running task may still find done at once before it has
  // to queue behind the others (see poller/operation.h).
  int inline_budget = 0;
  TaskState* current_task = nullptr;                  // The one whose step is running, or null.
  ContextRef* current_context = &ContextOfNothing();  // Of what is running.
  ContextRef no_context;                              // Of what runs and has none.
  ReadyQueue ready;
  Scheduler* owner;  // Null once that is destroyed.
  uint64_t tasks_created = 0;
  List<TaskLink> tasks;            // Those that are not done, in the order of creation.
  List<GeneratorLink> generators;  // In the order of their first steps.
  // Futures whose ends, one inside of the other, are under way; and those that
  // wait for them to be over, see FutureState::OnUnreferenced().
  int ending_futures = 0;
  bool has_unreferenced = false;
  std::vector<FutureState*> unreferenced;

  void SetDebug(bool value) {
    debug = value;
    SetGuarded();
  }
  void SetObserved(bool value) {
    observed = value;
    SetGuarded();
  }
  void SetEmbedded(bool value) {
    embedded = value;
    SetGuarded();
  }
  void SetGuarded() { guarded = closed || debug || observed || embedded; }

  // For whoever is about to change something. In debug mode: RuntimeError
  // "Non-thread-safe operation ..." if another thread is running this.
  void CheckThread() const {
    if (ABSL_PREDICT_FALSE(guarded)) CheckThreadSlowly();
  }
  void CheckThreadSlowly() const;

  // For whoever queues something, and must not throw.
  void WakeIfEmbedded() const {
    if (ABSL_PREDICT_FALSE(embedded)) WakeForeignLoop();
  }
  void WakeForeignLoop() const;

  // The context of what is running, for what that starts. If nothing is, then a clone of
  // the thread's: the loop may run on another.
  ContextRef GetContext() const;
  void CopyContext(CallbackSlot* target) const {
    if (ABSL_PREDICT_FALSE(may_have_context())) CopyContextSlowly(target);
  }
  // The same for a slot that comes back to its thread by itself.
  void CopyContextOfTimer(CallbackSlot* target) const {
    if (ABSL_PREDICT_FALSE(may_have_context())) CopyContextOfTimerSlowly(target);
  }
  // False: what is running has none, and no more has what that starts.
  bool may_have_context() const { return static_cast<bool>(*current_context); }

 private:
  void CopyContextSlowly(CallbackSlot* target) const;
  void CopyContextOfTimerSlowly(CallbackSlot* target) const;
};

}  // namespace internal

// Scheduler
//
// All that core knows of a loop: a queue of what is ready, timers, the time,
// and somebody to tell of errors. `EventLoop` is one; a test may be another.
//
// Threads: belongs to the loop's thread.
class Scheduler {
 public:
  Scheduler() : core_(new internal::SchedulerCore(this)) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The scheduler that is running on this thread, or null.
  static Scheduler* Current() { return internal::current_scheduler; }

  // The same, or RuntimeError "no running event loop".
  static Scheduler& CurrentOrThrow() {
    if (ABSL_PREDICT_FALSE(internal::current_scheduler == nullptr)) ThrowNoRunningLoop();
    return *internal::current_scheduler;
  }

  // What runs in the next round. What is pushed here must be able to run until
  // it is unlinked.
  ReadyQueue& ready() { return core_->ready; }

  // The time now, read from the clock.
  virtual TimePoint Now() const = 0;

  // Queues `timer` when `deadline` has come: by deadline, equal ones in the
  // order of arming. REQUIRES: `timer` is neither armed nor queued.
  virtual void Arm(Timer* timer, TimePoint deadline) = 0;

  // Undoes Arm(), also if the timer is queued already; else does nothing.
  virtual void Disarm(Timer* timer) = 0;

  // Passes an error that nobody can be thrown on to the loop's exception
  // handler. Does not throw.
  virtual void HandleException(ExceptionContext context) noexcept = 0;

  // A callback or a task has thrown KeyboardInterrupt: has the run end with it, after this
  // round. False if nothing runs, or if this scheduler has no such thing.
  virtual bool Interrupt() noexcept { return false; }

  // Queues `runnable`, of a task that waits for a foreign awaiter. From any thread, if the
  // scheduler can do that.
  virtual void QueueFromAnyThread(Runnable* runnable) { ready().PushBack(runnable); }

  // Something is about to change while a foreign loop sleeps in this one's place.
  virtual void WakeForeignLoop() noexcept {}

  // Has `callable` run in the next round.
  // Errors: RuntimeError if closed, and in debug mode if another thread is running
  // the loop.
  template <internal::PlainCallback F>
  Handle CallSoon(F&& callable, const SourceLocation& location = SourceLocation::current()) {
    // In the steady state this calls nothing, and so has nothing to save.
    if constexpr (internal::CallbackSlot::kBindsInPlace<F>) {
      internal::SchedulerCore* const core = core_.get();
      if (ABSL_PREDICT_TRUE(!core->guarded && !core->may_have_context())) {
        internal::CallbackSlot* const slot = internal::CallbackSlot::TakeFree();
        if (ABSL_PREDICT_TRUE(slot != nullptr)) {
          slot->Bind(std::forward<F>(callable), location);
          core->ready.PushBack(slot);
          return Handle(this, slot);
        }
      }
    }
    // By value, so that the closure need not lie in memory in the case above.
    return CallSoonSlowly(std::decay_t<F>(std::forward<F>(callable)), location);
  }

  // Has `callable` run when `when` has come: through the timers even if that
  // has passed. Errors: as CallSoon().
  template <internal::PlainCallback F>
  TimerHandle CallAt(TimePoint when, F&& callable,
                     const SourceLocation& location = SourceLocation::current()) {
    if (ABSL_PREDICT_FALSE(core_->guarded)) CheckCall();
    internal::CallbackSlot* slot =
        internal::CallbackSlot::Make<internal::CallbackSlot::Kind::kTimer>(
            std::forward<F>(callable), location);
    core_->CopyContextOfTimer(slot);
    Arm(slot, when);
    return TimerHandle(this, slot, when);
  }

  // CallAt() the time now plus `delay`. Late, never early.
  template <internal::PlainCallback F>
  TimerHandle CallLater(absl::Duration delay, F&& callable,
                        const SourceLocation& location = SourceLocation::current()) {
    return CallAt(Now() + delay, std::forward<F>(callable), location);
  }

  // True once the loop was closed: nothing is queued from then on.
  bool closed() const { return core_->closed; }

  // Debug mode: checks that cost time. See docs/debugging.md.
  bool debug() const { return core_->debug; }
  void SetDebug(bool debug) {
    CheckThread();
    core_->SetDebug(debug);
  }

  // -- For those who implement tasks and callbacks.

  internal::SchedulerCore* core() const { return core_.get(); }

  // Throws what a call deserves that queues something: RuntimeError if closed,
  // and as CheckThread(). To be called if `core()->guarded`.
  void CheckCall() const;
  // In debug mode: RuntimeError if another thread is running this.
  void CheckThread() const { core_->CheckThread(); }

  // The context variables of what is running.
  internal::ContextRef current_context() const { return core_->GetContext(); }

  // A slot with `callable` and the context of now, in no queue.
  template <class F>
  internal::CallbackSlot* MakeCallback(F&& callable, const SourceLocation& location) {
    internal::CallbackSlot* slot =
        internal::CallbackSlot::Make(std::forward<F>(callable), location);
    core_->CopyContext(slot);
    return slot;
  }

  // How many operations a task may find done at once in one step.
  static constexpr int kInlineBudget = 32;

 protected:
  ~Scheduler() {
    SetClosed();
    core_->owner = nullptr;
  }

  // Makes this the current scheduler of the thread, as long as it lives.
  class Running {
   public:
    explicit Running(Scheduler* scheduler)
        : scheduler_(scheduler), previous_(std::exchange(internal::current_scheduler, scheduler)) {
      internal::SchedulerCore* core = scheduler_->core();
      core->running.store(true, std::memory_order_relaxed);
      core->current_context = &core->no_context;
      internal::CallbackSlotCache::GiveBackAtThreadExit();
    }
    ~Running() {
      internal::SchedulerCore* core = scheduler_->core();
      core->running.store(false, std::memory_order_relaxed);
      core->current_context = &internal::ContextOfNothing();
      internal::current_scheduler = previous_;
    }
    Running(const Running&) = delete;

   private:
    Scheduler* scheduler_;
    Scheduler* previous_;
  };

  // From now on nothing is queued.
  void SetClosed() { core_->closed = core_->guarded = true; }

 private:
  [[noreturn]] static void ThrowNoRunningLoop();

  template <class Closure>
  ABSL_ATTRIBUTE_NOINLINE Handle CallSoonSlowly(Closure closure, SourceLocation location) {
    if (ABSL_PREDICT_FALSE(core_->guarded)) CheckCall();
    internal::CallbackSlot* slot = MakeCallback(std::move(closure), location);
    core_->ready.PushBack(slot);
    return Handle(this, slot);
  }

  internal::IntrusivePtr<internal::SchedulerCore> core_;
};

}  // namespace weft

#endif  // WEFT_CORE_SCHEDULER_H_
