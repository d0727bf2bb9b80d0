// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_BENCH_PEERS_WORK_H_
#define WEFT_BENCH_PEERS_WORK_H_

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string_view>
#include <vector>

namespace weft::bench {

// Meter
//
// What a piece of work reports by: times and allocations between Begin() and End(), printed
// as names and values in one line, for measure.py.
class Meter {
 public:
  void Begin();
  // Prints NAME and NAME_allocs: nanoseconds and calls of malloc(), an operation.
  void End(std::string_view name, int64_t operations);

  void Print(std::string_view name, double value);
  // Percentiles 50 and 99 of lateness, in microseconds, and how many came too early.
  void PrintLateness(std::vector<int64_t> nanoseconds);

 private:
  int64_t began_at_ = 0;
  int64_t allocations_ = 0;
};

// One piece of work, the same with every peer: compare.py says what it is. `count` is how many
// operations are done.
struct Work {
  std::string_view name;
  void (*run)(int64_t count, Meter& meter);
};

// The main() of a peer: `PROGRAM --list`, or `PROGRAM WORK COUNT`.
int WorkMain(int argc, char** argv, std::initializer_list<Work> works);

int64_t Now();  // Nanoseconds of the monotonic clock.

// Bytes that malloc() has given and not got back.
int64_t AllocatedBytes();

// -- What all do alike.

inline constexpr int64_t kBatch = 1000;

// Deadlines within a minute, after the first minute: in nanoseconds from now.
std::vector<int64_t> RandomDelays(int64_t count);

// 0 to count - 1 in any order.
std::vector<int64_t> RandomOrder(int64_t count);

// When a timer is set next, for lateness: 0.2 to 2.2 ms from now.
class RandomWaits {
 public:
  int64_t Next() { return 200'000 + static_cast<int64_t>(random_() % 2'000'000); }

 private:
  std::minstd_rand random_{1};
};

}  // namespace weft::bench

#endif  // WEFT_BENCH_PEERS_WORK_H_
