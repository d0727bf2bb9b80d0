// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_MATCHES_REGEX_H_
#define WEFT_TESTING_MATCHES_REGEX_H_

#include <regex>
#include <string>

#include "gmock/gmock.h"

namespace weft {

// That of GoogleTest knows no [0-9] where the C library has no regex.h. This is
// ECMAScript's, everywhere; the whole text has to match.
MATCHER_P(MatchesRegex, pattern, "matches regular expression \"" + std::string(pattern) + "\"") {
  return std::regex_match(std::string(arg), std::regex(std::string(pattern)));
}

}  // namespace weft

#endif  // WEFT_TESTING_MATCHES_REGEX_H_
