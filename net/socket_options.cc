// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket_options.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft::internal {
namespace {

absl::StatusOr<int> CountUnits(absl::Duration value, absl::Duration unit) {
  const int64_t units = absl::Ceil(value, unit) / unit;
  if (value < absl::ZeroDuration() || units > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("no time for an option of a socket: ", absl::FormatDuration(value)));
  }
  return static_cast<int>(units);
}

}  // namespace

absl::StatusOr<int> OptionToNative(const OptionKey<absl::Duration>& key, absl::Duration value) {
  return CountUnits(value, key.unit);
}

absl::StatusOr<int> OptionToNative(const OptionKey<std::optional<absl::Duration>>& key,
                                   std::optional<absl::Duration> value) {
  if (!value.has_value()) return -1;
  return CountUnits(*value, key.unit);
}

}  // namespace weft::internal
