// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_EXECUTOR_JOB_H_
#define WEFT_LOOP_EXECUTOR_JOB_H_

#include <atomic>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "weft/core/errors.h"
#include "weft/core/future.h"
#include "weft/core/outcome.h"
#include "weft/executor/executor.h"
#include "weft/loop/loop_owned.h"
#include "weft/loop/loop_ref.h"

namespace weft {

class EventLoop;

namespace internal {

// What these templates need of a loop.
LoopRef RefOf(EventLoop& loop);
Scheduler& SchedulerOf(EventLoop& loop);
LoopOwnedList& OwnedBy(EventLoop& loop);
void AddOutsiderTo(EventLoop& loop);
void RemoveOutsiderFrom(EventLoop& loop);

// The loop's half of a job in an executor.
template <class R>
class JobOnLoop final : public LoopOwned {
 public:
  JobOnLoop(EventLoop* loop, Future<R> future) : loop_(loop), future_(std::move(future)) {
    AddOutsiderTo(*loop_);
  }
  ~JobOnLoop() override { RemoveOutsiderFrom(*loop_); }

  // The job has ended, or was dropped.
  void Complete(Outcome<R> outcome) {
    Future<R> future = std::move(future_);
    LoopOwnedList::Destroy(this);
    if (future.Done()) return;  // Cancelled meanwhile.
    if (outcome.cancelled()) {
      future.Cancel();
    } else if (outcome.has_exception()) {
      future.SetException(outcome.exception());
    } else if constexpr (std::is_void_v<R>) {
      future.SetResult();
    } else {
      future.SetResult(outcome.Take());
    }
  }

 private:
  EventLoop* loop_;
  Future<R> future_;
};

// Whether a job has begun, or was cancelled before it did: decided once.
class JobGate {
 public:
  bool Begin() { return !taken_.exchange(true, std::memory_order_acq_rel); }
  bool Cancel() { return !taken_.exchange(true, std::memory_order_acq_rel); }

 private:
  std::atomic<bool> taken_{false};
};

// The executor's half: run once on its thread, or destroyed unrun. Either way
// the loop is told.
template <class F, class R>
class JobOnThread {
 public:
  JobOnThread(F callable, LoopRef loop, JobOnLoop<R>* on_loop, std::shared_ptr<JobGate> gate)
      : callable_(std::move(callable)),
        loop_(std::move(loop)),
        on_loop_(on_loop),
        gate_(std::move(gate)) {}
  JobOnThread(JobOnThread&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : callable_(std::move(other.callable_)),
        loop_(std::move(other.loop_)),
        on_loop_(std::exchange(other.on_loop_, nullptr)),
        gate_(std::move(other.gate_)) {}
  ~JobOnThread() {
    if (on_loop_ == nullptr) return;
    Outcome<R> outcome;
    outcome.SetCancelled(std::make_exception_ptr(CancelledError()));
    Tell(std::move(outcome));
  }

  void operator()() {
    Outcome<R> outcome;
    if (!gate_->Begin()) {
      outcome.SetCancelled(std::make_exception_ptr(CancelledError()));
    } else {
      try {
        if constexpr (std::is_void_v<R>) {
          (*callable_)();
          outcome.Emplace();
        } else {
          outcome.Emplace((*callable_)());
        }
      } catch (...) {
        // Nobody cancels a thread: whatever it threw is an error.
        outcome.SetError(std::current_exception());
      }
    }
    callable_.reset();  // Here, on this thread, and before the loop hears of it.
    Tell(std::move(outcome));
  }

 private:
  void Tell(Outcome<R> outcome) {
    JobOnLoop<R>* on_loop = std::exchange(on_loop_, nullptr);
    try {
      loop_.Post([on_loop, outcome = std::move(outcome)]() mutable {
        on_loop->Complete(std::move(outcome));
      });
    } catch (const RuntimeError&) {
      // The loop is closed, and its half is gone with it.
    }
  }

  std::optional<F> callable_;
  LoopRef loop_;
  JobOnLoop<R>* on_loop_;  // Null once told. For the loop's thread alone.
  std::shared_ptr<JobGate> gate_;
};

template <class F>
auto SubmitJob(EventLoop& loop, Executor& executor, F callable, const SourceLocation& location) {
  using R = std::invoke_result_t<F&>;
  if (SchedulerOf(loop).closed()) throw RuntimeError("Event loop is closed");
  Future<R> future = MakeFuture<R>(SchedulerOf(loop), location);
  auto gate = std::make_shared<JobGate>();
  JobOnLoop<R>* on_loop = OwnedBy(loop).Add(std::make_unique<JobOnLoop<R>>(&loop, future));
  try {
    executor.Submit(JobOnThread<F, R>(std::move(callable), RefOf(loop), on_loop, gate));
  } catch (...) {
    // The refused job has been destroyed, and has posted that it was dropped; the
    // future is nobody's, and hears of it.
    future.Cancel();
    throw;
  }
  future.AddDoneCallback(
      [gate = std::move(gate)](const Future<R>& done) {
        if (done.Cancelled()) gate->Cancel();
      },
      location);
  return future;
}

}  // namespace internal
}  // namespace weft

#endif  // WEFT_LOOP_EXECUTOR_JOB_H_
