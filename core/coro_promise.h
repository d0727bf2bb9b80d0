// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CORO_PROMISE_H_
#define WEFT_CORE_CORO_PROMISE_H_

#include <coroutine>
#include <cstddef>

#include "weft/core/block_pool.h"
#include "weft/core/source_location.h"

namespace weft::internal {

class TaskState;
class OutcomeBase;
struct CoroPromise;

// The part of a coroutine that awaits another one which that one has to know:
// it lies in the awaiting frame, in the awaiter.
struct CoroAwaiterBase {
  std::coroutine_handle<> child;  // Owned. Whoever destroys it early clears it.
  CoroPromise* parent = nullptr;  // Who awaits.
};

// What every coroutine of weft has in its promise, whatever it returns. The
// frames of a suspended task form a chain, from the leaf that waits up to the
// root: `awaiter->parent`.
struct CoroPromise {
  CoroPromise() {}
  CoroPromise(const CoroPromise&) = delete;

  static void* operator new(size_t size) { return AllocateBlock(size); }
  static void operator delete(void* frame, size_t size) noexcept { FreeBlock(frame, size); }

  // A derived promise is no more strictly aligned than this one (the values lie
  // elsewhere), so the frame is where it would be for a promise of this type.
  std::coroutine_handle<> handle() {
    return std::coroutine_handle<CoroPromise>::from_promise(*this);
  }

  CoroAwaiterBase* awaiter = nullptr;  // Null: the root of its task.
  TaskState* task = nullptr;           // Null until it is started.
  OutcomeBase* outcome = nullptr;      // An Outcome<T>: where the result goes.
  SourceLocation awaiting_at;          // Its last `co_await`; at first, its definition.
};

// Destroys a coroutine that was never started, and says so in the log: unless this
// thread is destroying what was cancelled before it started.
void DestroyNeverAwaited(CoroPromise& promise) noexcept;

// Destroys the frame of a coroutine that nothing waits for. It may hold another as a
// parameter, and so on.
void DestroyFrame(std::coroutine_handle<> frame) noexcept;

// While it lives, this thread destroys coroutines that nobody has to hear of.
class NeverAwaitedIsFine {
 public:
  NeverAwaitedIsFine();
  ~NeverAwaitedIsFine();
  NeverAwaitedIsFine(const NeverAwaitedIsFine&) = delete;

 private:
  bool previous_;
};

}  // namespace weft::internal

#endif  // WEFT_CORE_CORO_PROMISE_H_
