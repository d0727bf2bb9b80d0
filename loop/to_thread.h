// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_TO_THREAD_H_
#define WEFT_LOOP_TO_THREAD_H_

#include <type_traits>
#include <utility>

#include "weft/core/closure.h"
#include "weft/loop/event_loop.h"

namespace weft {

// Runs `callable` on a thread of the running loop's default pool, for what would
// block the loop, and gives its result or what it threw:
//
//   std::string text = co_await ToThread([&] { return ReadFile(path); });
//
// The callable starts at the call, not at the await, and is destroyed on its
// thread. If the await is cancelled, a call that has begun goes on: what it
// refers to must live that long, so `[&]` is for what outlives the call.
//
// Errors: RuntimeError "no running event loop"; see EventLoop::RunInExecutor().
// Python: asyncio.to_thread().
template <class F>
Future<std::invoke_result_t<internal::ClosureType<F>&>> ToThread(
    F&& callable, const SourceLocation& location = SourceLocation::current()) {
  WEFT_CHECK_CLOSURE(F);
  return GetRunningLoop().RunInExecutor(nullptr, std::forward<F>(callable), location);
}

}  // namespace weft

#endif  // WEFT_LOOP_TO_THREAD_H_
