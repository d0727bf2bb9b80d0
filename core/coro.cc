// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/coro.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/bounded_depth.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"

namespace weft::internal {
namespace {

constinit thread_local bool never_awaited_is_fine = false;

}  // namespace

NeverAwaitedIsFine::NeverAwaitedIsFine() : previous_(std::exchange(never_awaited_is_fine, true)) {}
NeverAwaitedIsFine::~NeverAwaitedIsFine() { never_awaited_is_fine = previous_; }

void DestroyFrame(std::coroutine_handle<> frame) noexcept {
  BoundedDepth<std::coroutine_handle<>>::Destroy(
      frame, [](std::coroutine_handle<> each) { each.destroy(); });
}

void DestroyNeverAwaited(CoroPromise& promise) noexcept {
  const SourceLocation defined_at = promise.awaiting_at;
  DestroyFrame(promise.handle());
  if (never_awaited_is_fine) return;
  try {
    Log(LogSeverity::kWarning,
        absl::StrCat("coroutine '", FunctionName(defined_at),
                     "' was never awaited\n  defined at: ", ToString(defined_at)));
  } catch (const std::bad_alloc&) {
    // Then nobody hears of it.
  }
}

void ThrowCoroReused() { throw RuntimeError("cannot reuse already awaited coroutine"); }

}  // namespace weft::internal
