// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/timeline.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace weft {

void Timeline::Begin(std::string_view title) {
  begin_ = SteadyClock::Read();
  absl::PrintF("%s\n\n%11s  %-9s %s\n", title, "time", "who", "what");
}

void Timeline::Tell(std::string_view who, std::string_view what) const {
  absl::PrintF("%8.1f ms  %-9s %s\n", absl::ToDoubleMilliseconds(Elapsed()), who, what);
  std::fflush(stdout);
}

void Timeline::Check(bool holds, std::string_view what) {
  if (holds) return;
  ++failures_;
  Tell("FAILED", what);
}

void Timeline::Figure(std::string_view name, std::string_view figure,
                      std::string_view remark) const {
  absl::PrintF("  %-14s %14s   %s\n", name, figure, remark);
}

std::string Grouped(int64_t number) {
  if (number < 1000) return absl::StrCat(number);
  return absl::StrFormat("%s,%03d", Grouped(number / 1000), number % 1000);
}

std::string InMilliseconds(absl::Duration duration) {
  return absl::StrFormat("%.1f ms", absl::ToDoubleMilliseconds(duration));
}

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
