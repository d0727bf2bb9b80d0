// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_TO_THREAD_H_
#define WEFT_LOOP_TO_THREAD_H_

#include <type_traits>
#include <utility>

#include "weft/core/closure.h"
#include "weft/core/context.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace internal {

// A callable that sees, on whatever thread it runs, the context variables of
// where it was made.
template <class F>
class InContext {
 public:
  InContext(F callable, ContextRef context)
      : callable_(std::move(callable)), context_(std::move(context)) {}

  decltype(auto) operator()() {
    struct Scope {
      ContextRef* previous;
      ~Scope() { outside_context = previous; }
    } scope{std::exchange(outside_context, &context_)};
    return callable_();
  }

 private:
  F callable_;
  ContextRef context_;  // A clone: its count is this thread's.
};

}  // namespace internal

// Runs `callable` on a thread of the running loop's default pool, for what would
// block the loop, and gives its result or what it threw:
//
//   std::string text = co_await ToThread([&] { return ReadFile(path); });
//
// The callable starts at the call, not at the await, and is destroyed on its
// thread. If the await is cancelled, a call that has begun goes on: what it
// refers to must live that long, so `[&]` is for what outlives the call. It sees
// copies of the caller's context variables.
//
// Errors: RuntimeError "no running event loop"; see EventLoop::RunInExecutor().
// Python: asyncio.to_thread().
template <class F>
  requires internal::PlainCallback<internal::ClosureType<F>>
Future<std::invoke_result_t<internal::ClosureType<F>&>> ToThread(
    F&& callable, const SourceLocation& location = SourceLocation::current()) {
  WEFT_CHECK_CLOSURE(F);
  EventLoop& loop = GetRunningLoop();
  internal::ContextRef context = loop.current_context();
  internal::InContext<internal::ClosureType<F>> in_context(
      internal::KeepClosure(std::forward<F>(callable)),
      context ? context->Clone() : internal::ContextRef());
  return loop.RunInExecutor(nullptr, Take(in_context), location);
}

}  // namespace weft

#endif  // WEFT_LOOP_TO_THREAD_H_
