// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_POLLER_H_
#define WEFT_POLLER_POLLER_H_

#include <cstddef>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "weft/core/runnable.h"
#include "weft/core/time_point.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"
#include "weft/poller/slab_pool.h"
#include "weft/poller/waker.h"

namespace weft {

enum class StartResult { kDone, kPending };

// Poller
//
// The only place where the loop's thread meets the kernel and may sleep. It
// takes operations and gives them back finished, whether the kernel reports
// readiness (epoll, kqueue, poll) or completion (io_uring, IOCP).
//
// A poller runs no callbacks: it appends finished operations to a queue, and
// the loop runs them. So nothing is ever called from inside `Start()` or
// `Cancel()`, and no backend has to think about re-entrance. It never throws.
//
// In each round the loop calls `Collect()`, then `Wait()`:
//
//   poller->Collect(&done);
//   poller->Wait(next_deadline, &done);
//   while (Runnable* next = done.PopFront()) next->Run();
//
// At the end: `CancelAll()`, then rounds until `pending()` is zero, then destroy
// it. A handle that was used with a poller is closed by `PrepareRetire()` and by
// nothing else.
//
// Descriptors of its own are opened when first needed (by an operation that has
// to wait, a `Wait()` that sleeps, `BackendFd()`), so an unused poller costs none;
// and then all of them, so that none is missing when the program has used up its own.
// If one cannot be had all the same, that is no error of `Wait()`: until it can,
// nobody can wake the poller, which sleeps in naps of 10 ms.
//
// To add a backend: implement the pure functions, instantiate
// `poller/poller_conformance.h` in its test, and register it by name. See
// poller/README.md.
//
// Threads: belongs to the loop's thread; only the `Waker` may go elsewhere.
class Poller {
 public:
  Poller() = default;
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // REQUIRES: `pending()` is zero. A backend makes sure all the same that nothing
  // dangles: it waits until its kernel has let go, and what was pending is
  // `kDone` with -ECANCELED, in no queue; nobody is told.
  virtual ~Poller() = default;

  // "epoll", "io_uring", ...: for logs, statistics and test names.
  virtual std::string_view name() const = 0;

  // Starts `op`. `kDone`: it is finished, `op->result` holds the outcome, and
  // nothing was queued. `kPending`: `Collect()` or `Wait()` will give it back,
  // once.
  // REQUIRES: `op` is new, or has been given back since it was last started.
  virtual StartResult Start(Operation* op) = 0;

  // Asks for a pending `op` to end early. It is still given back: with -ECANCELED,
  // or with its real result if the kernel was faster. A `kRecvLent` that has
  // been given back but not fetched gives up its turn: nothing is queued, and it
  // may not be fetched any more. Does nothing to any other.
  virtual void Cancel(Operation* op) = 0;

  // Does that to all that are pending. Handles stay open.
  virtual void CancelAll() = 0;

  // Fetches the bytes that a finished `kRecvLent` has announced. The owner calls
  // it when `op` runs, or when `Start()` has returned `kDone`; or a round later, if
  // `message_flags` says `kWithKernel`.
  //
  //   kDone      `op->result` > 0: so many bytes are at the start of `*slab`.
  //              `op->result` is 0 at the end of the stream, or a negated errno;
  //              then `*slab` is empty.
  //   kPending   It was a false alarm. `op` waits again, and will be given back
  //              again; nobody needs to be resumed.
  //
  // A readiness backend receives here, into a slab of `pool`; a completion
  // backend hands over a slab that its kernel has filled. While an announced
  // operation is not fetched, later ones of its direction wait behind it.
  // REQUIRES: `op` was given back, or was done at once, and not fetched since.
  virtual StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) = 0;

  // Appends what has ended without the kernel (cancelled or retired) to `done`;
  // true if that was something. Makes no system call, so it belongs into every
  // round, also into one that does not poll.
  bool Collect(ReadyQueue* done) {
    if (ended_.empty()) return false;
    done->Splice(&ended_);
    return true;
  }

  // What Collect() would append.
  const ReadyQueue& ended() const { return ended_; }

  // Sleeps until an operation is finished, `deadline` on the steady clock passes
  // or a waker wakes, and appends what is finished to `done`, in order. Does not
  // sleep if something is finished already, if `done` is not empty, or if the
  // deadline has passed: `TimePoint::InfinitePast()` just looks.
  // `InfiniteFuture()` is no deadline.
  // Never returns before the deadline without a reason, but the reason may be a
  // signal, a report that turned out to mean nothing, or the end of a nap.
  //
  // Errors: only those after which the poller cannot go on (kInternal). What befalls
  // one operation is in its `result`.
  virtual absl::Status Wait(TimePoint deadline, ReadyQueue* done) = 0;

  // What makes `Wait()` return from elsewhere. Always the same one.
  virtual std::shared_ptr<Waker> MakeWaker() = 0;

  // To live inside a foreign loop: a handle that is readable when `Wait()` would
  // give something back, and after the moment last passed to `ArmBackend()`. It
  // is the poller's own, and stays the same. `kInvalidHandle` if the backend has
  // none, or if no descriptors are left.
  virtual NativeHandle BackendFd() { return kInvalidHandle; }

  // Makes `BackendFd()` readable at `deadline` at the latest; at once if something
  // waits for `Collect()`. Whoever lives in a foreign loop calls it after each
  // round, and looks afterwards for what other threads have posted: a wake that comes
  // during the call may be forgotten.
  virtual void ArmBackend(TimePoint deadline) { static_cast<void>(deadline); }

  // Operations that the kernel has yet to end. Virtual time stands still, and
  // `Close()` waits, while there are any.
  size_t pending() const { return pending_; }
  bool HasPending() const { return pending_ != 0; }

 protected:
  ReadyQueue ended_;    // Finished, and not yet collected.
  size_t pending_ = 0;  // Started, and not yet finished.
};

}  // namespace weft

#endif  // WEFT_POLLER_POLLER_H_
