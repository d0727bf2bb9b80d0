// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What an item costs on its way through a queue or a channel: when neither side
// waits, and when the consumer waits for each, which with a queue takes a frame
// from the pool.
//
//   bazel run -c opt //sync:queue_benchmark

#include <cstdint>

#include "benchmark/benchmark.h"
#include "weft/sync/channel.h"
#include "weft/sync/queue.h"
#include "weft/sync/test_loop.h"

namespace weft {
namespace {

constexpr int64_t kItems = 1000;

// Put and Get in one task: there always is room, or an item.
template <class Items>
void BM_PutGetAtOnce(benchmark::State& state) {
  TestLoop loop;
  Items queue(0);
  auto put_get = [&]() -> Coro<void> {
    for (int64_t i = 0; i < kItems; ++i) {
      co_await queue.Put(i);
      benchmark::DoNotOptimize(co_await queue.Get());
    }
  };
  for (auto _ : state) {
    Spawn(put_get);
    loop.RunUntilIdle();
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}
BENCHMARK(BM_PutGetAtOnce<Queue<int64_t>>);
BENCHMARK(BM_PutGetAtOnce<PriorityQueue<int64_t>>);

// A consumer that waits for each of a producer's items.
void BM_QueuePingPong(benchmark::State& state) {
  TestLoop loop;
  Queue<int64_t> queue(1);
  auto put = [&]() -> Coro<void> {
    for (int64_t i = 0; i < kItems; ++i) co_await queue.Put(i);
  };
  auto get = [&]() -> Coro<void> {
    for (int64_t i = 0; i < kItems; ++i) benchmark::DoNotOptimize(co_await queue.Get());
  };
  for (auto _ : state) {
    Spawn(get);
    Spawn(put);
    loop.RunUntilIdle();
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}
BENCHMARK(BM_QueuePingPong);

void BM_ChannelPingPong(benchmark::State& state) {
  TestLoop loop;
  Channel<int64_t> channel(static_cast<size_t>(state.range(0)));
  auto send = [&]() -> Coro<void> {
    for (int64_t i = 0; i < kItems; ++i) co_await channel.Send(i);
  };
  auto receive = [&]() -> Coro<void> {
    for (int64_t i = 0; i < kItems; ++i) benchmark::DoNotOptimize(co_await channel.Receive());
  };
  for (auto _ : state) {
    Spawn(receive);
    Spawn(send);
    loop.RunUntilIdle();
  }
  state.SetItemsProcessed(state.iterations() * kItems);
}
BENCHMARK(BM_ChannelPingPong)->ArgName("capacity")->Arg(0)->Arg(1)->Arg(64);

}  // namespace
}  // namespace weft
