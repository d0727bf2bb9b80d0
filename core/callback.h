// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CALLBACK_H_
#define WEFT_CORE_CALLBACK_H_

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/core/context.h"
#include "weft/core/slab_map.h"
#include "weft/core/source_location.h"
#include "weft/core/timer.h"

namespace weft {

class Scheduler;

namespace internal {

// A callable that returns a coroutine, which nobody would run: so it is none for
// CallSoon() and the like. CreateTask() is what it is for.
template <class F, class... Args>
concept ReturnsCoroutine =
    requires { typename std::invoke_result_t<std::decay_t<F>&, Args...>::promise_type; };

// What can be called back: without arguments, and not a coroutine. A function that
// starts a task is one.
//
// Python: "coroutines cannot be used with call_soon()".
template <class F>
concept PlainCallback = std::invocable<std::decay_t<F>&> && !ReturnsCoroutine<F>;

// A user's callback with all that it takes to run it: what CallSoon, CallAt,
// CallSoonThreadsafe and AddDoneCallback put into the queue.
//
// Slots are recycled through a free list a thread and never given back to the
// system, and each use of one has a number, its generation. So a handle that
// names slot and generation is safe for ever, and nothing is counted.
//
//                Bind()            Run()                         Recycle()
//   free --------------> pending ---------> running -----------------------> free
//                           |                                       ^
//                           +-- Cancel(): closure destroyed at once -+
//
// A slot in an inbox cannot be unlinked; Cancel() then leaves it in place with
// nothing to run, and it is recycled when its turn comes.
//
// Threads: a slot may be bound on one thread and run on another, with the inbox
// between them. The generation may be read from any.
class CallbackSlot : public Timer {
 public:
  static constexpr size_t kInlineSize = 48;

  // What a slot is used for: timers have free slots of their own.
  enum class Kind { kPlain, kTimer };

  // A free slot of this thread's list.
  static CallbackSlot* Allocate();
  // The same; null if the list is empty.
  static CallbackSlot* TakeFree();
  // A free slot for a timer.
  static CallbackSlot* AllocateForTimer();

  // Whether a closure is kept here; and whether one made of F comes here without throwing.
  template <class Closure>
  static constexpr bool kIsInline =
      sizeof(Closure) <= kInlineSize && alignof(Closure) <= alignof(std::max_align_t);
  template <class F>
  static constexpr bool kBindsInPlace =
      kIsInline<std::decay_t<F>> && std::is_nothrow_constructible_v<std::decay_t<F>, F>;

  // The same with `callable` in it. If copying or moving that there throws, nothing
  // has happened.
  template <Kind kKind = Kind::kPlain, class F>
  static CallbackSlot* Make(F&& callable, const SourceLocation& location) {
    CallbackSlot* slot = kKind == Kind::kTimer ? AllocateForTimer() : Allocate();
    try {
      slot->Bind<kKind>(std::forward<F>(callable), location);
    } catch (...) {
      slot->Recycle(kKind);
      throw;
    }
    if constexpr (kKind == Kind::kTimer) slot->Set(kTimerBits<std::decay_t<F>>);
    return slot;
  }

  CallbackSlot() : Timer(nullptr) {}
  CallbackSlot(const CallbackSlot&) = delete;

  // Keeps `callable` here if it is no larger than kInlineSize, else on the heap.
  template <Kind kKind = Kind::kPlain, PlainCallback F>
  void Bind(F&& callable, const SourceLocation& location) {
    using Closure = std::decay_t<F>;
    location_ = location;
    if constexpr (kIsInline<Closure>) {
      new (storage_) Closure(std::forward<F>(callable));
      set_run(&RunInline<Closure, kKind>);
      if constexpr (!std::is_trivially_destructible_v<Closure>) {
        destroy_ = [](CallbackSlot* slot) { slot->closure<Closure>().~Closure(); };
      }
    } else {
      closure<Closure*>() = new Closure(std::forward<F>(callable));
      set_run(&RunOnHeap<Closure>);
      destroy_ = [](CallbackSlot* slot) { delete slot->closure<Closure*>(); };
    }
  }

  uint64_t generation() const { return Generation(word_.load(std::memory_order_relaxed)); }

  // Whether the use with that number was cancelled; `unknown` if it was the
  // slot's too many uses ago.
  bool WasCancelled(uint64_t generation, bool unknown) const;

  // Makes sure the callback does not run, and destroys the closure now.
  // REQUIRES: pending, in a queue or armed on `scheduler`, or in an inbox.
  void Cancel(Scheduler* scheduler);

  // Destroys the closure of a pending slot and frees the slot: for who owns it
  // and has taken it out of whatever held it.
  void Drop();

  // Whether `runnable`, of whatever kind, is a slot. Slow: for Close().
  static bool IsSlot(const Runnable* runnable);

  const SourceLocation& location() const { return location_; }

  // What it runs in, in place of what it had; null: none.
  void set_context(ContextRef context) {
    context_ = std::move(context);
    Set(kHasContext);
  }

  // Says that the slot goes through an inbox, whose links are not a list's.
  void set_posted() { Set(kPosted | kForeign); }
  // Says that it may be that it comes from the free slots of one thread and goes to those
  // of another.
  void set_foreign() { Set(kForeign); }

 private:
  friend struct CallbackSlotCache;

  static constexpr int kHistoryBits = 16;
  static constexpr uint64_t kHistoryMask = (1 << kHistoryBits) - 1;
  // Of this use.
  static constexpr uint64_t kPosted = 1 << kHistoryBits;
  static constexpr uint64_t kForeign = kPosted << 1;
  static constexpr uint64_t kHasContext = kPosted << 2;
  static constexpr uint64_t kOfTimer = kPosted << 3;
  // A timer's that has nothing to destroy: to cancel it, the half of the slot in which its
  // closure lies need not be touched.
  static constexpr uint64_t kIsBare = kPosted << 4;
  static constexpr int kGenerationShift = kHistoryBits + 5;
  static constexpr uint64_t kOneGeneration = uint64_t{1} << kGenerationShift;

  template <class Closure>
  static constexpr uint64_t kTimerBits =
      kIsInline<Closure> && std::is_trivially_destructible_v<Closure> ? kOfTimer | kIsBare
                                                                      : kOfTimer;

  static uint64_t Generation(uint64_t word) { return word >> kGenerationShift; }

  void Set(uint64_t bits) {
    word_.store(word_.load(std::memory_order_relaxed) | bits, std::memory_order_relaxed);
  }

  template <class T>
  T& closure() {
    return *std::launder(reinterpret_cast<T*>(storage_));
  }

  // Most uses were never cancelled, nor made on another thread, and have no context: then
  // there is but a number to count before the closure runs. For them alone these call
  // nothing of ours, and so have little to save.
  template <class Closure, Kind kKind>
  static void RunInline(Runnable* runnable) {
    auto* slot = static_cast<CallbackSlot*>(runnable);
    if (ABSL_PREDICT_FALSE(
            !slot->BeginPlainly<kKind == Kind::kTimer ? kTimerBits<Closure> : 0>())) {
      return RunOtherwise(slot, &CallInline<Closure>);
    }
    CallInline<Closure>(slot);
    slot->End(kKind);
  }

  template <class Closure>
  static void RunOnHeap(Runnable* runnable) {
    RunOtherwise(static_cast<CallbackSlot*>(runnable), [](CallbackSlot* slot) {
      try {
        (*slot->closure<Closure*>())();
      } catch (...) {
        slot->ReportException();
      }
      slot->destroy_ = nullptr;
      delete slot->closure<Closure*>();
    });
  }

  // Calls the closure, and destroys it.
  template <class Closure>
  static void CallInline(CallbackSlot* slot) {
    try {
      slot->closure<Closure>()();
    } catch (...) {
      slot->ReportException();
    }
    if constexpr (!std::is_trivially_destructible_v<Closure>) {
      slot->destroy_ = nullptr;
      slot->closure<Closure>().~Closure();
    }
  }

  // Runs any use of a slot, with `call` for its closure.
  static void RunOtherwise(CallbackSlot* slot, void (*call)(CallbackSlot*));

  // Ends the use of which nothing else has to be known; false if it is another.
  template <uint64_t kPlainly>
  bool BeginPlainly() {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    if (ABSL_PREDICT_FALSE((word & (kOneGeneration - 1)) != kPlainly)) return false;
    word_.store(word + (kOneGeneration - kPlainly), std::memory_order_relaxed);
    return true;
  }
  static Kind KindOf(uint64_t word) { return (word & kOfTimer) != 0 ? Kind::kTimer : Kind::kPlain; }
  // The closure has run.
  void End(Kind kind);

  // Ends this use: handles that name it act on nothing from now on.
  void NextGeneration(bool cancelled);
  void LeaveContextAndRecycle(Kind kind);
  void ReportException();
  void DestroyAndRecycle(Kind kind);
  void Recycle(Kind kind);

  // The generation; below it of what kind this use is; below that how the last
  // 16 ended (1: cancelled). One word, so that a stale handle reads all at once.
  std::atomic<uint64_t> word_{0};
  SourceLocation location_;
  void (*destroy_)(CallbackSlot*) = nullptr;  // Null: there is nothing to destroy.
  ContextRef context_;
  alignas(std::max_align_t) std::byte storage_[kInlineSize];
};

// The free slots of one thread: those that it uses again and again. Those that other
// threads have made and this one has run go back, so that they are not made anew there
// while they become more here.
//
// Callbacks that run soon take the one that was freed last. Timers may be many, and end in
// any order: they take theirs in order of the addresses, a slab at a time, from a map of
// the slabs that this thread has made. Each takes from the other before more are made.
struct CallbackSlotCache {
  CallbackSlot* head = nullptr;
  uintptr_t timer_slab = 0;  // That which timers are taken from,
  uint64_t timer_free = 0;   // and what is free of it.
  SlabMap* timer_map = nullptr;
  ContextRef* entered_context = nullptr;  // Of the callback that runs, if it has one.
  uint32_t received = 0;                  // From other threads, and not given back yet.

  static CallbackSlot* Refill();
  static CallbackSlot* RefillForTimer();
  static void RecycleElsewhere(CallbackSlot* slot);  // A timer's, not in `timer_slab`.
  static void MoveTimerSlotsToList();
  static bool TakeSlabOfTimers();
  static bool TakeFromDepot();
  static bool TakeNewSlab();
  // A slot of another thread's comes to this one.
  static void OnReceived();
  // Has the slots of this thread given back when it ends.
  static void GiveBackAtThreadExit();
  static CallbackSlot*& NextOf(CallbackSlot* slot) { return slot->closure<CallbackSlot*>(); }
  static void SetNext(CallbackSlot* slot, CallbackSlot* next) {
    new (slot->storage_) CallbackSlot*(next);
  }
  // Of the first slot of a batch, behind its link to the second.
  static CallbackSlot* NextBatchOf(CallbackSlot* first) {
    return *std::launder(reinterpret_cast<CallbackSlot**>(first->storage_ + sizeof(CallbackSlot*)));
  }
  static void SetNextBatch(CallbackSlot* first, CallbackSlot* next) {
    new (first->storage_ + sizeof(CallbackSlot*)) CallbackSlot*(next);
  }
};

extern constinit thread_local CallbackSlotCache callback_slot_cache;

inline CallbackSlot* CallbackSlot::TakeFree() {
  CallbackSlotCache& cache = callback_slot_cache;
  CallbackSlot* const slot = cache.head;
  if (ABSL_PREDICT_TRUE(slot != nullptr)) cache.head = CallbackSlotCache::NextOf(slot);
  return slot;
}

inline CallbackSlot* CallbackSlot::Allocate() {
  CallbackSlot* const slot = TakeFree();
  return ABSL_PREDICT_TRUE(slot != nullptr) ? slot : CallbackSlotCache::Refill();
}

inline CallbackSlot* CallbackSlot::AllocateForTimer() {
  CallbackSlotCache& cache = callback_slot_cache;
  const uint64_t free = cache.timer_free;
  if (ABSL_PREDICT_FALSE(free == 0)) return CallbackSlotCache::RefillForTimer();
  cache.timer_free = free & (free - 1);
  return reinterpret_cast<CallbackSlot*>(cache.timer_slab) + std::countr_zero(free);
}

inline void CallbackSlot::Recycle(Kind kind) {
  CallbackSlotCache& cache = callback_slot_cache;
  if (kind == Kind::kTimer) {
    const auto place = reinterpret_cast<uintptr_t>(this);
    if (SlabMap::SlabOf(place) != cache.timer_slab) {
      return CallbackSlotCache::RecycleElsewhere(this);
    }
    cache.timer_free |= SlabMap::BitOf(place);
    return;
  }
  CallbackSlotCache::SetNext(this, cache.head);
  cache.head = this;
}

inline void CallbackSlot::End(Kind kind) {
  if (ABSL_PREDICT_FALSE(callback_slot_cache.entered_context != nullptr)) {
    return LeaveContextAndRecycle(kind);
  }
  Recycle(kind);
}

}  // namespace internal

// Handle
//
// What scheduling a callback returns: a way to cancel it. Small and copyable;
// dropping it does nothing, and using it is safe for ever, also after the
// callback ran, the loop closed and was destroyed.
//
// Threads: belongs to the loop's thread, even if the callback was posted from
// another.
// Python: asyncio.Handle.
class Handle {
 public:
  Handle() : scheduler_(nullptr) {}  // Names no callback; cancelling it does nothing.
  Handle(Scheduler* scheduler, internal::CallbackSlot* slot)
      : Handle(scheduler, slot, slot->generation()) {}
  Handle(Scheduler* scheduler, internal::CallbackSlot* slot, uint64_t generation)
      : scheduler_(scheduler), slot_(slot), generation_(generation) {}

  // Makes sure that the callback does not run, if it has not begun to, also if
  // it is in the round that is running now, and destroys its captures. Does
  // nothing the second time. Errors: in debug mode RuntimeError if another thread
  // is running the loop.
  void Cancel() {
    if (!IsPending()) {
      if (state_ == State::kNotCancelled) state_ = State::kCancelled;
      return;
    }
    const SourceLocation location = slot_->location();
    slot_->Cancel(scheduler_);
    location_ = location;
    state_ = State::kCancelledHere;
  }

  // True once Cancel() was called, on this handle or on a copy of it. (A copy
  // whose callback was over long ago may not know of the other's call.)
  bool Cancelled() const {
    return state_ != State::kNotCancelled ||
           (slot_ != nullptr && slot_->WasCancelled(generation_, /*unknown=*/false));
  }

  // True while the callback waits for its turn.
  bool IsPending() const { return slot_ != nullptr && slot_->generation() == generation_; }

  // Where the callback was scheduled. Line 0 once it has run, or was cancelled
  // through a copy of this handle.
  SourceLocation location() const {
    if (state_ == State::kCancelledHere) return location_;
    return IsPending() ? slot_->location() : SourceLocation();
  }

  // In one line, for people: "<Handle created at a.cc:12>", "<Handle cancelled
  // created at a.cc:12>", "<Handle done>".
  std::string ToString() const { return Text("Handle"); }
  friend std::ostream& operator<<(std::ostream& out, const Handle& handle) {
    return out << handle.ToString();
  }

  friend bool operator==(const Handle& a, const Handle& b) {
    return a.slot_ == b.slot_ && a.generation_ == b.generation_;
  }

 protected:
  // "<NAME ...>"
  std::string Text(std::string name) const;

 private:
  // kCancelledHere: it was pending, and this handle was the one to cancel it.
  enum class State : uint8_t { kNotCancelled, kCancelled, kCancelledHere };

  union {
    Scheduler* scheduler_;     // Not to be touched unless IsPending().
    SourceLocation location_;  // If kCancelledHere.
  };
  internal::CallbackSlot* slot_ = nullptr;
  uint64_t generation_ = 0;
  State state_ = State::kNotCancelled;
};

// TimerHandle
//
// The handle of a callback that is due at a moment.
//
// Python: asyncio.TimerHandle.
class TimerHandle : public Handle {
 public:
  TimerHandle() = default;
  TimerHandle(Scheduler* scheduler, internal::CallbackSlot* slot, TimePoint when)
      : Handle(scheduler, slot), when_(when) {}

  // When it is due, before and after Cancel().
  TimePoint When() const { return when_; }

  // "<TimerHandle when=12.5s created at a.cc:12>": on the loop's clock.
  std::string ToString() const;
  friend std::ostream& operator<<(std::ostream& out, const TimerHandle& handle) {
    return out << handle.ToString();
  }

 private:
  TimePoint when_;
};

// CallbackId
//
// Names one AddDoneCallback() for RemoveDoneCallback().
using CallbackId = Handle;

}  // namespace weft

#endif  // WEFT_CORE_CALLBACK_H_
