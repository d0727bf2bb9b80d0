// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CALLBACK_H_
#define WEFT_CORE_CALLBACK_H_

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/core/context.h"
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

  // A free slot of this thread's list.
  static CallbackSlot* Allocate();

  // The same with `callable` in it. If copying or moving that there throws, nothing
  // has happened.
  template <class F>
  static CallbackSlot* Make(F&& callable, const SourceLocation& location) {
    CallbackSlot* slot = Allocate();
    try {
      slot->Bind(std::forward<F>(callable), location);
    } catch (...) {
      slot->Recycle();
      throw;
    }
    return slot;
  }

  CallbackSlot() : Timer(nullptr) {}
  CallbackSlot(const CallbackSlot&) = delete;

  // Keeps `callable` here if it is no larger than kInlineSize, else on the heap.
  template <PlainCallback F>
  void Bind(F&& callable, const SourceLocation& location) {
    using Closure = std::decay_t<F>;
    location_ = location;
    if constexpr (sizeof(Closure) <= kInlineSize && alignof(Closure) <= alignof(std::max_align_t)) {
      new (storage_) Closure(std::forward<F>(callable));
      set_run(&RunInline<Closure>);
      if constexpr (std::is_trivially_destructible_v<Closure>) {
        destroy_ = nullptr;
      } else {
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
  ContextRef& context() { return context_; }

  // Says that the slot goes through an inbox, whose links are not a list's.
  void set_posted() {
    word_.store(word_.load(std::memory_order_relaxed) | kPosted, std::memory_order_relaxed);
  }

 private:
  friend struct CallbackSlotCache;

  static constexpr int kHistoryBits = 16;
  static constexpr uint64_t kHistoryMask = (1 << kHistoryBits) - 1;
  static constexpr uint64_t kPosted = 1 << kHistoryBits;
  static constexpr int kGenerationShift = kHistoryBits + 1;

  static uint64_t Generation(uint64_t word) { return word >> kGenerationShift; }

  template <class T>
  T& closure() {
    return *std::launder(reinterpret_cast<T*>(storage_));
  }

  template <class Closure>
  static void RunInline(Runnable* runnable) {
    auto* slot = static_cast<CallbackSlot*>(runnable);
    slot->NextGeneration(/*cancelled=*/false);
    if (slot->context_) slot->EnterContext();
    try {
      slot->closure<Closure>()();
    } catch (...) {
      slot->ReportException();
    }
    if constexpr (!std::is_trivially_destructible_v<Closure>) slot->closure<Closure>().~Closure();
    if (ABSL_PREDICT_FALSE(callback_context != nullptr)) slot->LeaveContext();
    slot->Recycle();
  }

  template <class Closure>
  static void RunOnHeap(Runnable* runnable) {
    auto* slot = static_cast<CallbackSlot*>(runnable);
    slot->NextGeneration(/*cancelled=*/false);
    if (slot->context_) slot->EnterContext();
    try {
      (*slot->closure<Closure*>())();
    } catch (...) {
      slot->ReportException();
    }
    delete slot->closure<Closure*>();
    if (ABSL_PREDICT_FALSE(callback_context != nullptr)) slot->LeaveContext();
    slot->Recycle();
  }

  // Ends this use: handles that name it act on nothing from now on.
  void NextGeneration(bool cancelled) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    // Most are never cancelled, nor posted by another thread: then there is but a number.
    if (ABSL_PREDICT_FALSE(cancelled || (word & (kHistoryMask | kPosted)) != 0)) {
      const uint64_t history = (word << 1 | (cancelled ? 1 : 0)) & kHistoryMask;
      word = Generation(word) << kGenerationShift | history;
    }
    word_.store(word + (uint64_t{1} << kGenerationShift), std::memory_order_relaxed);
  }
  void EnterContext();
  void LeaveContext();
  void ReportException();
  void DestroyAndRecycle();
  void Recycle();

  // The generation; below it whether this use is posted; below that how the last
  // 16 ended (1: cancelled). One word, so that a stale handle reads all at once.
  std::atomic<uint64_t> word_{0};
  SourceLocation location_;
  void (*destroy_)(CallbackSlot*) = nullptr;
  ContextRef context_;
  alignas(std::max_align_t) std::byte storage_[kInlineSize];
};

// The free slots of one thread.
struct CallbackSlotCache {
  CallbackSlot* head = nullptr;
  uint32_t count = 0;
  uint32_t limit = 0;

  static CallbackSlot* Refill();
  static void Overflow(CallbackSlot* slot);
  static CallbackSlot*& NextOf(CallbackSlot* slot) { return slot->closure<CallbackSlot*>(); }
  static void SetNext(CallbackSlot* slot, CallbackSlot* next) {
    new (slot->storage_) CallbackSlot*(next);
  }
};

extern constinit thread_local CallbackSlotCache callback_slot_cache;

inline CallbackSlot* CallbackSlot::Allocate() {
  CallbackSlotCache& cache = callback_slot_cache;
  CallbackSlot* slot = cache.head;
  if (ABSL_PREDICT_FALSE(slot == nullptr)) return CallbackSlotCache::Refill();
  cache.head = CallbackSlotCache::NextOf(slot);
  --cache.count;
  return slot;
}

inline void CallbackSlot::Recycle() {
  CallbackSlotCache& cache = callback_slot_cache;
  if (ABSL_PREDICT_FALSE(cache.count >= cache.limit)) return CallbackSlotCache::Overflow(this);
  CallbackSlotCache::SetNext(this, cache.head);
  cache.head = this;
  ++cache.count;
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
