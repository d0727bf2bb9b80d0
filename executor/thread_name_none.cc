// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// For systems without names of threads, and those where nobody has tried yet.
// TODO(port): pthread_set_name_np() on BSD.

#include <string>

#include "weft/executor/thread_name.h"

namespace weft::internal {

void SetThreadName(const std::string&, int) {}

}  // namespace weft::internal
