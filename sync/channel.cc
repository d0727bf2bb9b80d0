// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/channel.h"

#include "absl/strings/str_cat.h"

namespace weft::internal {

std::string ChannelText(size_t capacity, size_t size, size_t senders, size_t receivers,
                        bool closed) {
  std::string text = "<Channel capacity=";
  if (capacity == std::numeric_limits<size_t>::max()) {
    absl::StrAppend(&text, "unbounded");
  } else {
    absl::StrAppend(&text, capacity);
  }
  absl::StrAppend(&text, " size=", size);
  if (senders > 0) absl::StrAppend(&text, " senders=", senders);
  if (receivers > 0) absl::StrAppend(&text, " receivers=", receivers);
  if (closed) absl::StrAppend(&text, " closed");
  return text + ">";
}

}  // namespace weft::internal
