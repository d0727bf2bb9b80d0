// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_WAKER_H_
#define WEFT_POLLER_WAKER_H_

namespace weft {

// Waker
//
// What another thread wakes a sleeping poller by. It comes from
// `Poller::MakeWaker()`, is shared, and owns what it writes to: so it may
// outlive the poller, and a late wake never reaches a number that has come back
// for something else.
//
// It does not coalesce: whoever posts many times keeps a flag of its own, and
// wakes once until the loop has looked.
//
// Threads: `Wake()` may be called from any thread and from a signal handler. What
// happens before `Wake()` happens before the return of the `Wait()` it ends.
class Waker {
 public:
  virtual ~Waker() = default;

  // Makes the poller's current `Wait()`, or else its next one, return. Several
  // wakes may count as one; after the poller has gone, it does nothing.
  //
  // If the channel is broken (somebody closed its descriptor, or a sandbox
  // forbids the write), the process ends with a message: a loop that can no
  // longer be woken would only hang without one.
  virtual void Wake() noexcept = 0;
};

}  // namespace weft

#endif  // WEFT_POLLER_WAKER_H_
