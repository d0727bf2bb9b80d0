// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

constinit thread_local ThreadExitHook* registered_hooks = nullptr;

}  // namespace

bool ThreadExitHook::Register() {
  if (is_registered_) return true;
  if (!WatchThisThread()) return false;
  is_registered_ = true;
  next_ = registered_hooks;
  registered_hooks = this;
  return true;
}

void RunThreadExitHooks() {
  while (registered_hooks != nullptr) {
    ThreadExitHook* hook = registered_hooks;
    registered_hooks = hook->next_;
    hook->is_registered_ = false;
    hook->run_();
  }
}

}  // namespace weft::internal
