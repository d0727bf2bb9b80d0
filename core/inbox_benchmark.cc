// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// How many posts a loop can take from other threads, each with a runnable that
// exists already: what is measured is the queue, not closures and not wakes.
// The loop's thread drains and runs without sleeping while N producers push.
//
//   tools/bazel run -c opt //core:inbox_benchmark

#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/core/inbox.h"

namespace weft {
namespace {

void DoNothing(Runnable*) {}

// What a round of the loop pays for having an inbox.
void BM_DrainNothing(benchmark::State& state) {
  Inbox inbox;
  ReadyQueue ready;
  for (auto _ : state) {
    benchmark::DoNotOptimize(inbox.DrainTo(&ready));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_DrainNothing);

// Push, drain and run in batches on one thread: no contention at all.
void BM_OneThread(benchmark::State& state) {
  const int batch = static_cast<int>(state.range(0));
  std::vector<std::unique_ptr<Runnable>> posts;
  for (int i = 0; i < batch; ++i) posts.push_back(std::make_unique<Runnable>(&DoNothing));

  Inbox inbox;
  ReadyQueue ready;
  for (auto _ : state) {
    for (auto& post : posts) inbox.Push(post.get());
    inbox.DrainTo(&ready);
    while (Runnable* next = ready.PopFront()) next->Run();
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(BM_OneThread)->ArgName("batch")->Arg(1)->Arg(1'000);

// From the first push to the last run, the producers started together.
void BM_Producers(benchmark::State& state) {
  const int producers = static_cast<int>(state.range(0));
  constexpr int kPosts = 200'000;  // Of each.
  struct Post final : Runnable {
    Post() : Runnable(&DoNothing) {}
  };
  std::vector<std::unique_ptr<Post[]>> posts;
  for (int i = 0; i < producers; ++i) posts.push_back(std::make_unique<Post[]>(kPosts));

  for (auto _ : state) {
    Inbox inbox;
    std::latch start(producers + 1);
    std::vector<std::thread> threads;
    for (int i = 0; i < producers; ++i) {
      threads.emplace_back([&inbox, &start, own = posts[i].get()] {
        start.arrive_and_wait();
        for (int n = 0; n < kPosts; ++n) inbox.Push(&own[n]);
      });
    }
    start.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    ReadyQueue ready;
    for (int left = producers * kPosts; left > 0;) {
      inbox.DrainTo(&ready);
      for (; Runnable* next = ready.PopFront(); --left) next->Run();
    }
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    for (std::thread& thread : threads) thread.join();
  }
  state.SetItemsProcessed(state.iterations() * producers * kPosts);
}
BENCHMARK(BM_Producers)->ArgName("producers")->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseManualTime();

}  // namespace
}  // namespace weft
