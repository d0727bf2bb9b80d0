// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_UTF8_H_
#define WEFT_EXAMPLES_UTF8_H_

#include <cstdint>
#include <string_view>

namespace weft {

// Utf8Checker
//
// Whether a text that comes in pieces is UTF-8 (RFC 3629): no overlong forms, no
// surrogates, nothing above U+10FFFF.
//
// Threads: a value.
class Utf8Checker {
 public:
  // False once what has come cannot be the beginning of such a text.
  bool Add(std::string_view piece);

  // Whether no character is in the middle.
  bool is_complete() const { return missing_ == 0; }

 private:
  int missing_ = 0;  // So many bytes of a character are to come,
  uint8_t low_ = 0;  // and the next is one of these.
  uint8_t high_ = 0;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_UTF8_H_
