// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_AS_COMPLETED_H_
#define WEFT_CORE_AS_COMPLETED_H_

#include <coroutine>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "weft/core/awaitable.h"
#include "weft/core/coro.h"
#include "weft/core/ensure_future.h"
#include "weft/core/errors.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/runnable.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/core/task.h"
#include "weft/core/timer.h"
#include "weft/core/waiter.h"

namespace weft {
namespace internal {

// The futures of an AsCompleted(): those that are not done are waited for, the
// others stand in a queue in the order in which they ended.
class CompletionQueue : private Timer {
 public:
  static constexpr size_t kTimedOut = ~size_t{0};

  CompletionQueue(Scheduler* scheduler, std::vector<FutureStateRef> futures,
                  absl::Duration timeout);
  ~CompletionQueue();

  // How many Next() are still to come.
  size_t left() const { return left_; }
  // The index of the next future; kTimedOut. REQUIRES: left() > 0.
  Coro<size_t> Next();

 private:
  struct Entry : Runnable {
    Entry() : Runnable(&OnDone) {}

    CompletionQueue* owner = nullptr;
    FutureStateRef future;
    bool is_waiting = false;
  };
  class ItemAwaiter;

  static void OnDone(Runnable* runnable);
  static void OnTimeout(Runnable* runnable);
  void StopTimer();
  void Put(size_t index);
  void WakeConsumer();

  Scheduler* scheduler_;
  size_t count_;
  size_t left_ = 0;
  size_t waiting_ = 0;
  std::unique_ptr<Entry[]> entries_;
  std::vector<size_t> done_;  // In order; those before `taken_` are gone.
  size_t taken_ = 0;
  List<Waiter> consumers_;
};

}  // namespace internal

// CompletedRange
//
// What AsCompleted() returns: an asynchronous sequence of the futures it was
// given, each when it is done. If it is dropped early, the tasks run on.
//
// Threads: belongs to the loop's thread.
template <class F>
class [[nodiscard]] CompletedRange {
 public:
  CompletedRange(Scheduler* scheduler, std::vector<F> futures, absl::Duration timeout)
      : futures_(std::move(futures)) {
    std::vector<internal::FutureStateRef> states;
    states.reserve(futures_.size());
    for (const F& future : futures_) states.emplace_back(future.state());
    queue_ = std::make_unique<internal::CompletionQueue>(scheduler, std::move(states), timeout);
  }

  // The next future that is done, in the order in which they end, or nothing
  // after the last. Its result or error is in it.
  // Errors: TimeoutError once the time is over, for each that was not done then.
  Coro<std::optional<F>> Next() {
    if (queue_->left() == 0) co_return std::nullopt;
    const size_t index = co_await queue_->Next();
    if (index == internal::CompletionQueue::kTimedOut) throw TimeoutError();
    co_return std::move(futures_[index]);
  }

 private:
  std::vector<F> futures_;
  std::unique_ptr<internal::CompletionQueue> queue_;
};

// The futures of several awaitables one after the other, in the order in which
// they end. Coroutines become tasks, at the call; a future that was given twice
// comes once. The time, if there is a limit, runs from the call, and when it is
// over nothing is cancelled.
//
// Errors: RuntimeError "no running event loop"; ValueError if one is another
// loop's.
//
//   auto completed = AsCompleted(std::move(tasks), absl::Seconds(1));
//   while (std::optional<Task<int>> task = co_await completed.Next()) {
//     Use(task->Result());
//   }
//
// Errors: ValueError if a future is another loop's.
// Threads: belongs to the loop's thread.
// Python: asyncio.as_completed(), iterated asynchronously.
template <internal::FutureLike F>
CompletedRange<F> AsCompleted(std::vector<F> futures,
                              absl::Duration timeout = absl::InfiniteDuration(),
                              const SourceLocation& = SourceLocation::current()) {
  return CompletedRange<F>(&Scheduler::CurrentOrThrow(), std::move(futures), timeout);
}
template <Awaitable A>
  requires(!internal::FutureLike<A>)
auto AsCompleted(std::vector<A> awaitables, absl::Duration timeout = absl::InfiniteDuration(),
                 const SourceLocation& location = SourceLocation::current()) {
  Scheduler& scheduler = Scheduler::CurrentOrThrow();
  using F = decltype(internal::StartTask(scheduler, internal::ToCoro(std::declval<A>()), location));
  std::vector<F> tasks;
  tasks.reserve(awaitables.size());
  for (A& awaitable : awaitables) {
    tasks.push_back(
        internal::StartTask(scheduler, internal::ToCoro(std::move(awaitable)), location));
  }
  return CompletedRange<F>(&scheduler, std::move(tasks), timeout);
}

}  // namespace weft

#endif  // WEFT_CORE_AS_COMPLETED_H_
