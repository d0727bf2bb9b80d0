// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <windows.h>

#include "weft/examples/timeline.h"

namespace weft {

ProcessorTime ReadProcessorTime() {
  const auto seconds = [](const FILETIME& time) {
    constexpr double kSecondsATick = 1e-7;
    constexpr double kTicksAHighOne = 4294967296.0;
    return (time.dwHighDateTime * kTicksAHighOne + time.dwLowDateTime) * kSecondsATick;
  };
  FILETIME begin, end, in_kernel = {}, in_program = {};
  ::GetProcessTimes(::GetCurrentProcess(), &begin, &end, &in_kernel, &in_program);
  return {seconds(in_program), seconds(in_kernel), 0};  // Windows does not count sleeps.
}

// There are millions.
int AllowDescriptors(int clients) { return clients; }

}  // namespace weft
