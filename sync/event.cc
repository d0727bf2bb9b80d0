// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/sync/event.h"

#include "absl/strings/str_cat.h"

namespace weft {

std::string Event::ToString() const {
  return absl::StrCat("<Event [", set_ ? "set" : "unset", waiters_.Suffix(), "]>");
}

// Out of the list while it waits: the event is gone.
std::string internal::EventAwaiter::Description() const {
  return is_linked() ? event_->ToString() : "<Event destroyed>";
}

}  // namespace weft
