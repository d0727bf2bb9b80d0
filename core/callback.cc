// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/callback.h"

#include <algorithm>
#include <bit>
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
static_assert(sizeof(CallbackSlot) == SlabMap::kPlaceSize && kBatch == SlabMap::kPlaces);

constexpr size_t kLargestPiece = size_t{2} << 20;

// A thread that needs one more when there are so many is far ahead of the loop, and new ones are
// slow, to come by and to go through. So it lets the loop's thread run, if that waits for this
// processor, for each slab.
constexpr size_t kManySlabs = 64;

// Free slots that no thread keeps. A thread that posts takes what the loop's
// thread, which runs the posts, has received.
struct Depot {
  std::mutex mutex;
  CallbackSlot* batches = nullptr;  // The first slot of each, linked by NextBatchOf().
  std::unordered_set<uintptr_t> slabs;
  // What slabs are made of: each piece as large as all before, up to a limit.
  uintptr_t fresh = 0;
  uintptr_t fresh_end = 0;
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
CallbackSlot* TakeBatch() {
  Depot& depot = TheDepot();
  std::lock_guard<std::mutex> lock(depot.mutex);
  CallbackSlot* const first = depot.batches;
  if (first != nullptr) depot.batches = CallbackSlotCache::NextBatchOf(first);
  return first;
}

// What destructors of thread_local objects free later still is used no more.
constinit thread_local ThreadExitHook empty_cache([] {
  CallbackSlotCache& cache = callback_slot_cache;
  while (CallbackSlotCache::TakeSlabOfTimers()) CallbackSlotCache::MoveTimerSlotsToList();
  cache.timer_slab = 0;
  delete std::exchange(cache.timer_map, nullptr);
  while (GiveToDepot()) {
  }
});

// A new slab; its slots are made. They lie close together, so that few pages hold them.
// `is_many`: whether there are many.
CallbackSlot* MakeSlab(bool* is_many) {
  Depot& depot = TheDepot();
  CallbackSlot* slab;
  {
    std::lock_guard<std::mutex> lock(depot.mutex);
    if (depot.fresh == depot.fresh_end) {
      const size_t all = std::bit_floor(depot.slabs.size() * kSlabSize);
      const size_t size = std::clamp(all, kSlabSize, kLargestPiece);
      depot.fresh = reinterpret_cast<uintptr_t>(::operator new(size, std::align_val_t(size)));
      depot.fresh_end = depot.fresh + size;
    }
    depot.slabs.insert(depot.fresh);
    *is_many = depot.slabs.size() > kManySlabs;
    slab = reinterpret_cast<CallbackSlot*>(std::exchange(depot.fresh, depot.fresh + kSlabSize));
  }
  for (uint32_t i = 0; i < kBatch; ++i) new (&slab[i]) CallbackSlot;
  return slab;
}

}  // namespace

constinit thread_local CallbackSlotCache callback_slot_cache;

// Moves what is at hand for timers to the list, the first in front.
void CallbackSlotCache::MoveTimerSlotsToList() {
  CallbackSlotCache& cache = callback_slot_cache;
  auto* const slab = reinterpret_cast<CallbackSlot*>(cache.timer_slab);
  for (uint64_t free = std::exchange(cache.timer_free, 0); free != 0;) {
    const int i = std::bit_width(free) - 1;
    free &= ~(uint64_t{1} << i);
    SetNext(&slab[i], cache.head);
    cache.head = &slab[i];
  }
}

// Has the next slab with free slots at hand; false if there is none.
bool CallbackSlotCache::TakeSlabOfTimers() {
  CallbackSlotCache& cache = callback_slot_cache;
  if (cache.timer_free != 0) return true;
  if (cache.timer_map == nullptr) return false;
  const SlabMap::Places places = cache.timer_map->Take();
  if (places.free == 0) return false;
  cache.timer_slab = places.slab;
  cache.timer_free = places.free;
  return true;
}

bool CallbackSlotCache::TakeFromDepot() {
  CallbackSlotCache& cache = callback_slot_cache;
  cache.head = TakeBatch();
  return cache.head != nullptr;
}

// Has a new slab at hand. After the thread's last hook it is not the thread's. Returns whether
// there are many by now.
bool CallbackSlotCache::TakeNewSlab() {
  CallbackSlotCache& cache = callback_slot_cache;
  bool is_many = false;
  const auto slab = reinterpret_cast<uintptr_t>(MakeSlab(&is_many));
  if (empty_cache.Register()) {
    if (cache.timer_map == nullptr) cache.timer_map = new SlabMap;
    cache.timer_map->AddSlab(slab);
  }
  cache.timer_slab = slab;
  cache.timer_free = ~uint64_t{0};
  return is_many;
}

CallbackSlot* CallbackSlotCache::Refill() {
  GiveBackAtThreadExit();
  if (!TakeFromDepot()) {
    if (!TakeSlabOfTimers()) {
      const bool is_many = TakeNewSlab();
      if (is_many && Scheduler::Current() == nullptr) std::this_thread::yield();
    }
    MoveTimerSlotsToList();
  }
  return CallbackSlot::Allocate();
}

CallbackSlot* CallbackSlotCache::RefillForTimer() {
  GiveBackAtThreadExit();
  if (!TakeSlabOfTimers()) {
    if (callback_slot_cache.head != nullptr || TakeFromDepot()) return CallbackSlot::TakeFree();
    TakeNewSlab();
  }
  return CallbackSlot::AllocateForTimer();
}

// What is of another thread's slab goes its way back.
void CallbackSlotCache::RecycleElsewhere(CallbackSlot* slot) {
  SlabMap* const map = callback_slot_cache.timer_map;
  if (map != nullptr && map->Add(reinterpret_cast<uintptr_t>(slot))) return;
  slot->Recycle(CallbackSlot::Kind::kPlain);
  OnReceived();
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
  const uint64_t word = slot->word_.load(std::memory_order_relaxed);
  slot->NextGeneration(/*cancelled=*/false);
  if ((word & kForeign) != 0) CallbackSlotCache::OnReceived();
  if (slot->context_) {
    callback_slot_cache.entered_context = &slot->context_;
    Scheduler::Current()->core()->current_context = &slot->context_;
  }
  call(slot);
  slot->End(KindOf(word));
}

void CallbackSlot::LeaveContextAndRecycle(Kind kind) {
  SchedulerCore* core = Scheduler::Current()->core();
  core->current_context = &core->no_context;
  *std::exchange(callback_slot_cache.entered_context, nullptr) = ContextRef();
  Recycle(kind);
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
  if ((word & (kIsBare | kHasContext)) == kIsBare) return Recycle(Kind::kTimer);
  if ((word & kForeign) != 0) CallbackSlotCache::OnReceived();
  DestroyAndRecycle(KindOf(word));
}

void CallbackSlot::Drop() {
  const Kind kind = KindOf(word_.load(std::memory_order_relaxed));
  NextGeneration(/*cancelled=*/false);
  if (kind == Kind::kPlain) CallbackSlotCache::OnReceived();
  DestroyAndRecycle(kind);
}

void CallbackSlot::DestroyAndRecycle(Kind kind) {
  if (auto destroy = std::exchange(destroy_, nullptr)) destroy(this);
  context_ = ContextRef();
  Recycle(kind);
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
