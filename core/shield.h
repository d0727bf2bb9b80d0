// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SHIELD_H_
#define WEFT_CORE_SHIELD_H_

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "weft/core/ensure_future.h"
#include "weft/core/future.h"
#include "weft/core/observer.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"

namespace weft {
namespace internal {

// The future that Shield() returns: it ends as `inner` does, but when it is
// cancelled, `inner` is not asked.
template <class T>
class ShieldState final : public FutureStateOf<T>, private ObservingFuture {
 public:
  ShieldState(SchedulerCore* scheduler, const SourceLocation& created_at)
      : FutureStateOf<T>(scheduler, created_at) {}

  static Future<T> Make(const Future<T>& inner, const SourceLocation& created_at) {
    auto* state = new ShieldState(inner.state()->scheduler(), created_at);
    Future<T> future{FutureStateRef(state)};
    state->inner_.set_target(FutureStateRef(inner.state()));
    state->inner_.Start(state);
    return future;
  }

  FutureState* outer() override { return this; }

  std::string Description() const override {
    DescribedList inner;
    inner.Add(*inner_.target());
    return "<Shield>" + inner.text();
  }

  Cancellable::Step BeginCancel(const std::exception_ptr& error) override {
    const Cancellable::Step step = FutureState::BeginCancel(error);
    // Once it is done, what becomes of `inner` is no business of this one; if
    // that is done already, its error counts as retrieved.
    if (inner_.is_started() && !inner_.target()->done()) inner_.Stop();
    return step;
  }

 private:
  bool GoesOnAlone() override {
    // Also if it does not wait any more: a cancelled shield and its inner future may
    // hold each other by way of a gather of both.
    inner_.Weaken();
    return inner_.is_started();
  }
  void OnTargetDropped(Observer*) override {}

  void OnTargetDone(Observer*) override {
    FutureState& inner = *inner_.target();
    if (this->done()) {
      inner.MarkRetrieved();
    } else if (inner.cancelled()) {
      this->FinishCancelled(inner.cancelled_error());
    } else if (inner.has_error()) {
      inner.MarkRetrieved();
      const Outcome<T>& ended = inner.template outcome<T>();
      if (ended.cancelled()) {
        this->outcome_.SetCancelled(ended.exception());
      } else {
        this->outcome_.SetError(ended.exception());
      }
      this->Finish(/*has_error=*/true);
    } else {
      TakeResult(inner);
    }
  }

  void TakeResult(FutureState& inner) {
    try {
      if constexpr (std::is_void_v<T>) {
        this->outcome_.Emplace();
      } else {
        this->outcome_.Emplace(FutureResult::Take<T>(inner));
      }
    } catch (...) {
      this->outcome_.SetCurrentException();
    }
    this->Finish(/*has_error=*/this->outcome_.has_exception());
  }

  Observer inner_;
};

template <class T>
Future<T> ShieldThis(Future<T> inner, const SourceLocation& location) {
  if (inner.Done()) return inner;
  return ShieldState<T>::Make(inner, location);
}

}  // namespace internal

// A future that ends as `awaitable` does, but keeps cancellation away from it:
// whoever awaits it is cancelled, and the other runs on. A Coro becomes a task,
// at the call; a future that is done is returned as it is.
//
//   Response response = co_await Shield(Commit(transaction));
//
// If the inner one is cancelled itself, so is the shield.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.shield().
template <Awaitable A>
auto Shield(A&& awaitable, const SourceLocation& location = SourceLocation::current()) {
  return internal::ShieldThis(EnsureFuture(std::forward<A>(awaitable), location), location);
}

}  // namespace weft

#endif  // WEFT_CORE_SHIELD_H_
