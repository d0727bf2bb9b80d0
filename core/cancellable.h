// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CANCELLABLE_H_
#define WEFT_CORE_CANCELLABLE_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

namespace weft::internal {

class FutureState;

// What something says when it is asked to end.
enum class CancelAnswer : uint8_t {
  kRefused,   // It is over already, or cannot: whoever waits for it must be told.
  kAccepted,  // It will end because of this.
  kRing,      // It is being asked already: tasks wait for each other in a ring.
};

// Something a task can wait for, as far as cancelling the task is concerned.
//
// Cancelling a task cancels what it waits for, which may be a task that waits
// in turn, or a gather of many: a tree, as deep as the program likes. So the
// walk is a loop with a stack of its own, in `RequestCancel()`, and each kind of
// thing says only what is below it and what it makes of the answers. Nothing of
// the user's runs during a walk.
class Cancellable {
 public:
  struct Step {
    Cancellable* below;  // Ask this first. Null: the answer follows.
    CancelAnswer answer;
  };

  // The request arrives. `error` holds the CancelledError with the caller's
  // message; null if there is no message.
  virtual Step BeginCancel(const std::exception_ptr& error) = 0;

  // `count` things below have answered; `answers` is the best of them: kAccepted
  // before kRing before kRefused. Called only if something below was named.
  virtual Step ContinueCancel(size_t count, CancelAnswer answers) {
    (void)count;
    return {nullptr, answers};
  }

  // Whether it was cancelled by an earlier request: then the awaiter is thrown
  // that one's CancelledError, whatever comes until it runs.
  virtual bool WasCancelled() const { return false; }

  // What it is, in one line, for who asks what a task waits for: "<Lock [locked,
  // waiters:2]>". The default is the name of its class.
  virtual std::string Description() const;

  // The future that it is; null if it is none.
  virtual const FutureState* AsFuture() const { return nullptr; }

 protected:
  ~Cancellable() = default;
};

// Asks `target` and what it waits for to end.
CancelAnswer RequestCancel(Cancellable* target, const std::exception_ptr& error);

// A CancelledError without a message.
std::exception_ptr MakeCancelledError();

}  // namespace weft::internal

#endif  // WEFT_CORE_CANCELLABLE_H_
