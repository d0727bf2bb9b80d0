// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_FUTURE_REF_H_
#define WEFT_CORE_FUTURE_REF_H_

#include <exception>
#include <string>
#include <utility>

#include "weft/core/future_state.h"

namespace weft {

// FutureRef
//
// A future or task of whatever type, or none: what diagnostics, Wait and the
// exception handler deal in. A counted reference.
//
// Threads: belongs to the loop's thread.
class FutureRef {
 public:
  FutureRef() = default;
  explicit FutureRef(internal::FutureStateRef state) : state_(std::move(state)) {}

  explicit operator bool() const { return static_cast<bool>(state_); }
  friend bool operator==(const FutureRef& a, const FutureRef& b) = default;

  // REQUIRES for all below: *this. In debug mode as Future's.
  bool Done() const {
    state_->scheduler()->CheckThread();
    return state_->done();
  }
  bool Cancelled() const {
    state_->scheduler()->CheckThread();
    return state_->cancelled();
  }
  bool Cancel(std::string message = "") {
    state_->CheckUse();
    return state_->Cancel(std::move(message));
  }

  // The error it ended with, or null. Errors: InvalidStateError while pending,
  // CancelledError if it was cancelled.
  std::exception_ptr Exception() const;

  // In one line, for people: "<Task pending name='Task-2' at a.cc:12>".
  std::string ToString() const { return state_->Repr(); }

  internal::FutureState* state() const { return state_.get(); }

 private:
  internal::FutureStateRef state_;
};

}  // namespace weft

#endif  // WEFT_CORE_FUTURE_REF_H_
