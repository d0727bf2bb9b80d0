// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/sleep.h"

#include "absl/strings/str_cat.h"

namespace weft::internal {

std::string DescribeSleep(TimePoint deadline, TimePoint now) {
  if (deadline == TimePoint::InfiniteFuture()) return "<Sleep for ever>";
  return absl::StrCat("<Sleep for another ", absl::FormatDuration(deadline - now), ">");
}

}  // namespace weft::internal
