// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/timer/near_timers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
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

}  // namespace

void NearTimers::Sort(TimePoint now) {
  ABSL_ASSERT(head_ == 0 && live_ == 0 && heap_.empty());
  SortEntries(&run_);
  live_ = run_.size();
  for (size_t i = live_; i > 0 && run_[i - 1].deadline > now; --i) SetRunPlace(i - 1);
}

void NearTimers::Remove(Timer* timer) {
  const size_t i = timer->place_ >> kTagBits;
  const bool in_run = (timer->place_ & kTagMask) == kInRun;
  timer->place_ = Timer::kNowhere;
  if (in_run) {
    ABSL_ASSERT(run_[i].timer == timer);
    run_[i].timer = nullptr;
    --live_;
    TrimRun();
  } else {
    ABSL_ASSERT(heap_[i].timer == timer);
    RemoveFromHeap(i);
  }
}

size_t NearTimers::MoveDue(TimePoint now, ReadyQueue* due) {
  size_t moved = 0;
  if (heap_.empty()) {
    // The usual case.
  } else if (heap_latest_ <= now) {
    // All at once: sorting is several times faster than taking one by one.
    SortEntries(&heap_);
    for (const Entry& entry : heap_) {
      moved += MoveRun(entry, due) + 1;
      Deliver(entry.timer, due);
    }
    heap_.clear();
  } else {
    while (!heap_.empty() && heap_.front().deadline <= now) {
      const Entry entry = heap_.front();
      moved += MoveRun(entry, due) + 1;
      RemoveFromHeap(0);
      Deliver(entry.timer, due);
    }
  }
  return moved + MoveRun({now, std::numeric_limits<uint64_t>::max(), nullptr}, due);
}

size_t NearTimers::MoveRun(const Entry& limit, ReadyQueue* due) {
  const size_t live = live_;
  const size_t end = run_.size();
  for (; live_ > 0; ++head_) {
    const Entry& entry = run_[head_];
    if (entry.timer == nullptr) continue;
    if (!IsBefore(entry, limit)) return live - live_;
    if (head_ + kAhead < end) __builtin_prefetch(run_[head_ + kAhead].timer, /*rw=*/1);
    Deliver(entry.timer, due);
    --live_;
  }
  TrimRun();
  return live;
}

void NearTimers::Clear(ReadyQueue* disarmed) {
  const auto disarm = [disarmed](Timer* timer) {
    timer->place_ = Timer::kNowhere;
    disarmed->PushBack(timer);
  };
  for (size_t i = head_; i < run_.size(); ++i) {
    if (run_[i].timer != nullptr) disarm(run_[i].timer);
  }
  for (const Entry& entry : heap_) disarm(entry.timer);
  live_ = 0;
  TrimRun();
  heap_.clear();
}

// `std::sort` alone is slow here: a slot's deadlines are random, so every other
// comparison is mispredicted. They are spread evenly too, more or less, so many
// are first dealt out to buckets of a few each. Crowded buckets cost no more
// than `std::sort` would have.
void NearTimers::SortEntries(std::vector<Entry>* entries) {
  // Timers with equal delays come in order already.
  if (std::is_sorted(entries->begin(), entries->end(), Before())) return;
  if (entries->size() < kBucketsFrom) {
    std::sort(entries->begin(), entries->end(), Before());
    return;
  }

  const auto [first, last] =
      std::minmax_element(entries->begin(), entries->end(),
                          [](const Entry& a, const Entry& b) { return a.deadline < b.deadline; });
  const uint64_t origin = static_cast<uint64_t>(first->deadline.nanoseconds());
  const uint64_t span = static_cast<uint64_t>(last->deadline.nanoseconds()) - origin;
  const size_t wanted = std::min(std::bit_ceil(entries->size() / kPerBucket), kMaxBuckets);
  const int shift = std::max(static_cast<int>(std::bit_width(span)) - std::countr_zero(wanted), 0);
  const auto bucket_of = [origin, shift](const Entry& entry) {
    return static_cast<size_t>((static_cast<uint64_t>(entry.deadline.nanoseconds()) - origin) >>
                               shift);
  };

  // Where the next entry of each bucket goes; in the end, where each ends.
  std::array<uint32_t, kMaxBuckets> ends{};
  const size_t buckets = bucket_of(*last) + 1;
  for (const Entry& entry : *entries) ++ends[bucket_of(entry)];
  uint32_t sum = 0;
  for (size_t i = 0; i < buckets; ++i) sum += std::exchange(ends[i], sum);
  scratch_.resize(entries->size());
  for (const Entry& entry : *entries) scratch_[ends[bucket_of(entry)]++] = entry;
  entries->swap(scratch_);

  auto begin = entries->begin();
  for (size_t i = 0; i < buckets; ++i) {
    const auto end = entries->begin() + ends[i];
    std::sort(begin, end, Before());
    begin = end;
  }
}

// Called when the run is full: makes room if half of it is of no use.
void NearTimers::CloseHoles() {
  if (live_ > run_.size() / 2) return;
  size_t to = 0;
  for (size_t i = head_; i < run_.size(); ++i) {
    if (run_[i].timer == nullptr) continue;
    run_[to] = run_[i];
    SetRunPlace(to++);
  }
  run_.resize(to);
  head_ = 0;
}

// Takes the holes at both ends away.
void NearTimers::TrimRun() {
  if (live_ == 0) {
    run_.clear();
    head_ = 0;
    return;
  }
  while (run_[head_].timer == nullptr) ++head_;
  while (run_.back().timer == nullptr) run_.pop_back();
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
