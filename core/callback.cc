// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/callback.h"

#include <mutex>
#include <thread>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/scheduler.h"
#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

// Slots that move between a thread and the depot at once, and that are made together: a
// slab, aligned to its size, so that a slot's address tells it.
constexpr uint32_t kBatch = 64;
constexpr size_t kSlabSize = kBatch * sizeof(CallbackSlot);
static_assert(kSlabSize == 8192, "a slot is two cache lines");

// A thread that posts when so many are in use is ahead of the loop by as much, and new ones are
// slow, to come by and to go through. So it lets the loop's thread run, if that waits for this
// processor, for each slab.
constexpr size_t kManySlabs = 64;

// Free slots that no thread keeps. A thread that posts takes what the loop's
// thread, which runs the posts, has received.
struct Depot {
  std::mutex mutex;
  CallbackSlot* batches = nullptr;  // The first slot of each, linked by NextBatchOf().
  std::unordered_set<uintptr_t> slabs;
};

// Never destroyed: slots are used as long as any thread runs.
Depot& TheDepot() {
  static Depot* depot = new Depot;
  return *depot;
}

// Moves a batch of this thread's slots to the depot, or what there is. False if there are none.
bool GiveToDepot() {
  CallbackSlotCache& cache = callback_slot_cache;
  if (cache.head == nullptr) return false;
  CallbackSlot* first = cache.head;
  CallbackSlot* last = first;
  for (uint32_t moved = 1; moved < kBatch && CallbackSlotCache::NextOf(last) != nullptr; ++moved) {
    last = CallbackSlotCache::NextOf(last);
  }
  cache.head = CallbackSlotCache::NextOf(last);
  CallbackSlotCache::NextOf(last) = nullptr;

  Depot& depot = TheDepot();
  std::lock_guard<std::mutex> lock(depot.mutex);
  CallbackSlotCache::SetNextBatch(first, depot.batches);
  depot.batches = first;
  return true;
}

// A batch, linked by NextOf(); null if there is none.
CallbackSlot* TakeFromDepot() {
  Depot& depot = TheDepot();
  std::lock_guard<std::mutex> lock(depot.mutex);
  CallbackSlot* const first = depot.batches;
  if (first != nullptr) depot.batches = CallbackSlotCache::NextBatchOf(first);
  return first;
}

// What destructors of thread_local objects free later still is used no more.
constinit thread_local ThreadExitHook empty_cache([] {
  while (GiveToDepot()) {
  }
});

}  // namespace

constinit thread_local CallbackSlotCache callback_slot_cache;

CallbackSlot* CallbackSlotCache::Refill() {
  GiveBackAtThreadExit();
  CallbackSlotCache& cache = callback_slot_cache;
  cache.head = TakeFromDepot();
  if (cache.head == nullptr) {
    auto* slab = static_cast<CallbackSlot*>(::operator new(kSlabSize, std::align_val_t(kSlabSize)));
    bool is_far_ahead;
    {
      Depot& depot = TheDepot();
      std::lock_guard<std::mutex> lock(depot.mutex);
      depot.slabs.insert(reinterpret_cast<uintptr_t>(slab));
      is_far_ahead = depot.slabs.size() > kManySlabs && Scheduler::Current() == nullptr;
    }
    if (is_far_ahead) std::this_thread::yield();
    for (uint32_t i = 0; i < kBatch; ++i) new (&slab[i]) CallbackSlot;
    for (uint32_t i = kBatch; i-- > 0;) {
      SetNext(&slab[i], cache.head);
      cache.head = &slab[i];
    }
  }
  return CallbackSlot::Allocate();
}

void CallbackSlotCache::OnReceived() {
  GiveBackAtThreadExit();
  CallbackSlotCache& cache = callback_slot_cache;
  if (++cache.received < kBatch) return;
  cache.received = 0;
  GiveToDepot();
}

void CallbackSlotCache::GiveBackAtThreadExit() { empty_cache.Register(); }

bool CallbackSlot::IsSlot(const Runnable* runnable) {
  Depot& depot = TheDepot();
  std::lock_guard<std::mutex> lock(depot.mutex);
  return depot.slabs.contains(reinterpret_cast<uintptr_t>(runnable) / kSlabSize * kSlabSize);
}

bool CallbackSlot::WasCancelled(uint64_t generation, bool unknown) const {
  const uint64_t word = word_.load(std::memory_order_relaxed);
  const uint64_t uses_ago = Generation(word) - generation;
  if (uses_ago == 0) return false;
  if (uses_ago > kHistoryBits) return unknown;
  return (word >> (uses_ago - 1) & 1) != 0;
}

void CallbackSlot::NextGeneration(bool cancelled) {
  const uint64_t word = word_.load(std::memory_order_relaxed);
  const uint64_t history = (word << 1 | (cancelled ? 1 : 0)) & kHistoryMask;
  word_.store((Generation(word) << kGenerationShift | history) + kOneGeneration,
              std::memory_order_relaxed);
}

void CallbackSlot::RunOtherwise(CallbackSlot* slot, void (*call)(CallbackSlot*)) {
  const bool is_foreign = (slot->word_.load(std::memory_order_relaxed) & kForeign) != 0;
  slot->NextGeneration(/*cancelled=*/false);
  if (is_foreign) CallbackSlotCache::OnReceived();
  if (slot->context_) {
    callback_slot_cache.entered_context = &slot->context_;
    Scheduler::Current()->core()->current_context = &slot->context_;
  }
  call(slot);
  slot->End();
}

void CallbackSlot::LeaveContextAndRecycle() {
  SchedulerCore* core = Scheduler::Current()->core();
  core->current_context = &core->no_context;
  *std::exchange(callback_slot_cache.entered_context, nullptr) = ContextRef();
  Recycle();
}

void CallbackSlot::Cancel(Scheduler* scheduler) {
  scheduler->CheckThread();
  const uint64_t word = word_.load(std::memory_order_relaxed);
  NextGeneration(/*cancelled=*/true);
  if ((word & kPosted) != 0) {
    set_run([](Runnable* slot) { static_cast<CallbackSlot*>(slot)->Drop(); });
    auto destroy = std::exchange(destroy_, nullptr);
    context_ = ContextRef();
    if (destroy != nullptr) destroy(this);
    return;
  }
  if (is_armed()) {
    scheduler->Disarm(this);
  } else {
    Unlink();
  }
  if ((word & kForeign) != 0) CallbackSlotCache::OnReceived();
  DestroyAndRecycle();
}

void CallbackSlot::Drop() {
  NextGeneration(/*cancelled=*/false);
  CallbackSlotCache::OnReceived();
  DestroyAndRecycle();
}

void CallbackSlot::DestroyAndRecycle() {
  if (auto destroy = std::exchange(destroy_, nullptr)) destroy(this);
  context_ = ContextRef();
  Recycle();
}

void CallbackSlot::ReportException() {
  if (IsHandlingKeyboardInterrupt() && Scheduler::Current()->Interrupt()) return;
  ExceptionContext context;
  context.message = "Exception in callback " + ToString(location_);
  context.exception = std::current_exception();
  context.handle = Handle(nullptr, this, generation() - 1);
  context.location = location_;
  Scheduler::Current()->HandleException(std::move(context));
}

}  // namespace weft::internal

namespace weft {

std::string Handle::Text(std::string name) const {
  if (slot_ == nullptr) return absl::StrCat("<", name, " none>");
  const bool cancelled = Cancelled();
  if (cancelled) name += " cancelled";
  const SourceLocation where = location();
  if (where.line() != 0) return absl::StrCat("<", name, " created at ", weft::ToString(where), ">");
  return absl::StrCat("<", name, cancelled ? ">" : " done>");
}

std::string TimerHandle::ToString() const {
  return Text(absl::StrCat("TimerHandle when=", absl::FormatDuration(when_ - TimePoint())));
}

}  // namespace weft
