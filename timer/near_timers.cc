// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/timer/near_timers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "absl/base/macros.h"

namespace weft::internal {

namespace {

constexpr size_t kChildren = 4;

// How many entries ahead a timer is fetched before it is needed: enough to
// cover a miss, few enough to stay in the first cache.
constexpr size_t kAhead = 8;

// From how many entries on buckets are worth while, how many entries one is
// meant for, and how many buckets there are at most: their ends are to stay in
// the first cache.
constexpr size_t kBucketsFrom = 64;
constexpr size_t kPerBucket = 4;
constexpr size_t kMaxBuckets = 2048;
constexpr ptrdiff_t kCrowded = 32;

// What is less may as well go to the heap.
constexpr size_t kLargePile = 1024;

constexpr size_t kCacheLine = 64;

}  // namespace

void NearTimers::Add(Timer* timer) {
  const Entry entry = {timer->deadline_, timer->sequence_, timer};
  if (run_.live == 0 || run_.entries.back().deadline <= entry.deadline) {
    Append(&run_, kInRun, entry);
  } else {
    AddToPile(entry);
  }
}

// Where some go to the heap and come back, the pile need not grow.
void NearTimers::AddToPile(const Entry& entry) {
  if (pile_.entries.size() == pile_.entries.capacity() && !heap_.empty() &&
      pile_.live < kLargePile) {
    MovePileToHeap();
  }
  if (pile_.live == 0) {
    pile_earliest_ = pile_latest_ = entry.deadline;
  } else {
    pile_earliest_ = std::min(pile_earliest_, entry.deadline);
    pile_latest_ = std::max(pile_latest_, entry.deadline);
  }
  Append(&pile_, kInPile, entry);
}

void NearTimers::Sort(TimePoint now) {
  ABSL_ASSERT(run_.head == 0 && run_.live == 0 && pile_.live == 0 && heap_.empty());
  SortEntries(&run_.entries, 0);
  run_.live = run_.entries.size();
  for (size_t i = run_.live; i > 0 && run_.entries[i - 1].deadline > now; --i) {
    SetPlace(run_.entries[i - 1], i - 1, kInRun);
  }
}

void NearTimers::Remove(Timer* timer) {
  const size_t i = timer->place_ >> kTagBits;
  const uintptr_t tag = timer->place_ & kTagMask;
  timer->place_ = Timer::kNowhere;
  if (tag == kInHeap) {
    ABSL_ASSERT(heap_[i].timer == timer);
    RemoveFromHeap(i);
  } else {
    Line* const line = tag == kInRun ? &run_ : &pile_;
    ABSL_ASSERT(line->entries[i].timer == timer);
    MakeHole(line, i);
  }
}

size_t NearTimers::Expire(TimePoint now) {
  if (earliest() > now) return 0;
  const size_t before = due_.live;
  std::vector<Entry>& due = due_.entries;
  due.erase(due.begin(), due.begin() + static_cast<ptrdiff_t>(due_.head));
  due_.head = 0;
  const size_t from = due.size();
  if (pile_.live > 0 && pile_earliest_ <= now && pile_latest_ > now) MovePileToHeap();
  // From here on nothing throws.
  Reserve(&due, from + run_.live + pile_.live + heap_.size());
  int sources = 0;
  if (run_.live > 0 && run_.front().deadline <= now) {
    ++sources;
    for (; run_.live > 0; ++run_.head) {
      const Entry& entry = run_.front();
      if (entry.timer == nullptr) continue;
      if (entry.deadline > now) break;
      due.push_back(entry);
      ++due_.live;
      --run_.live;
    }
    Trim(&run_);
  }
  if (pile_.live > 0 && pile_earliest_ <= now) {  // Then all of it is due.
    sources += 2;
    due_.live += pile_.live;
    MoveAll(&pile_, &due);
  }
  if (!heap_.empty() && heap_.front().deadline <= now) {
    ++sources;
    if (heap_latest_ <= now) {
      ++sources;
      due_.live += heap_.size();
      due.insert(due.end(), heap_.begin(), heap_.end());
      heap_.clear();
    } else {
      while (!heap_.empty() && heap_.front().deadline <= now) {
        due.push_back(heap_.front());
        ++due_.live;
        RemoveFromHeap(0);
      }
    }
  }
  if (sources > 1) SortEntries(&due, from);
  // What is due since the last time comes before, as a rule: a slot is later than the last.
  if (from > 0 && from < due.size() && IsBefore(due[from], due[from - 1])) SortEntries(&due, 0);
  return due_.live - before;
}

// Takes them into the cache, with the memory behind each: there is what it runs.
void NearTimers::TakeDue(size_t count, ReadyQueue* queue) {
  const std::vector<Entry>& due = due_.entries;
  for (; count > 0 && due_.live > 0; ++due_.head) {
    if (due_.head + kAhead < due.size()) {
      const auto ahead = reinterpret_cast<uintptr_t>(due[due_.head + kAhead].timer);  // Or null.
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), /*rw=*/1);
      __builtin_prefetch(reinterpret_cast<const void*>(ahead + kCacheLine), /*rw=*/1);
    }
    Timer* const timer = due_.front().timer;
    if (timer == nullptr) continue;
    timer->place_ = Timer::kNowhere;
    queue->PushBack(timer);
    --count;
    --due_.live;
  }
  if (due_.live == 0) Trim(&due_);
}

bool NearTimers::RemoveDue(Timer* timer) {
  std::vector<Entry>& due = due_.entries;
  const auto begin = due.begin() + static_cast<ptrdiff_t>(due_.head);
  const Entry wanted = {timer->deadline_, timer->sequence_, timer};
  const auto found = std::lower_bound(begin, due.end(), wanted, Before());
  if (found == due.end() || found->timer != timer) return false;
  timer->place_ = Timer::kNowhere;
  MakeHole(&due_, static_cast<size_t>(found - due.begin()));
  return true;
}

TimePoint NearTimers::FindEarliest() {
  if (pile_.live > 0) {
    pile_earliest_ = TimePoint::InfiniteFuture();
    for (const Entry& entry : pile_.entries) {
      if (entry.timer != nullptr) pile_earliest_ = std::min(pile_earliest_, entry.deadline);
    }
  }
  return earliest();
}

void NearTimers::Clear(ReadyQueue* disarmed) {
  const auto disarm = [disarmed](const Entry& entry) {
    if (entry.timer == nullptr) return;
    entry.timer->place_ = Timer::kNowhere;
    disarmed->PushBack(entry.timer);
  };
  for (Line* line : {&due_, &run_, &pile_}) {
    for (size_t i = line->head; i < line->entries.size(); ++i) disarm(line->entries[i]);
    line->live = 0;
    Trim(line);
  }
  for (const Entry& entry : heap_) disarm(entry);
  heap_.clear();
}

// So that growing step by step is linear on the whole.
void NearTimers::Reserve(std::vector<Entry>* entries, size_t size) {
  if (size > entries->capacity()) entries->reserve(std::max(size, 2 * entries->capacity()));
}

// `std::sort` alone is slow here: a slot's deadlines are random, so every other
// comparison is mispredicted. They are spread evenly too, more or less, so many
// are first dealt out to buckets of a few each. Crowded buckets cost no more
// than `std::sort` would have.
void NearTimers::SortEntries(std::vector<Entry>* entries, size_t from) {
  const auto front = entries->begin() + static_cast<ptrdiff_t>(from);
  const size_t count = entries->size() - from;
  // Timers with equal delays come in order already.
  if (std::is_sorted(front, entries->end(), Before())) return;
  bool is_room = count >= kBucketsFrom;
  try {
    if (is_room) scratch_.resize(count);
  } catch (const std::bad_alloc&) {
    is_room = false;
  }
  if (!is_room) {
    std::sort(front, entries->end(), Before());
    return;
  }

  const auto [first, last] =
      std::minmax_element(front, entries->end(),
                          [](const Entry& a, const Entry& b) { return a.deadline < b.deadline; });
  const uint64_t origin = static_cast<uint64_t>(first->deadline.nanoseconds());
  const uint64_t span = static_cast<uint64_t>(last->deadline.nanoseconds()) - origin;
  const size_t wanted = std::min(std::bit_ceil(count / kPerBucket), kMaxBuckets);
  const int shift = std::max(static_cast<int>(std::bit_width(span)) - std::countr_zero(wanted), 0);
  const auto bucket_of = [origin, shift](const Entry& entry) {
    return static_cast<size_t>((static_cast<uint64_t>(entry.deadline.nanoseconds()) - origin) >>
                               shift);
  };

  // Where the next entry of each bucket goes; in the end, where each ends.
  std::array<uint32_t, kMaxBuckets> ends{};
  const size_t buckets = bucket_of(*last) + 1;
  for (auto entry = front; entry != entries->end(); ++entry) ++ends[bucket_of(*entry)];
  uint32_t sum = 0;
  for (size_t i = 0; i < buckets; ++i) sum += std::exchange(ends[i], sum);
  for (auto entry = front; entry != entries->end(); ++entry) {
    scratch_[ends[bucket_of(*entry)]++] = *entry;
  }
  if (from == 0) {
    entries->swap(scratch_);
  } else {
    std::copy(scratch_.begin(), scratch_.end(), front);
  }

  const auto sorted = entries->begin() + static_cast<ptrdiff_t>(from);
  auto begin = sorted;
  for (size_t i = 0; i < buckets; ++i) {
    const auto end = sorted + ends[i];
    // A crowded one has few deadlines, as a rule; then it is in order.
    if (end - begin <= kCrowded || !std::is_sorted(begin, end, Before())) {
      std::sort(begin, end, Before());
    }
    begin = end;
  }
}

void NearTimers::MakeHole(Line* line, size_t i) {
  line->entries[i].timer = nullptr;
  --line->live;
  Trim(line);
}

// Called when a line is full: makes room if half of it is of no use.
void NearTimers::CloseHoles(Line* line, uintptr_t tag) {
  std::vector<Entry>& entries = line->entries;
  if (line->live > entries.size() / 2) return;
  size_t to = 0;
  for (size_t i = line->head; i < entries.size(); ++i) {
    if (entries[i].timer == nullptr) continue;
    entries[to] = entries[i];
    SetPlace(entries[to], to, tag);
    ++to;
  }
  entries.resize(to);
  line->head = 0;
}

// Takes the holes at both ends away.
void NearTimers::Trim(Line* line) {
  if (line->live == 0) {
    line->entries.clear();
    line->head = 0;
    return;
  }
  while (line->front().timer == nullptr) ++line->head;
  while (line->entries.back().timer == nullptr) line->entries.pop_back();
}

void NearTimers::MoveAll(Line* line, std::vector<Entry>* entries) {
  for (size_t i = line->head; i < line->entries.size(); ++i) {
    if (line->entries[i].timer != nullptr) entries->push_back(line->entries[i]);
  }
  line->live = 0;
  Trim(line);
}

void NearTimers::MovePileToHeap() {
  Reserve(&heap_, heap_.size() + pile_.live);
  for (size_t i = pile_.head; i < pile_.entries.size(); ++i) {
    if (pile_.entries[i].timer != nullptr) AddToHeap(pile_.entries[i]);
  }
  pile_.live = 0;
  Trim(&pile_);
}

void NearTimers::AddToHeap(const Entry& entry) {
  heap_latest_ = heap_.empty() ? entry.deadline : std::max(heap_latest_, entry.deadline);
  heap_.push_back(entry);
  SiftUp(heap_.size() - 1, entry);
}

void NearTimers::RemoveFromHeap(size_t i) {
  const Entry last = heap_.back();
  heap_.pop_back();
  if (i == heap_.size()) return;
  if (i > 0 && IsBefore(last, heap_[(i - 1) / kChildren])) {
    SiftUp(i, last);
  } else {
    SiftDown(i, last);
  }
}

// Puts `entry` into the free place `i` or above.
void NearTimers::SiftUp(size_t i, const Entry& entry) {
  while (i > 0) {
    const size_t parent = (i - 1) / kChildren;
    if (!IsBefore(entry, heap_[parent])) break;
    PutInHeap(i, heap_[parent]);
    i = parent;
  }
  PutInHeap(i, entry);
}

// Puts `entry` into the free place `i` or below.
void NearTimers::SiftDown(size_t i, const Entry& entry) {
  while (true) {
    const size_t first = i * kChildren + 1;
    if (first >= heap_.size()) break;
    const size_t end = std::min(first + kChildren, heap_.size());
    size_t least = first;
    for (size_t child = first + 1; child < end; ++child) {
      if (IsBefore(heap_[child], heap_[least])) least = child;
    }
    if (!IsBefore(heap_[least], entry)) break;
    PutInHeap(i, heap_[least]);
    i = least;
  }
  PutInHeap(i, entry);
}

}  // namespace weft::internal
