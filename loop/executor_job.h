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

  // The job has ended so: takes the result out of an rvalue, copies it else. If
  // that throws, it is the future's error.
  template <class O>
  void Complete(O&& outcome) {
    Future<R> future = Detach();
    if (future.Done()) return;  // Cancelled meanwhile.
    if (outcome.cancelled()) {
      future.Cancel();
    } else if (outcome.has_exception()) {
      future.SetException(outcome.exception());
    } else if constexpr (std::is_void_v<R>) {
      future.SetResult();
    } else {
      try {
        if constexpr (std::is_lvalue_reference_v<O>) {
          future.SetResult(outcome.value());
        } else {
          future.SetResult(outcome.Take());
        }
      } catch (...) {
        future.SetException(std::current_exception());
      }
    }
  }

  // The job was dropped.
  void Cancel() { Detach().Cancel(); }

 private:
  // The end of this.
  Future<R> Detach() {
    Future<R> future = std::move(future_);
    LoopOwnedList::Destroy(this);
    return future;
  }

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
// the loop is told, if there was one to tell.
//
// The outcome lies on the heap: on its way to the loop it does not move, which
// might throw, where nobody can be told of it.
template <class F, class R>
class JobOnThread {
 public:
  JobOnThread(F callable, LoopRef loop, std::shared_ptr<JobGate> gate)
      : callable_(std::move(callable)), loop_(std::move(loop)), gate_(std::move(gate)) {}
  JobOnThread(JobOnThread&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : callable_(std::move(other.callable_)),
        loop_(std::move(other.loop_)),
        on_loop_(std::exchange(other.on_loop_, nullptr)),
        gate_(std::move(other.gate_)) {}
  ~JobOnThread() {
    if (on_loop_ != nullptr) Tell(nullptr);
  }

  // REQUIRES: called before it is submitted.
  void set_on_loop(JobOnLoop<R>* on_loop) { on_loop_ = on_loop; }

  void operator()() {
    std::unique_ptr<Outcome<R>> outcome;
    if (gate_->Begin()) {
      outcome = std::make_unique<Outcome<R>>();
      try {
        if constexpr (std::is_void_v<R>) {
          (*callable_)();
          outcome->Emplace();
        } else {
          outcome->Emplace((*callable_)());
        }
      } catch (...) {
        // Nobody cancels a thread: whatever it threw is an error.
        outcome->SetError(std::current_exception());
      }
    }
    callable_.reset();  // Here, on this thread, and before the loop hears of it.
    Tell(std::move(outcome));
  }

 private:
  // Null: it did not run.
  void Tell(std::unique_ptr<Outcome<R>> outcome) {
    JobOnLoop<R>* on_loop = std::exchange(on_loop_, nullptr);
    try {
      loop_.Post([on_loop, outcome = std::move(outcome)]() {
        if (outcome == nullptr) return on_loop->Cancel();
        on_loop->Complete(std::move(*outcome));
      });
    } catch (const RuntimeError&) {
      // The loop is closed, and its half is gone with it.
    }
  }

  std::optional<F> callable_;
  LoopRef loop_;
  JobOnLoop<R>* on_loop_ = nullptr;  // Null once told. For the loop's thread alone.
  std::shared_ptr<JobGate> gate_;
};

template <class F>
auto SubmitJob(EventLoop& loop, Executor& executor, F callable, const SourceLocation& location) {
  using R = std::invoke_result_t<F&>;
  if (ABSL_PREDICT_FALSE(SchedulerOf(loop).core()->guarded)) SchedulerOf(loop).CheckCall();
  Future<R> future = MakeFuture<R>(SchedulerOf(loop), location);
  auto gate = std::make_shared<JobGate>();
  JobOnThread<F, R> job(std::move(callable), RefOf(loop), gate);
  job.set_on_loop(OwnedBy(loop).Add(std::make_unique<JobOnLoop<R>>(&loop, future)));
  try {
    executor.Submit(std::move(job));
  } catch (...) {
    // The refused job posts that it was dropped when it is destroyed; the future is
    // nobody's, and hears of it.
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
