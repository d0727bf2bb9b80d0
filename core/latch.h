// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_LATCH_H_
#define WEFT_CORE_LATCH_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace weft::internal {

// Latch
//
// std::latch, for what runs on Windows too: where there is no futex, libstdc++ 12 looks at the
// count, and takes the lock of what it waits on only then, so it may sleep through the last
// count_down(). (So does all that is made of std::atomic's wait().)
//
// Threads: any. It may be destroyed once wait() has returned.
class Latch {
 public:
  explicit Latch(std::ptrdiff_t count) : count_(count) {}
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  void count_down() {
    std::lock_guard<std::mutex> lock(mutex_);
    // Under the lock: who waits may destroy this as soon as it is free.
    if (--count_ == 0) is_zero_.notify_all();
  }

  bool try_wait() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return count_ == 0;
  }

  void wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    is_zero_.wait(lock, [this] { return count_ == 0; });
  }

  void arrive_and_wait() {
    count_down();
    wait();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable is_zero_;
  std::ptrdiff_t count_;
};

}  // namespace weft::internal

#endif  // WEFT_CORE_LATCH_H_
