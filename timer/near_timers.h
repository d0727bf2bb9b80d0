// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TIMER_NEAR_TIMERS_H_
#define WEFT_TIMER_NEAR_TIMERS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/core/timer.h"

namespace weft::internal {

// NearTimers
//
// The timers of a `TimerWheel` that are due next, in exact order: by deadline,
// equal ones in the order of arming. Two arrays share the work, and what is due
// is taken from whichever has the earlier timer in front:
//
//   run    Sorted. Holds what time found in a slot when it entered it, and
//          takes whatever is armed behind its end: equal delays arrive in
//          order. Taking is a step, cancelling leaves a hole: O(1) each.
//   heap   Four children a node. Holds what is armed out of order. O(log n).
//
// Both keep deadline and order beside the pointer, so that comparing touches no
// timer. They grow, by doubling, and keep their memory. Holes are at most half
// of the run before it grows.
//
// Threads: belongs to the loop's thread.
class NearTimers {
 public:
  bool empty() const { return live_ == 0 && heap_.empty(); }

  // The earliest deadline. REQUIRES: not empty.
  TimePoint earliest() const {
    if (heap_.empty()) return run_[head_].deadline;
    if (live_ == 0 || IsBefore(heap_.front(), run_[head_])) return heap_.front().deadline;
    return run_[head_].deadline;
  }

  // Takes a timer that was armed after all that are here.
  void Add(Timer* timer) {
    const Entry entry = {timer->deadline_, timer->sequence_, timer};
    if (live_ == 0 || run_.back().deadline <= entry.deadline) {
      AppendToRun(entry);
    } else {
      AddToHeap(entry);
    }
  }

  // Takes many timers in any order: `Collect()` each, then `Sort()`, and then
  // `MoveDue()` with the same time: `Sort()` leaves those alone that go at once.
  // REQUIRES: empty before the first; nothing else is called in between.
  void Collect(Timer* timer) { run_.push_back({timer->deadline_, timer->sequence_, timer}); }
  void Sort(TimePoint now);

  // REQUIRES: `timer` is here.
  void Remove(Timer* timer);

  // Appends the timers that are due at `now` to `due`, and returns how many
  // they are.
  size_t MoveDue(TimePoint now, ReadyQueue* due);

  // Disarms all timers, and appends them to `disarmed`.
  void Clear(ReadyQueue* disarmed);

  // Whether an armed timer is in here and not in a far slot, whose places are
  // addresses.
  static bool Holds(const Timer* timer) { return (timer->place_ & kTagMask) != 0; }

 private:
  struct Entry {
    TimePoint deadline;
    uint64_t sequence;
    Timer* timer;  // Null if this is a hole.
  };

  // A timer's place is an index and one of these.
  static constexpr uintptr_t kTagMask = 3;
  static constexpr uintptr_t kInRun = 1;
  static constexpr uintptr_t kInHeap = 2;
  static constexpr int kTagBits = 2;

  static bool IsBefore(const Entry& a, const Entry& b) {
    return a.deadline != b.deadline ? a.deadline < b.deadline : a.sequence < b.sequence;
  }
  struct Before {  // A pointer to the function would not be inlined.
    bool operator()(const Entry& a, const Entry& b) const { return IsBefore(a, b); }
  };

  void SetRunPlace(size_t i) { run_[i].timer->place_ = i << kTagBits | kInRun; }
  void PutInHeap(size_t i, const Entry& entry) {
    heap_[i] = entry;
    entry.timer->place_ = i << kTagBits | kInHeap;
  }

  void AppendToRun(const Entry& entry) {
    if (run_.size() == run_.capacity()) CloseHoles();
    run_.push_back(entry);
    ++live_;
    SetRunPlace(run_.size() - 1);
  }

  static void Deliver(Timer* timer, ReadyQueue* due) {
    timer->place_ = Timer::kNowhere;
    due->PushBack(timer);
  }

  // Sorts by deadline, then sequence.
  void SortEntries(std::vector<Entry>* entries);

  // Delivers those of the run that come before `limit`, and returns their
  // number.
  size_t MoveRun(const Entry& limit, ReadyQueue* due);

  void CloseHoles();
  void TrimRun();
  void AddToHeap(const Entry& entry);
  void RemoveFromHeap(size_t i);
  void SiftUp(size_t i, const Entry& entry);
  void SiftDown(size_t i, const Entry& entry);

  // Unless `live_` is 0, the first at or after `head_` and the last are no
  // holes; if it is 0, the run is cleared.
  std::vector<Entry> run_;
  size_t head_ = 0;  // What is before has gone.
  size_t live_ = 0;  // Those behind `head_` that are no holes.

  std::vector<Entry> heap_;
  TimePoint heap_latest_;  // No earlier than the last deadline in the heap.

  std::vector<Entry> scratch_;  // For sorting.
};

}  // namespace weft::internal

#endif  // WEFT_TIMER_NEAR_TIMERS_H_
