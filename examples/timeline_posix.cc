// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sys/resource.h>

#include <algorithm>

#include "weft/examples/timeline.h"

namespace weft {

ProcessorTime ReadProcessorTime() {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_nvcsw};
}

int AllowDescriptors(int clients) {
  constexpr rlim_t kOthers = 50;
  const rlim_t wanted = static_cast<rlim_t>(clients) * 2 + kOthers;
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return clients;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur >= wanted ? clients : static_cast<int>((limit.rlim_cur - kOthers) / 2);
}

}  // namespace weft
