// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_PROCESSORS_H_
#define WEFT_LOOP_PROCESSORS_H_

#include <vector>

namespace weft {

// The processors that this thread may run on, by their numbers; at least one. A program
// that was started by `taskset -c 2,3`, or in a container with two of many, has two.
std::vector<int> AvailableProcessors();

// Lets this thread run on that one only. False if the system cannot, or will not.
bool PinThisThread(int processor);

}  // namespace weft

#endif  // WEFT_LOOP_PROCESSORS_H_
