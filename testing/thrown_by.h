// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_THROWN_BY_H_
#define WEFT_TESTING_THROWN_BY_H_

#include <exception>
#include <string>

#include "weft/core/errors.h"

namespace weft {

// What `call()` throws, with its type: "weft::TimeoutError: too late"; "nothing" if it
// does not.
//
// Threads: any.
template <class F>
std::string ThrownBy(F&& call) {
  try {
    call();
  } catch (...) {
    return DescribeException(std::current_exception());
  }
  return "nothing";
}

}  // namespace weft

#endif  // WEFT_TESTING_THROWN_BY_H_
