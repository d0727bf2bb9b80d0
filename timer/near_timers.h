// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TIMER_NEAR_TIMERS_H_
#define WEFT_TIMER_NEAR_TIMERS_H_

#include <algorithm>
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
// equal ones in the order of arming. Four arrays share the work:
//
//   run    Sorted. Holds what time found in a slot when it entered it, and
//          takes whatever is armed behind its end: equal delays arrive in
//          order. Taking is a step, cancelling leaves a hole: O(1) each.
//   pile   Unsorted: what is armed out of order, until the first of it is due.
//          If then all is, it is sorted, which is several times faster than a
//          heap; else it goes to the heap.
//   heap   Four children a node. O(log n).
//   due    Sorted. What `Expire()` has taken from the others, and `TakeDue()`
//          gives away, some at a time: so that they are still in the cache when
//          they run, however many they are.
//
// All keep deadline and order beside the pointer, so that comparing touches no
// timer. They grow, by doubling, and keep their memory. Holes are at most half
// of the run or of the pile before it grows.
//
// Threads: belongs to the loop's thread.
class NearTimers {
 public:
  bool empty() const { return run_.live == 0 && pile_.live == 0 && heap_.empty(); }

  // No later than the earliest deadline; before it only if timers were removed.
  // What is due already does not count. REQUIRES: not empty.
  TimePoint earliest() const {
    TimePoint earliest = TimePoint::InfiniteFuture();
    if (run_.live > 0) earliest = run_.front().deadline;
    if (!heap_.empty()) earliest = std::min(earliest, heap_.front().deadline);
    if (pile_.live > 0) earliest = std::min(earliest, pile_earliest_);
    return earliest;
  }
  // The same exactly.
  TimePoint FindEarliest();

  // Takes a timer that was armed after all that are here.
  void Add(Timer* timer);

  // Takes many timers in any order: `Collect()` each, then `Sort()`, and then
  // `Expire()` with the same time: `Sort()` leaves those alone that go at once.
  // REQUIRES: empty before the first; nothing else is called in between.
  void Collect(Timer* timer) {
    run_.entries.push_back({timer->deadline_, timer->sequence_, timer});
  }
  void Sort(TimePoint now);

  // REQUIRES: `timer` is here, and not due.
  void Remove(Timer* timer);

  // Makes what is due at `now` so, and returns how many timers that are.
  size_t Expire(TimePoint now);

  bool has_due() const { return due_.live > 0; }
  size_t due_count() const { return due_.live; }

  // Appends the next of those that are due to `queue`, so many if there are.
  void TakeDue(size_t count, ReadyQueue* queue);

  // Removes `timer` if it is due; false if it is not.
  bool RemoveDue(Timer* timer);

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

  // Timers in an order, with holes. Unless `live` is 0, the first at or after
  // `head` and the last are no holes; if it is 0, it is cleared.
  struct Line {
    const Entry& front() const { return entries[head]; }

    std::vector<Entry> entries;
    size_t head = 0;  // What is before has gone.
    size_t live = 0;  // Those behind `head` that are no holes.
  };

  // A timer's place is an index and one of these; if it is due, of no meaning.
  static constexpr uintptr_t kTagMask = 7;
  static constexpr uintptr_t kInRun = 1;
  static constexpr uintptr_t kInHeap = 2;
  static constexpr uintptr_t kInPile = 3;
  static constexpr int kTagBits = 3;

  static bool IsBefore(const Entry& a, const Entry& b) {
    return a.deadline != b.deadline ? a.deadline < b.deadline : a.sequence < b.sequence;
  }
  struct Before {  // A pointer to the function would not be inlined.
    bool operator()(const Entry& a, const Entry& b) const { return IsBefore(a, b); }
  };

  static void SetPlace(const Entry& entry, size_t i, uintptr_t tag) {
    entry.timer->place_ = i << kTagBits | tag;
  }
  void PutInHeap(size_t i, const Entry& entry) {
    heap_[i] = entry;
    SetPlace(entry, i, kInHeap);
  }

  void Append(Line* line, uintptr_t tag, const Entry& entry) {
    if (line->entries.size() == line->entries.capacity()) CloseHoles(line, tag);
    line->entries.push_back(entry);
    ++line->live;
    SetPlace(entry, line->entries.size() - 1, tag);
  }
  void AddToPile(const Entry& entry);

  static void Reserve(std::vector<Entry>* entries, size_t size);

  // Sorts those from `from` on by deadline, then sequence. Never throws.
  void SortEntries(std::vector<Entry>* entries, size_t from);

  static void MakeHole(Line* line, size_t i);
  static void CloseHoles(Line* line, uintptr_t tag);
  static void Trim(Line* line);
  // Appends those of a line that are no holes to `entries`.
  static void MoveAll(Line* line, std::vector<Entry>* entries);
  void MovePileToHeap();
  void AddToHeap(const Entry& entry);
  void RemoveFromHeap(size_t i);
  void SiftUp(size_t i, const Entry& entry);
  void SiftDown(size_t i, const Entry& entry);

  Line run_;

  Line pile_;
  TimePoint pile_earliest_;  // No later than the first deadline in the pile,
  TimePoint pile_latest_;    // and no earlier than the last.

  std::vector<Entry> heap_;
  TimePoint heap_latest_;  // No earlier than the last deadline in the heap.

  Line due_;
  std::vector<Entry> scratch_;  // For sorting.
};

}  // namespace weft::internal

#endif  // WEFT_TIMER_NEAR_TIMERS_H_
