// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// For systems that do not say where a thread may run, and those where nobody has tried
// yet. TODO(port): cpuset_getaffinity() on FreeBSD, GetProcessAffinityMask() on Windows.

#include <numeric>
#include <thread>
#include <vector>

#include "weft/loop/processors.h"

namespace weft {

std::vector<int> AvailableProcessors() {
  const unsigned count = std::thread::hardware_concurrency();
  std::vector<int> processors(count == 0 ? 1 : count);
  std::iota(processors.begin(), processors.end(), 0);
  return processors;
}

bool PinThisThread(int) { return false; }

}  // namespace weft
