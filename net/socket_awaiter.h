// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_SOCKET_AWAITER_H_
#define WEFT_NET_SOCKET_AWAITER_H_

#include <cerrno>
#include <coroutine>
#include <exception>
#include <utility>

#include "absl/base/optimization.h"
#include "weft/core/cancellable.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/core/task_state.h"
#include "weft/net/socket_state.h"
#include "weft/poller/operation.h"

namespace weft::internal {

// One operation of one task on a socket. It lies in the awaiter, and so in the
// frame of the coroutine that waits: nothing is allocated.
//
// An operation that is done at once does not suspend the task, unless it has used
// up its budget of those (see poller/poller.h); then it yields. Else the
// operation's runnable queues the task when it is finished: two hops, as in
// asyncio, where the callback of a ready descriptor completes a future.
//
// Cancelling is a request to the poller. A readiness kernel ends the operation on
// the spot; then the task is queued at once, as asyncio has it. Of a completion
// kernel the task waits for the end, for the buffer is the kernel's until then.
// What that had already delivered and cannot be taken back wins, and the
// cancellation stays pending for the next await.
//
// Threads: belongs to the loop's thread.
class SocketOperation : public Operation, public Cancellable {
 public:
  SocketOperation(const SocketOperation&) = delete;

  Step BeginCancel(const std::exception_ptr& error) override;

 protected:
  SocketOperation(RunFn run, IntrusivePtr<SocketState> socket)
      : Operation(run), socket_(std::move(socket)) {}

  // Whether `task` can use the socket; if not, the operation is over.
  bool CheckUsable(TaskState* task);

  // Starts what was prepared; false if it is over and the task need not suspend.
  bool StartFor(std::coroutine_handle<> handle);

  // The await ends. True if it is to throw the task's `cancelled_error()`. `stays`:
  // what it has done cannot be taken back.
  bool EndedByCancel(bool stays);

  void WakeTask() { task_->Wake(); }
  // One more operation at once: false if there were too many in this step.
  bool SpendBudget();
  void Suspend(std::coroutine_handle<> handle) {
    is_suspended_ = true;
    task_->Suspend(handle, this);
  }
  void Yield(std::coroutine_handle<> handle) {
    is_suspended_ = true;
    task_->Suspend(handle, nullptr);
    task_->Wake();
  }

  Poller& poller() const { return socket_->loop().poller(); }
  [[noreturn]] static void ThrowOtherLoop();

  IntrusivePtr<SocketState> socket_;
  TaskState* task_ = nullptr;
  bool is_suspended_ = false;
  bool is_cancelling_ = false;
  bool is_misused_ = false;
};

// What an awaiter is made of. `Derived` has Prepare(), which fills in the
// operation; Stays(), whether what it has done cannot be taken back; and Take(),
// what the await yields.
template <class Derived>
class [[nodiscard]] SocketAwaiter : public SocketOperation {
 public:
  bool await_ready() const { return false; }

  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> handle) {
    if (ABSL_PREDICT_FALSE(!CheckUsable(handle.promise().task))) return false;
    derived().Prepare();
    return StartFor(handle);
  }

  auto await_resume() {
    if (ABSL_PREDICT_FALSE(EndedByCancel(derived().Stays()))) {
      std::rethrow_exception(task_->cancelled_error());
    }
    if (ABSL_PREDICT_FALSE(is_misused_)) ThrowOtherLoop();
    return derived().Take();
  }

  auto await_outcome() {
    Outcome<decltype(std::declval<Derived&>().Take())> outcome;
    if (EndedByCancel(derived().Stays())) {
      outcome.SetCancelled(task_->cancelled_error());
    } else if (is_misused_) {
      try {
        ThrowOtherLoop();
      } catch (...) {
        outcome.SetCurrentException();
      }
    } else {
      outcome.Emplace(derived().Take());
    }
    return outcome;
  }

 protected:
  explicit SocketAwaiter(IntrusivePtr<SocketState> socket)
      : SocketOperation(&OnDone, std::move(socket)) {}
  SocketAwaiter(RunFn run, IntrusivePtr<SocketState> socket)
      : SocketOperation(run, std::move(socket)) {}

 private:
  static void OnDone(Runnable* runnable) { static_cast<SocketAwaiter*>(runnable)->WakeTask(); }
  Derived& derived() { return static_cast<Derived&>(*this); }
};

}  // namespace weft::internal

#endif  // WEFT_NET_SOCKET_AWAITER_H_
