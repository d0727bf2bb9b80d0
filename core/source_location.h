// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SOURCE_LOCATION_H_
#define WEFT_CORE_SOURCE_LOCATION_H_

#include <source_location>
#include <string>
#include <string_view>

namespace weft {

// A place in the source, as wide as a pointer: where a coroutine awaits, where
// a task was created.
using SourceLocation = std::source_location;

// One frame of a suspended task.
struct StackFrame {
  SourceLocation location;  // Line 0: the place is not known.

  std::string_view file() const { return location.file_name(); }
  uint32_t line() const { return location.line(); }
};

// "examples/tour.cc:41"
std::string ToString(const SourceLocation& location);

}  // namespace weft

#endif  // WEFT_CORE_SOURCE_LOCATION_H_
