// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/timer/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"

namespace weft {

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
  ++size_;
  const Ticks ticks = ToTicks(deadline);
  if (IsNear(ticks)) {
    near_.Add(timer);
  } else {
    AddToSlot(timer, ticks);
  }
}

void TimerWheel::Disarm(Timer* timer) {
  if (!timer->is_armed()) {
    timer->Unlink();
    return;
  }
  --size_;
  if (near_.Holds(timer)) {
    near_.Remove(timer);
  } else {
    RemoveFromSlot(timer);
  }
}

void TimerWheel::Advance(TimePoint now, ReadyQueue* due) {
  // The last moment is never reached, for infinite timers wait for it.
  const Ticks target = std::clamp(ToTicks(now), now_, ToTicks(TimePoint::InfiniteFuture()) - 1);
  const TimePoint moment = ToTimePoint(target);

  while (true) {
    // All near timers come before all far ones.
    if (!near_.empty()) size_ -= near_.MoveDue(moment, due);
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
  if (!near_.empty()) return near_.earliest();
  if (occupied_levels_ == 0) return TimePoint::InfiniteFuture();
  Slot& slot = slots_[FirstSlotIndex()];
  TimePoint earliest = TimePoint::InfiniteFuture();
  ForEachInSlot(slot, [&](Timer* timer) { earliest = std::min(earliest, timer->deadline_); });
  slot.earliest = ToTicks(earliest);
  return earliest;
}

// The highest digit in which the deadline differs from now is that of its
// level: above it they share their slots, below it the slot is not entered yet.
int TimerWheel::SlotIndexOf(Ticks deadline) const {
  const int highest_bit = 63 - std::countl_zero(deadline ^ now_);
  const int level = static_cast<int>(static_cast<unsigned>(highest_bit - kSlotShift) / kLevelBits);
  const int digit = static_cast<int>(deadline >> (kSlotShift + level * kLevelBits)) & (kSlots - 1);
  return level * kSlots + digit;
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

void TimerWheel::AddToSlot(Timer* timer, Ticks deadline) {
  const int index = SlotIndexOf(deadline);
  Slot& slot = slots_[index];
  if (!IsOccupied(index)) {
    MarkOccupied(index);
    slot.first = NewBlock();
    slot.first->next = slot.first->previous = nullptr;
    slot.end = slot.first->begin();
    slot.earliest = deadline;
  } else {
    if (Block* last = BlockOf(slot.end - 1); slot.end == last->end()) {
      last->next = NewBlock();
      last->next->previous = last;
      last->next->next = nullptr;
      slot.end = last->next->begin();
    }
    slot.earliest = std::min(slot.earliest, deadline);
  }
  timer->place_ = reinterpret_cast<uintptr_t>(slot.end);
  *slot.end++ = timer;
}

// The last entry takes the place of the one that leaves. `earliest` stays: to
// know the new one would mean a search.
void TimerWheel::RemoveFromSlot(Timer* timer) {
  const int index = SlotIndexOf(ToTicks(timer->deadline_));
  Slot& slot = slots_[index];
  Timer** place = reinterpret_cast<Timer**>(timer->place_);
  ABSL_ASSERT(*place == timer);
  Timer* last = *--slot.end;
  *place = last;
  last->place_ = reinterpret_cast<uintptr_t>(place);
  timer->place_ = Timer::kNowhere;  // Here, as it may be the last one itself.

  Block* block = BlockOf(slot.end);
  if (slot.end != block->begin()) return;
  if (block->previous != nullptr) {
    block->previous->next = nullptr;
    slot.end = block->previous->end();
  } else {
    MarkEmpty(index);
  }
  FreeBlock(block);
}

// Moves the timers of a slot that time has just entered to where they belong
// now. They are scattered over memory: those of the next block are fetched
// while this one is dealt with.
void TimerWheel::EnterSlot(int index, TimePoint now) {
  const Slot slot = slots_[index];
  MarkEmpty(index);
  FetchTimers(slot, slot.first);
  for (Block* block = slot.first; block != nullptr;) {
    Block* const next = block->next;
    Timer** const end = EndOf(slot, block);
    if (next != nullptr) FetchTimers(slot, next);
    for (Timer** entry = block->begin(); entry != end; ++entry) {
      const Ticks deadline = ToTicks((*entry)->deadline_);
      if (IsNear(deadline)) {
        near_.Collect(*entry);
      } else {
        AddToSlot(*entry, deadline);
      }
    }
    FreeBlock(block);
    block = next;
  }
  near_.Sort(now);
}

void TimerWheel::FetchTimers(const Slot& slot, Block* block) {
  Timer** const end = EndOf(slot, block);
  for (Timer** entry = block->begin(); entry != end; ++entry) {
    __builtin_prefetch(*entry, /*rw=*/1);
  }
}

TimerWheel::Block* TimerWheel::BlockOf(Timer** entry) {
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

template <class Visit>
void TimerWheel::ForEachInSlot(const Slot& slot, Visit visit) {
  for (Block* block = slot.first; block != nullptr; block = block->next) {
    Timer** const end = EndOf(slot, block);
    for (Timer** entry = block->begin(); entry != end; ++entry) visit(*entry);
  }
}

TimerWheel::Block* TimerWheel::NewBlock() {
  if (ABSL_PREDICT_FALSE(free_blocks_ == nullptr)) AllocateBlocks();
  Block* block = free_blocks_;
  free_blocks_ = block->next;
  return block;
}

void TimerWheel::FreeBlock(Block* block) {
  block->next = free_blocks_;
  free_blocks_ = block;
}

// 2 KB at first, 64 KB in the end.
void TimerWheel::AllocateBlocks() {
  const size_t count = size_t{8} << std::min(blocks_.size(), size_t{5});
  blocks_.emplace_back(new Block[count]);
  for (size_t i = count; i > 0; --i) FreeBlock(&blocks_.back()[i - 1]);
}

}  // namespace weft
