// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SOURCE_LOCATION_H_
#define WEFT_CORE_SOURCE_LOCATION_H_

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

namespace weft {

// A place in the source, as wide as a pointer: where a coroutine awaits, where
// a task was created.
using SourceLocation = std::source_location;

// The function that `location` is in, without its result and its parameters, nor
// what a compiler makes of its name when it is a coroutine: "app::Session::Read",
// "main()::<lambda()>". Empty if there is none.
std::string FunctionName(const SourceLocation& location);

// One frame of a suspended task: a coroutine and where it awaits. Of one that has
// not started, where it is defined: gcc names the last line of its body, clang the
// first.
struct StackFrame {
  SourceLocation location;  // Line 0: the place is not known.

  std::string_view file() const { return location.file_name(); }
  uint32_t line() const { return location.line(); }
  std::string function() const { return FunctionName(location); }
};

// "examples/tour.cc:41"
std::string ToString(const SourceLocation& location);

}  // namespace weft

#endif  // WEFT_CORE_SOURCE_LOCATION_H_
