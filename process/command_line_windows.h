// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_COMMAND_LINE_WINDOWS_H_
#define WEFT_PROCESS_COMMAND_LINE_WINDOWS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::internal {

// A program of Windows gets one string, and takes it apart itself: nearly all by the rules
// of CommandLineToArgvW(), which are those of the C library.

// `word` as those rules have to see it.
std::string QuoteArgument(std::string_view word);

// All of `argv`. Its first word follows rules of its own, in which a quote cannot be
// had. Errors: INVALID_ARGUMENT if there is one.
absl::StatusOr<std::string> QuoteArguments(const std::vector<std::string>& argv);

}  // namespace weft::internal

#endif  // WEFT_PROCESS_COMMAND_LINE_WINDOWS_H_
