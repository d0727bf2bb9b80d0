// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sched.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <vector>

#include "weft/loop/processors.h"

namespace weft {
namespace {

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using Set = std::unique_ptr<cpu_set_t, FreeSet>;

// More than any kernel is built for (CONFIG_NR_CPUS).
constexpr int kMostProcessors = 1 << 16;

}  // namespace

std::vector<int> AvailableProcessors() {
  std::vector<int> processors;
  // sched_getaffinity(2): EINVAL if the set is smaller than the kernel's own.
  for (int count = CPU_SETSIZE; count <= kMostProcessors; count *= 2) {
    const Set set(CPU_ALLOC(static_cast<size_t>(count)));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(count));
    if (set == nullptr) break;
    CPU_ZERO_S(size, set.get());
    if (::sched_getaffinity(0, size, set.get()) != 0) {
      if (errno == EINVAL) continue;
      break;
    }
    for (int i = 0; i < count; ++i) {
      if (CPU_ISSET_S(static_cast<size_t>(i), size, set.get())) processors.push_back(i);
    }
    break;
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

bool PinThisThread(int processor) {
  if (processor < 0 || processor >= kMostProcessors) return false;
  const size_t count = static_cast<size_t>(processor) + 1;
  const Set set(CPU_ALLOC(count));
  const size_t size = CPU_ALLOC_SIZE(count);
  if (set == nullptr) return false;
  CPU_ZERO_S(size, set.get());
  CPU_SET_S(static_cast<size_t>(processor), size, set.get());
  return ::sched_setaffinity(0, size, set.get()) == 0;
}

}  // namespace weft
