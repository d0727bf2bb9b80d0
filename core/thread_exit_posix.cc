// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Here thread_local memory goes after the last destructor, so one of those tells.

#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

constinit thread_local bool has_ended = false;

struct Watch {
  bool is_used = false;

  ~Watch() {
    RunThreadExitHooks();
    has_ended = true;
  }
};

thread_local Watch watch;

}  // namespace

bool WatchThisThread() {
  if (has_ended) return false;
  watch.is_used = true;  // Registers the destructor for this thread.
  return true;
}

}  // namespace weft::internal
