// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/source_location.h"

#include "absl/strings/str_cat.h"

namespace weft {

std::string ToString(const SourceLocation& location) {
  return absl::StrCat(location.file_name(), ":", location.line());
}

}  // namespace weft
