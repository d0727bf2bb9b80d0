// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_RUN_H_
#define WEFT_EXAMPLES_RUN_H_

#include <string>

#include "weft/core/coro.h"
#include "weft/examples/flags.h"

namespace weft {

// The end of an example's main(): runs `main` on the poller of that name, or, if it is
// empty, on the best there is. Returns the exit code: what `main` returns; that of
// `flags.Fail()` if there is no such poller; 130, as a shell has it, after Ctrl-C.
int RunOn(const std::string& poller, Coro<int> main, const Flags& flags);

}  // namespace weft

#endif  // WEFT_EXAMPLES_RUN_H_
