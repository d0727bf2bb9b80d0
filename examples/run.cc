// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/run.h"

#include <utility>

#include "weft/core/errors.h"
#include "weft/loop/run.h"

namespace weft {

int RunOn(const std::string& poller, Coro<int> main, const Flags& flags) {
  RunOptions options;
  options.poller = poller;
  try {
    return Run(std::move(main), options);
  } catch (const ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller.
  } catch (const KeyboardInterrupt&) {
    return 130;
  }
}

}  // namespace weft
