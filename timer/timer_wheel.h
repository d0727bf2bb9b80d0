// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TIMER_TIMER_WHEEL_H_
#define WEFT_TIMER_TIMER_WHEEL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"
#include "weft/timer/near_timers.h"

namespace weft {

// TimerWheel
//
// All timers of one loop, as a hierarchical timing wheel with exact order.
// Arming and disarming cost O(1), whatever the number of timers; O(log n) only
// among those that are armed out of order within the current slot.
//
// The wheel reads no clock and makes no system call. The loop asks it how long
// to sleep and tells it what time it is, so a test drives it by hand:
//
//   TimerWheel wheel(clock->Now());
//   wheel.Arm(&timer, clock->Now() + absl::Milliseconds(20));
//   poller->Wait(wheel.NextWake(), &ready);
//   wheel.Advance(clock->Now(), &ready);
//
//   level   slot      reach       A far timer sits at the lowest level whose
//   0       4 ms      268 ms      reach covers it, in no order. When time
//   1       268 ms    17 s        enters a slot above level 0, its timers move
//   2       17 s      18 min      down. When it enters one of level 0, they
//   3..6    18 min    584 years   move to the near timers and are sorted.
//
// Guarantees:
//   * A timer never fires early.
//   * Timers fire in the order of their deadlines; equal ones in the order
//     they were armed. A timer that is armed again counts as armed anew.
//   * A timer moves at most `kLevels` times, and empty slots cost nothing:
//     `Advance()` after an idle day is as fast as after a millisecond.
//   * Nothing is allocated per timer. The wheel keeps 8 bytes for each, at
//     most 64 with holes (24 for a near one), in blocks that it uses again, and
//     frees in its destructor.
//
// Threads: belongs to the loop's thread.
// Python: the heap behind `loop.call_at`; the wheel replaces it because most
// timeouts are cancelled before they fire.
class TimerWheel {
 public:
  // A wheel whose time is `start`.
  explicit TimerWheel(TimePoint start);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Disarms all timers. Those that are due already are in a queue, and stay.
  ~TimerWheel();

  // Makes `timer` due at `deadline`. One that is past is due at the next
  // `Advance()`; an infinite one never is.
  // REQUIRES: `timer` is neither armed nor queued.
  void Arm(Timer* timer, TimePoint deadline);

  // Makes sure that `timer` does not run: takes it out of the wheel, or out of
  // the queue if it is due already. Does nothing to an idle one.
  void Disarm(Timer* timer);

  // Takes all timers out of the wheel and appends them to `disarmed`, in no
  // order: for who must give each back to its owner.
  void DisarmAll(ReadyQueue* disarmed);

  // Moves time to `now` and appends the timers that are due to `due`. Time that
  // goes back stands still.
  void Advance(TimePoint now, ReadyQueue* due) {
    Expire(now);
    TakeDue(std::numeric_limits<size_t>::max(), due);
  }

  // The same in two steps, so that of many only some at a time have to be in the
  // cache: moves time to `now`; then appends the next `count` of those that are
  // due to `due`, until there are no more. What is armed in between waits for the
  // next `Expire()`. REQUIRES: Expire(): has_due() is false.
  void Expire(TimePoint now);
  void TakeDue(size_t count, ReadyQueue* due) { near_.TakeDue(count, due); }
  bool has_due() const { return near_.has_due(); }
  size_t due_count() const { return near_.due_count(); }

  // When to call `Advance()` next: not after the first deadline, and before it
  // only if timers were disarmed; then at most once a level. `InfiniteFuture()`
  // if no timer will ever be due.
  TimePoint NextWake() const;

  // The first deadline, exactly; `InfiniteFuture()` if there is none. May look
  // at all timers of one slot.
  TimePoint NextDeadline();

  // The armed timers that are not due, infinite ones included.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  // A moment as a number without sign, so that its bits are digits: the lowest
  // `kSlotShift` lie within one slot of level 0, and each `kLevelBits` above
  // select the slot of one level.
  using Ticks = uint64_t;

  static constexpr int kSlotShift = 22;
  static constexpr int kLevelBits = 6;
  static constexpr int kSlots = 1 << kLevelBits;
  static constexpr int kLevels = (64 - kSlotShift) / kLevelBits;
  static_assert(kSlotShift + kLevels * kLevelBits == 64 && kSlots == 64);

  // A timer, or a hole: then the address of the next hole of its slot, and 1.
  using Entry = uintptr_t;
  static constexpr Entry kHole = 1;
  static bool IsHole(Entry entry) { return (entry & kHole) != 0; }
  static Timer* TimerOf(Entry entry) { return reinterpret_cast<Timer*>(entry); }

  // Timers of one slot: a piece of a chain. Aligned to its size, so that the
  // address of an entry tells the block, and whether it is the last of it.
  struct alignas(256) Block {
    static constexpr size_t kEntries = 31;

    Entry* begin() { return entries; }
    Entry* end() { return entries + kEntries; }

    Block* next;
    Entry entries[kEntries];
  };
  static_assert(sizeof(Block) == alignof(Block));
  static_assert(sizeof(Block*) + Block::kEntries * sizeof(Entry) == sizeof(Block));

  // Means something only while its bit in `occupied_` is set; so an unused
  // wheel does not even touch its memory.
  struct Slot {
    Entry* end;      // Behind the last entry, in the last block.
    Entry* hole;     // The one to be filled next, or null.
    Ticks earliest;  // No later than the first deadline.
    size_t live;     // The timers.
    size_t used;     // Timers and holes.
    Block* first;
  };
  static_assert(std::is_trivial_v<Slot>);

  static Ticks ToTicks(TimePoint moment) {
    return static_cast<uint64_t>(moment.nanoseconds()) ^ (uint64_t{1} << 63);
  }
  static TimePoint ToTimePoint(Ticks ticks) {
    return TimePoint::FromNanoseconds(static_cast<int64_t>(ticks ^ (uint64_t{1} << 63)));
  }

  bool IsNear(Ticks deadline) const { return deadline >> kSlotShift <= now_ >> kSlotShift; }

  // Where a far deadline belongs: a function of it and of the time alone, since
  // a timer moves whenever time changes the answer.
  int LevelOf(Ticks deadline) const;
  static int DigitOf(Ticks deadline, int level);
  int SlotIndexOf(Ticks deadline) const {
    const int level = LevelOf(deadline);
    return level * kSlots + DigitOf(deadline, level);
  }
  int FirstSlotIndex() const;
  Ticks StartOfSlot(int index) const;

  void AddToSlot(Timer* timer, Ticks deadline);
  void RemoveFromSlot(Timer* timer);
  void EnterSlot(int index, TimePoint now);
  void AddToSlotSlowly(Timer* timer, Ticks deadline);
  void OpenSlot(int index, Ticks deadline);
  void AddBlock(Slot* slot);
  void CloseHoles(Slot* slot);

  static Block* BlockOf(Entry* entry);
  static Entry* EndOf(const Slot& slot, Block* block) {
    return block->next == nullptr ? slot.end : block->end();
  }
  static bool IsFull(const Slot& slot) {
    return reinterpret_cast<uintptr_t>(slot.end) % sizeof(Block) == 0;
  }
  static void FetchTimers(const Slot& slot, Block* block);
  static uint64_t BitOf(int index) { return uint64_t{1} << (index % kSlots); }
  bool IsOccupied(int index) const { return (occupied_[index / kSlots] & BitOf(index)) != 0; }
  void MarkOccupied(int index);
  void MarkEmpty(int index);
  template <class Visit>
  static void ForEachInSlot(const Slot& slot, Visit visit);
  Block* NewBlock();
  // `last` is the end of a chain.
  void FreeBlocks(Block* first, Block* last);
  void AllocateBlocks();

  Ticks now_;  // Never goes back. Timers up to the end of its slot are near.
  size_t size_ = 0;
  uint64_t next_sequence_ = 0;
  internal::NearTimers near_;

  uint32_t occupied_levels_ = 0;     // A bit for each level with such a slot.
  uint64_t occupied_[kLevels] = {};  // A bit for each slot that holds timers.
  Slot slots_[kLevels * kSlots];

  Block* free_blocks_ = nullptr;
  std::vector<std::unique_ptr<Block[]>> blocks_;
};

}  // namespace weft

#endif  // WEFT_TIMER_TIMER_WHEEL_H_
