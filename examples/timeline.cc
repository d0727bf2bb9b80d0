// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/timeline.h"

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

}  // namespace weft
