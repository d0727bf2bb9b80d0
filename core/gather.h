// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_GATHER_H_
#define WEFT_CORE_GATHER_H_

#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/core/ensure_future.h"
#include "weft/core/future.h"
#include "weft/core/future_state.h"
#include "weft/core/observer.h"
#include "weft/core/outcome.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"

namespace weft {
namespace internal {

// How a T stands in a tuple or a vector.
template <class T>
struct Gathered {
  using Type = T;
};
template <>
struct Gathered<void> {
  using Type = std::monostate;
};
template <class T>
struct Gathered<T&> {
  using Type = std::reference_wrapper<T>;
};

// The result of a child that has one.
template <class T>
typename Gathered<T>::Type TakeGathered(FutureState& child) {
  if constexpr (std::is_void_v<T>) {
    return std::monostate();
  } else {
    return FutureResult::Take<T>(child);
  }
}

// How a child that is done ended.
template <class T>
Outcome<T> TakeGatheredOutcome(FutureState& child) {
  Outcome<T> outcome;
  if (child.cancelled()) {
    outcome.SetCancelled(child.cancelled_error());
    return outcome;
  }
  const Outcome<T>& ended = child.outcome<T>();
  if (ended.has_exception()) {
    child.MarkRetrieved();
    if (ended.cancelled()) {
      outcome.SetCancelled(ended.exception());
    } else {
      outcome.SetError(ended.exception());
    }
  } else if constexpr (std::is_void_v<T>) {
    outcome.Emplace();
  } else {
    outcome.Emplace(FutureResult::Take<T>(child));
  }
  return outcome;
}

// What all gathers do, whatever their children return.
//
// Children that are given twice have two observers, but only one of them waits.
class GatherLogic : public ObservingFuture {
 public:
  explicit GatherLogic(bool collects_errors) : collects_errors_(collects_errors) {}

  void OnTargetDone(Observer* child) override;
  void OnTargetDropped(Observer*) override { --waiting_; }

 protected:
  ~GatherLogic() = default;

  // Waits for the children, which have targets.
  // Errors: ValueError if one is another loop's.
  void Start(Observer* children, size_t count);

  // Cancelling: asks the children in order.
  Cancellable::Step AskFirst() { return {children_[0].target(), CancelAnswer::kAccepted}; }
  Cancellable::Step AskNext(size_t asked, CancelAnswer answers);

  std::string DescribeChildren() const;

  // Nobody holds the gather any more. Whether some child may still end it.
  bool LetGoOfChildren();

  // All are done, and have results.
  virtual void SetResults() = 0;
  // A child failed, or was cancelled.
  virtual void SetFailure(std::exception_ptr error, bool is_cancellation) = 0;

 private:
  void Count(FutureState& child);

  Observer* children_ = nullptr;
  size_t count_ = 0;
  size_t missing_ = 0;  // Not done, as far as the gather has been told.
  size_t waiting_ = 0;  // Observers that wait.
  bool collects_errors_;
  bool cancel_requested_ = false;
  bool is_let_go_ = false;
};

// The future that Gather() returns. `Children` owns the observers and makes a
// Result of them.
template <class Result, class Children>
class GatherState final : public FutureStateOf<Result>, private GatherLogic {
 public:
  template <class Futures>
  GatherState(SchedulerCore* scheduler, const SourceLocation& created_at, bool collects_errors,
              Futures&& futures)
      : FutureStateOf<Result>(scheduler, created_at),
        GatherLogic(collects_errors),
        children_(std::forward<Futures>(futures)) {}

  template <class Futures>
  static Future<Result> Make(SchedulerCore* scheduler, const SourceLocation& created_at,
                             bool collects_errors, Futures&& futures) {
    auto* state =
        new GatherState(scheduler, created_at, collects_errors, std::forward<Futures>(futures));
    Future<Result> future{FutureStateRef(state)};
    state->Start(state->children_.observers(), state->children_.count());
    return future;
  }

  FutureState* outer() override { return this; }

  std::string Description() const override { return DescribeChildren(); }

  Cancellable::Step BeginCancel(const std::exception_ptr&) override {
    if (this->done()) return {nullptr, CancelAnswer::kRefused};
    return AskFirst();
  }
  Cancellable::Step ContinueCancel(size_t count, CancelAnswer answers) override {
    return AskNext(count, answers);
  }

 private:
  bool GoesOnAlone() override { return LetGoOfChildren(); }

  void SetResults() override {
    try {
      this->outcome_.Emplace(children_.Take());
    } catch (...) {
      this->outcome_.SetCurrentException();
    }
    this->Finish(/*has_error=*/this->outcome_.has_exception());
  }
  void SetFailure(std::exception_ptr error, bool is_cancellation) override {
    if (is_cancellation) {
      this->outcome_.SetCancelled(std::move(error));
    } else {
      this->outcome_.SetError(std::move(error));
    }
    this->Finish(/*has_error=*/true);
  }

  Children children_;
};

// The children of Gather(a, b, ...). `kOutcomes`: of GatherOutcomes().
template <bool kOutcomes, class... Ts>
class GatheredTuple {
 public:
  using Result =
      std::tuple<std::conditional_t<kOutcomes, Outcome<Ts>, typename Gathered<Ts>::Type>...>;

  explicit GatheredTuple(const std::tuple<Future<Ts>...>& futures) {
    std::apply(
        [this](const auto&... future) {
          [[maybe_unused]] Observer* observer = observers_.data();
          (observer++->set_target(FutureStateRef(future.state())), ...);
        },
        futures);
  }

  Observer* observers() { return observers_.data(); }
  static constexpr size_t count() { return sizeof...(Ts); }

  Result Take() { return TakeAll(std::index_sequence_for<Ts...>()); }

 private:
  template <size_t... kIndex>
  Result TakeAll(std::index_sequence<kIndex...>) {
    // Braces, so that it goes from left to right.
    if constexpr (kOutcomes) {
      return Result{TakeGatheredOutcome<Ts>(*observers_[kIndex].target())...};
    } else {
      return Result{TakeGathered<Ts>(*observers_[kIndex].target())...};
    }
  }

  std::array<Observer, sizeof...(Ts)> observers_;
};

// The children of Gather(vector).
template <bool kOutcomes, class T>
class GatheredVector {
 public:
  using Result = std::vector<std::conditional_t<kOutcomes, Outcome<T>, typename Gathered<T>::Type>>;

  explicit GatheredVector(const std::vector<Future<T>>& futures)
      : count_(futures.size()), observers_(std::make_unique<Observer[]>(count_)) {
    for (size_t i = 0; i < count_; ++i) {
      observers_[i].set_target(FutureStateRef(futures[i].state()));
    }
  }

  Observer* observers() { return observers_.get(); }
  size_t count() const { return count_; }

  Result Take() {
    Result result;
    result.reserve(count_);
    for (size_t i = 0; i < count_; ++i) {
      if constexpr (kOutcomes) {
        result.push_back(TakeGatheredOutcome<T>(*observers_[i].target()));
      } else {
        result.push_back(TakeGathered<T>(*observers_[i].target()));
      }
    }
    return result;
  }

 private:
  size_t count_;
  std::unique_ptr<Observer[]> observers_;
};

template <class A>
using EnsuredValue =
    typename decltype(EnsureFuture(std::declval<A>(), SourceLocation()))::ValueType;

// Where a child is created: for what has no place for that, behind its other
// arguments, where a coroutine is defined.
template <class A>
SourceLocation PlaceOf(const A& awaitable, const SourceLocation& location) {
  if constexpr (IsCoro<A>::value) {
    if (location.line() == 0 && awaitable) return awaitable.defined_at();
  }
  return location;
}

template <bool kOutcomes, class... As>
auto GatherThese(const SourceLocation& location, As&&... awaitables) {
  // Braces, so that the tasks are made from left to right.
  const std::tuple<Future<EnsuredValue<As>>...> futures{
      EnsureFuture(std::forward<As>(awaitables), PlaceOf(awaitables, location))...};
  SchedulerCore* scheduler;
  if constexpr (sizeof...(As) > 0) {
    scheduler = std::get<0>(futures).state()->scheduler();
  } else {
    scheduler = Scheduler::CurrentOrThrow().core();
  }
  using Children = GatheredTuple<kOutcomes, EnsuredValue<As>...>;
  return GatherState<typename Children::Result, Children>::Make(scheduler, location, kOutcomes,
                                                                futures);
}

template <bool kOutcomes, class A>
auto GatherVector(const SourceLocation& location, std::vector<A> awaitables) {
  std::vector<Future<EnsuredValue<A>>> futures;
  futures.reserve(awaitables.size());
  for (A& awaitable : awaitables) {
    futures.push_back(EnsureFuture(std::move(awaitable), location));
  }
  awaitables.clear();  // So that the gather is the only one to hold what was given away.
  SchedulerCore* scheduler =
      futures.empty() ? Scheduler::CurrentOrThrow().core() : futures.front().state()->scheduler();
  using Children = GatheredVector<kOutcomes, EnsuredValue<A>>;
  return GatherState<typename Children::Result, Children>::Make(scheduler, location, kOutcomes,
                                                                futures);
}

}  // namespace internal

// Waits for all of several awaitables: a future of their results, in the order
// of the arguments, whatever the order in which they end. A Coro (or what else
// is neither a Future nor a Task) becomes a task, at the call.
//
//   std::tuple<Page, Page> both = co_await Gather(Fetch("a"), Fetch("b"));
//   std::vector<int> all = co_await Gather(std::move(tasks));
//
// In the results, void is std::monostate and T& a std::reference_wrapper<T>; a
// result is moved out of a future that nobody else holds.
//
// The first child that fails or is cancelled ends the gather with its error;
// the others run on. Cancel() of the gather, or of a task that awaits it,
// cancels all children that are not done, and the gather ends (with a
// CancelledError, as an error: Cancelled() stays false) when they have; it
// refuses if all of them are done.
//
// Threads: belongs to the loop's thread.
// Python: asyncio.gather().
template <Awaitable... As>
auto Gather(As&&... awaitables) {
  return internal::GatherThese</*kOutcomes=*/false>(SourceLocation(),
                                                    std::forward<As>(awaitables)...);
}
template <Awaitable A>
auto Gather(std::vector<A> awaitables, const SourceLocation& location = SourceLocation::current()) {
  return internal::GatherVector</*kOutcomes=*/false>(location, std::move(awaitables));
}

// Gather(), with an Outcome<T> for each, so that a child's error is a result
// like any other and does not end it.
//
// Python: asyncio.gather(return_exceptions=True).
template <Awaitable... As>
auto GatherOutcomes(As&&... awaitables) {
  return internal::GatherThese</*kOutcomes=*/true>(SourceLocation(),
                                                   std::forward<As>(awaitables)...);
}
template <Awaitable A>
auto GatherOutcomes(std::vector<A> awaitables,
                    const SourceLocation& location = SourceLocation::current()) {
  return internal::GatherVector</*kOutcomes=*/true>(location, std::move(awaitables));
}

}  // namespace weft

#endif  // WEFT_CORE_GATHER_H_
