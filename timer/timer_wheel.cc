// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/timer/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/attributes.h"
#include "absl/base/macros.h"
#include "absl/base/optimization.h"

namespace weft {

namespace {

// So many times as many as the timers of a slot are its entries at most.
constexpr size_t kMaxUsed = 8;

}  // namespace

TimerWheel::TimerWheel(TimePoint start) : now_(ToTicks(start)) {}

TimerWheel::~TimerWheel() {
  ReadyQueue disarmed;  // Its destructor unlinks them.
  DisarmAll(&disarmed);
}

void TimerWheel::DisarmAll(ReadyQueue* disarmed) {
  near_.Clear(disarmed);
  while (occupied_levels_ != 0) {
    const int index = FirstSlotIndex();
    ForEachInSlot(slots_[index], [disarmed](Timer* timer) {
      timer->place_ = Timer::kNowhere;
      disarmed->PushBack(timer);
    });
    MarkEmpty(index);
  }
  size_ = 0;
}

void TimerWheel::Arm(Timer* timer, TimePoint deadline) {
  ABSL_HARDENING_ASSERT(!timer->is_armed() && !timer->is_linked());
  timer->deadline_ = deadline;
  timer->sequence_ = next_sequence_++;
  const Ticks ticks = ToTicks(deadline);
  if (IsNear(ticks)) {
    near_.Add(timer);
  } else {
    AddToSlot(timer, ticks);
  }
  ++size_;
}

void TimerWheel::Disarm(Timer* timer) {
  if (!timer->is_armed()) {
    timer->Unlink();
    return;
  }
  if (ABSL_PREDICT_FALSE(near_.has_due()) && near_.RemoveDue(timer)) return;
  --size_;
  if (near_.Holds(timer)) {
    near_.Remove(timer);
  } else {
    RemoveFromSlot(timer);
  }
}

void TimerWheel::Expire(TimePoint now) {
  // The last moment is never reached, for infinite timers wait for it.
  const Ticks target = std::clamp(ToTicks(now), now_, ToTicks(TimePoint::InfiniteFuture()) - 1);
  const TimePoint moment = ToTimePoint(target);

  while (true) {
    // All near timers come before all far ones.
    if (!near_.empty()) size_ -= near_.Expire(moment);
    if (occupied_levels_ == 0) break;
    const int index = FirstSlotIndex();
    const Ticks start = StartOfSlot(index);
    if (start > target) break;
    now_ = start;
    EnterSlot(index, moment);
  }
  now_ = target;
}

TimePoint TimerWheel::NextWake() const {
  if (!near_.empty()) return near_.earliest();
  if (occupied_levels_ != 0) return ToTimePoint(slots_[FirstSlotIndex()].earliest);
  return TimePoint::InfiniteFuture();
}

TimePoint TimerWheel::NextDeadline() {
  if (!near_.empty()) return near_.FindEarliest();
  if (occupied_levels_ == 0) return TimePoint::InfiniteFuture();
  Slot& slot = slots_[FirstSlotIndex()];
  TimePoint earliest = TimePoint::InfiniteFuture();
  ForEachInSlot(slot, [&](Timer* timer) { earliest = std::min(earliest, timer->deadline_); });
  slot.earliest = ToTicks(earliest);
  return earliest;
}

// The highest digit in which the deadline differs from now is that of its
// level: above it they share their slots, below it the slot is not entered yet.
inline int TimerWheel::LevelOf(Ticks deadline) const {
  const int highest_bit = std::bit_width(deadline ^ now_) - 1;
  return static_cast<int>(static_cast<unsigned>(highest_bit - kSlotShift) / kLevelBits);
}

inline int TimerWheel::DigitOf(Ticks deadline, int level) {
  return static_cast<int>(deadline >> (kSlotShift + level * kLevelBits)) & (kSlots - 1);
}

// The slot that time enters next. A lower level lies within the current slot
// of each higher one, so it comes first; and no slot behind now is occupied.
int TimerWheel::FirstSlotIndex() const {
  const int level = std::countr_zero(occupied_levels_);
  return level * kSlots + std::countr_zero(occupied_[level]);
}

TimerWheel::Ticks TimerWheel::StartOfSlot(int index) const {
  const int shift = kSlotShift + index / kSlots * kLevelBits;
  const Ticks digits = (now_ >> shift & ~Ticks{kSlots - 1}) | static_cast<Ticks>(index % kSlots);
  return digits << shift;
}

// What is rare is in one other function, so that this has nothing to save.
inline void TimerWheel::AddToSlot(Timer* timer, Ticks deadline) {
  const int level = LevelOf(deadline);
  const int digit = DigitOf(deadline, level);
  Slot& slot = slots_[level * kSlots + digit];
  if (ABSL_PREDICT_FALSE((occupied_[level] >> digit & 1) == 0)) {
    return AddToSlotSlowly(timer, deadline);
  }
  Entry* place = slot.hole;
  if (place == nullptr) {
    if (ABSL_PREDICT_FALSE(IsFull(slot))) return AddToSlotSlowly(timer, deadline);
    place = slot.end++;
    ++slot.used;
  } else {
    slot.hole = reinterpret_cast<Entry*>(*place - kHole);
  }
  ++slot.live;
  if (deadline < slot.earliest) slot.earliest = deadline;
  *place = reinterpret_cast<Entry>(timer);
  timer->place_ = reinterpret_cast<uintptr_t>(place);
}

ABSL_ATTRIBUTE_NOINLINE void TimerWheel::AddToSlotSlowly(Timer* timer, Ticks deadline) {
  const int index = SlotIndexOf(deadline);
  if (!IsOccupied(index)) {
    OpenSlot(index, deadline);
  } else {
    AddBlock(&slots_[index]);
  }
  AddToSlot(timer, deadline);
}

void TimerWheel::OpenSlot(int index, Ticks deadline) {
  Block* const first = NewBlock();
  MarkOccupied(index);
  Slot& slot = slots_[index];
  slot.first = first;
  slot.end = slot.first->begin();
  slot.hole = nullptr;
  slot.earliest = deadline;
  slot.live = slot.used = 0;
}

void TimerWheel::AddBlock(Slot* slot) {
  Block* const last = BlockOf(slot->end - 1);
  last->next = NewBlock();
  slot->end = last->next->begin();
}

// Leaves a hole for the next that comes; to move another timer there would mean to
// touch that one, too. `earliest` stays: to know the new one would mean a search.
void TimerWheel::RemoveFromSlot(Timer* timer) {
  const int index = SlotIndexOf(ToTicks(timer->deadline_));
  Slot& slot = slots_[index];
  auto* const place = reinterpret_cast<Entry*>(timer->place_);
  ABSL_ASSERT(TimerOf(*place) == timer);
  timer->place_ = Timer::kNowhere;
  *place = reinterpret_cast<Entry>(slot.hole) + kHole;
  slot.hole = place;

  if (ABSL_PREDICT_TRUE(--slot.live * kMaxUsed >= slot.used)) return;
  if (slot.live == 0) {
    MarkEmpty(index);
    FreeBlocks(slot.first, BlockOf(slot.end - 1));
  } else if (slot.used > Block::kEntries) {
    CloseHoles(&slot);
  }
}

// Makes room if most of a slot is holes.
ABSL_ATTRIBUTE_NOINLINE void TimerWheel::CloseHoles(Slot* slot) {
  Block* to = slot->first;
  Entry* place = to->begin();
  ForEachInSlot(*slot, [&](Timer* timer) {
    if (place == to->end()) {
      to = to->next;
      place = to->begin();
    }
    timer->place_ = reinterpret_cast<uintptr_t>(place);
    *place++ = reinterpret_cast<Entry>(timer);
  });
  if (to->next != nullptr) FreeBlocks(to->next, BlockOf(slot->end - 1));
  to->next = nullptr;
  slot->end = place;
  slot->hole = nullptr;
  slot->used = slot->live;
}

// Moves the timers of a slot that time has just entered to where they belong now.
void TimerWheel::EnterSlot(int index, TimePoint now) {
  const Slot slot = slots_[index];
  MarkEmpty(index);
  ForEachInSlot(slot, [this](Timer* timer) {
    const Ticks deadline = ToTicks(timer->deadline_);
    if (IsNear(deadline)) {
      near_.Collect(timer);
    } else {
      AddToSlot(timer, deadline);
    }
  });
  FreeBlocks(slot.first, BlockOf(slot.end - 1));
  near_.Sort(now);
}

void TimerWheel::FetchTimers(const Slot& slot, Block* block) {
  Entry* const end = EndOf(slot, block);
  for (Entry* entry = block->begin(); entry != end; ++entry) {
    if (!IsHole(*entry)) __builtin_prefetch(TimerOf(*entry), /*rw=*/1);
  }
}

TimerWheel::Block* TimerWheel::BlockOf(Entry* entry) {
  return reinterpret_cast<Block*>(reinterpret_cast<uintptr_t>(entry) & ~(sizeof(Block) - 1));
}

void TimerWheel::MarkOccupied(int index) {
  occupied_levels_ |= 1u << (index / kSlots);
  occupied_[index / kSlots] |= BitOf(index);
}

void TimerWheel::MarkEmpty(int index) {
  occupied_[index / kSlots] &= ~BitOf(index);
  if (occupied_[index / kSlots] == 0) occupied_levels_ &= ~(1u << (index / kSlots));
}

// The timers are scattered over memory: those of the next block are fetched while
// one is dealt with.
template <class Visit>
void TimerWheel::ForEachInSlot(const Slot& slot, Visit visit) {
  FetchTimers(slot, slot.first);
  for (Block* block = slot.first; block != nullptr;) {
    Block* const next = block->next;
    Entry* const end = EndOf(slot, block);
    if (next != nullptr) FetchTimers(slot, next);
    for (Entry* entry = block->begin(); entry != end; ++entry) {
      if (!IsHole(*entry)) visit(TimerOf(*entry));
    }
    block = next;
  }
}

TimerWheel::Block* TimerWheel::NewBlock() {
  if (ABSL_PREDICT_FALSE(free_blocks_ == nullptr)) AllocateBlocks();
  Block* block = free_blocks_;
  free_blocks_ = block->next;
  block->next = nullptr;
  return block;
}

void TimerWheel::FreeBlocks(Block* first, Block* last) {
  last->next = free_blocks_;
  free_blocks_ = first;
}

// 2 KB at first, 64 KB in the end.
void TimerWheel::AllocateBlocks() {
  const size_t count = size_t{8} << std::min(blocks_.size(), size_t{5});
  blocks_.emplace_back(new Block[count]);
  for (size_t i = count; i > 0; --i) FreeBlocks(&blocks_.back()[i - 1], &blocks_.back()[i - 1]);
}

}  // namespace weft
