// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXECUTOR_THREAD_NAME_H_
#define WEFT_EXECUTOR_THREAD_NAME_H_

#include <string>

namespace weft::internal {

// Calls the current thread "<prefix>_<number>", for debuggers and `top`. Cuts
// the prefix, and not the number, to what the system keeps; does nothing where
// the system keeps no names.
void SetThreadName(const std::string& prefix, int number);

}  // namespace weft::internal

#endif  // WEFT_EXECUTOR_THREAD_NAME_H_
