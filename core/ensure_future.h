// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_ENSURE_FUTURE_H_
#define WEFT_CORE_ENSURE_FUTURE_H_

#include <type_traits>
#include <utility>

#include "weft/core/future.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"

namespace weft {
namespace internal {

template <class T>
Future<T> AsFuture(const Future<T>&);

// A Future, a Task, or a reference to one.
template <class A>
concept FutureLike = requires(const std::remove_cvref_t<A>& a) { internal::AsFuture(a); };

// The Future<T> behind a FutureLike.
template <FutureLike A>
using FutureType = decltype(internal::AsFuture(std::declval<const std::remove_cvref_t<A>&>()));

}  // namespace internal

// A future of what is to be awaited: a Future or Task is that itself, anything
// else becomes a task of the running loop.
//
// Errors: RuntimeError "no running event loop", unless it is a future.
// Python: asyncio.ensure_future().
template <internal::FutureLike A>
internal::FutureType<A> EnsureFuture(A&& future,
                                     const SourceLocation& = SourceLocation::current()) {
  return std::forward<A>(future);
}
template <Awaitable A>
  requires(!internal::FutureLike<A>)
auto EnsureFuture(A&& awaitable, const SourceLocation& location = SourceLocation::current()) {
  auto task = internal::StartTask(Scheduler::CurrentOrThrow(),
                                  internal::ToCoro(std::forward<A>(awaitable)), location);
  using Type = internal::FutureType<decltype(task)>;
  return Type(std::move(task));
}

}  // namespace weft

#endif  // WEFT_CORE_ENSURE_FUTURE_H_
