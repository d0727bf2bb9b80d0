// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/bench/peers/work.h"

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "absl/base/config.h"

// glibc's own, under the names that it keeps for those who replace malloc().
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

// Of all threads; but what is counted exactly is done by one.
std::atomic<int64_t> allocations = 0;

[[maybe_unused]] void CountOne() { allocations.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

// C libraries are counted too, so it is malloc() that counts and not operator new. The
// sanitizers have a malloc() of their own, and count nothing here.
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && !defined(ABSL_HAVE_THREAD_SANITIZER)
extern "C" {

void* malloc(size_t size) {
  CountOne();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  CountOne();
  return __libc_calloc(count, size);
}

void* realloc(void* block, size_t size) {
  CountOne();
  return __libc_realloc(block, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  CountOne();
  return __libc_memalign(alignment, size);
}

}  // extern "C"
#endif

namespace weft::bench {

int64_t Now() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int64_t AllocatedBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void Meter::Begin() {
  allocations_ = allocations.load();
  began_at_ = Now();
}

void Meter::End(std::string_view name, int64_t operations) {
  const int64_t time = Now() - began_at_;
  const int64_t count = allocations.load() - allocations_;
  const auto each = [operations](int64_t total) {
    return static_cast<double>(total) / static_cast<double>(operations);
  };
  std::printf("%.*s %.4f %.*s_allocs %.4f ", static_cast<int>(name.size()), name.data(), each(time),
              static_cast<int>(name.size()), name.data(), each(count));
}

void Meter::Print(std::string_view name, double value) {
  std::printf("%.*s %.4f ", static_cast<int>(name.size()), name.data(), value);
}

void Meter::PrintLateness(std::vector<int64_t> nanoseconds) {
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto early = std::lower_bound(nanoseconds.begin(), nanoseconds.end(), 0);
  const size_t last = nanoseconds.size() - 1;
  Print("p50_us", static_cast<double>(nanoseconds[last / 2]) / 1e3);
  Print("p99_us", static_cast<double>(nanoseconds[last * 99 / 100]) / 1e3);
  Print("early", static_cast<double>(early - nanoseconds.begin()));
}

std::vector<int64_t> RandomDelays(int64_t count) {
  constexpr int64_t kMinute = 60'000'000'000;
  std::mt19937_64 random(1);
  std::vector<int64_t> delays(static_cast<size_t>(count));
  for (int64_t& delay : delays) delay = kMinute + static_cast<int64_t>(random() % kMinute);
  return delays;
}

std::vector<int64_t> RandomOrder(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
  return order;
}

int WorkMain(int argc, char** argv, std::initializer_list<Work> works) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--list") {
    for (const Work& work : works) {
      std::printf("%.*s\n", static_cast<int>(work.name.size()), work.name.data());
    }
    return 0;
  }
  const int64_t count = argc > 2 ? std::atoll(argv[2]) : 0;
  for (const Work& work : works) {
    if (work.name != name || count <= 0) continue;
#ifdef NDEBUG
    std::printf("opt 1 ");
#else
    std::printf("opt 0 ");
#endif
    Meter meter;
    work.run(count, meter);
    std::printf("\n");
    return 0;
  }
  std::fprintf(stderr, "usage: %s WORK COUNT; or --list, for the names of the work\n", argv[0]);
  return 2;
}

}  // namespace weft::bench
