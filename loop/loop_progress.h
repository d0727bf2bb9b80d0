// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_LOOP_PROGRESS_H_
#define WEFT_LOOP_LOOP_PROGRESS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "weft/core/source_location.h"

namespace weft::internal {

// What a loop says of itself to a watchdog on another thread: what it runs. All of
// it in atomics, and no lock.
//
// `sequence` is odd while something runs, and is another number for each thing that
// runs. What belongs to a number is written before the number, and after the even
// one before it. So a reader that finds the same number before and after it has
// read the rest has read what belongs together: the stores of the rest are
// releases, its loads acquires, and whoever sees one of a later time sees that the
// number has changed.
//
// Threads: Begin(), End() and SetThread() belong to the loop's thread, Read() to
// any.
class LoopProgress {
 public:
  struct Snapshot {
    uint64_t sequence = 0;
    bool is_step = false;  // Of a task; else a callback, if the line is not 0.
    SourceLocation location;
    uint64_t task_number = 0;  // Of a task that has no name.
    std::string task_name;
    uint64_t thread = 0;

    bool is_busy() const { return (sequence & 1) != 0; }
  };

  // A step of a task: one that has a name has no number.
  void BeginStep(const SourceLocation& location, uint64_t number, std::string_view name) {
    location_.store(location, std::memory_order_release);
    number_.store(number, std::memory_order_release);
    kind_.store(Kind::kStep, std::memory_order_release);
    if (number == 0) StoreName(name);
    Begin();
  }
  void BeginCallback(const SourceLocation& location) {
    location_.store(location, std::memory_order_release);
    kind_.store(Kind::kCallback, std::memory_order_release);
    Begin();
  }
  void End() { sequence_.store(next_ = (next_ + 1) & ~uint64_t{1}, std::memory_order_release); }

  // Which thread runs the loop; see StackSampler.
  void SetThread(uint64_t thread) { thread_.store(thread, std::memory_order_relaxed); }

  // One that is_busy() is whole; else it says nothing but that.
  Snapshot Read() const {
    Snapshot snapshot;
    const uint64_t sequence = sequence_.load(std::memory_order_acquire);
    snapshot.location = location_.load(std::memory_order_acquire);
    snapshot.is_step = kind_.load(std::memory_order_acquire) == Kind::kStep;
    if (snapshot.is_step) {
      snapshot.task_number = number_.load(std::memory_order_acquire);
      if (snapshot.task_number == 0) snapshot.task_name = LoadName();
    }
    snapshot.thread = thread_.load(std::memory_order_relaxed);
    if (sequence_.load(std::memory_order_relaxed) == sequence) snapshot.sequence = sequence;
    return snapshot;
  }

 private:
  enum class Kind : uint8_t { kCallback, kStep };

  static constexpr size_t kNameWords = 8;  // Longer names are cut.

  void Begin() { sequence_.store(next_ = (next_ + 1) | 1, std::memory_order_release); }

  void StoreName(std::string_view name) {
    uint64_t words[kNameWords] = {};
    std::memcpy(words, name.data(), std::min(name.size(), sizeof(words)));
    for (size_t i = 0; i < kNameWords; ++i) name_[i].store(words[i], std::memory_order_release);
  }
  std::string LoadName() const {
    char text[kNameWords * sizeof(uint64_t)];
    for (size_t i = 0; i < kNameWords; ++i) {
      const uint64_t word = name_[i].load(std::memory_order_acquire);
      std::memcpy(text + i * sizeof(word), &word, sizeof(word));
    }
    return std::string(text, std::find(text, text + sizeof(text), '\0'));
  }

  uint64_t next_ = 0;  // The loop's own.
  std::atomic<uint64_t> sequence_{0};
  std::atomic<SourceLocation> location_{SourceLocation()};
  std::atomic<Kind> kind_{Kind::kCallback};
  std::atomic<uint64_t> number_{0};
  std::atomic<uint64_t> name_[kNameWords] = {};
  std::atomic<uint64_t> thread_{0};
};

static_assert(std::atomic<SourceLocation>::is_always_lock_free);

}  // namespace weft::internal

#endif  // WEFT_LOOP_LOOP_PROGRESS_H_
