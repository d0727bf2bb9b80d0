// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_BENCH_PEERS_POSTS_H_
#define WEFT_BENCH_PEERS_POSTS_H_

#include <cstdint>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/bench/peers/work.h"

namespace weft::bench {

// Posts from threads: `post(left)` is called `count` times, by so many threads that begin
// together, while `run()` runs the loop. Each post counts `left` down, and the last stops it.
template <int kProducers, class Post, class Run>
void MeasurePosts(int64_t count, Meter& meter, Post post, Run run) {
  const int64_t each = count / kProducers;
  int64_t left = each * kProducers;
  std::latch start(kProducers + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kProducers; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int64_t n = 0; n < each; ++n) post(&left);
    });
  }
  meter.Begin();
  start.arrive_and_wait();
  run();
  meter.End("ns", each * kProducers);
  for (std::thread& thread : threads) thread.join();
}

// What users of a loop have that knows only of a wake: posts in a vector, under a lock.
class LockedInbox {
 public:
  // True if the loop has to be woken.
  bool Add(int64_t* left) {
    std::lock_guard<std::mutex> lock(mutex_);
    posts_.push_back(left);
    return posts_.size() == 1;
  }

  // Runs them. True if the last was among them.
  bool Drain() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      taken_.swap(posts_);
    }
    bool is_last = false;
    for (int64_t* left : taken_) is_last = --*left == 0;
    taken_.clear();
    return is_last;
  }

 private:
  std::mutex mutex_;
  std::vector<int64_t*> posts_;
  std::vector<int64_t*> taken_;
};

}  // namespace weft::bench

#endif  // WEFT_BENCH_PEERS_POSTS_H_
