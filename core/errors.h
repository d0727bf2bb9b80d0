// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_ERRORS_H_
#define WEFT_CORE_ERRORS_H_

#include <exception>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace weft {

// How weft speaks of failure, and who says it:
//
//   The kernel said no       a negated errno in `Operation::result`; `net/` turns
//                            it into an `absl::Status`
//   Cancelled, timed out     `CancelledError`, `TimeoutError`: thrown at the await,
//                            as asyncio does
//   The caller's mistake     `RuntimeError`, `ValueError`, `InvalidStateError`, in
//                            asyncio's words; inside the library
//                            `ABSL_HARDENING_ASSERT`, named by REQUIRES
//   What a user typed        `absl::Status` INVALID_ARGUMENT
//   User code threw          kept by the task, thrown again where it is awaited
//
// Nothing is thrown by a destructor, a poller or a signal handler.

// CancelledError
//
// What a cancelled await throws. It is not a `std::exception`, so that
// `catch (const std::exception&)` lets a cancellation pass.
//
// Python: asyncio.CancelledError, which is a BaseException for the same reason.
class CancelledError final {
 public:
  CancelledError() = default;
  explicit CancelledError(std::string message) : message_(std::move(message)) {}

  // What was given to `Cancel()`; empty if nothing was.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

// KeyboardInterrupt
//
// What `Run()` throws when SIGINT ended it. Not a `std::exception`, as in Python.
class KeyboardInterrupt final {};

// TimeoutError
//
// A deadline passed: thrown by `WithTimeout()` and `WaitFor()`.
class TimeoutError : public std::runtime_error {
 public:
  TimeoutError() : std::runtime_error("timed out") {}
  explicit TimeoutError(std::exception_ptr cause) : TimeoutError() { cause_ = std::move(cause); }
  using std::runtime_error::runtime_error;

  // The CancelledError that ended what took too long; may be null.
  // Python: __cause__.
  const std::exception_ptr& cause() const { return cause_; }

 private:
  std::exception_ptr cause_;
};

// InvalidStateError
//
// A future was asked for what it does not have yet, or given a second outcome.
class InvalidStateError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// RuntimeError
//
// A call that is wrong in this state: "Event loop is closed".
class RuntimeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// ValueError
//
// An argument that makes no sense; the message names it.
class ValueError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// BrokenBarrierError
//
// A barrier was aborted, or reset while this task waited at it.
class BrokenBarrierError : public RuntimeError {
 public:
  BrokenBarrierError() : RuntimeError("Barrier aborted") {}
  using RuntimeError::RuntimeError;
};

// QueueEmpty, QueueFull, QueueShutDown
//
// What a queue's calls throw that do not wait, and all of them after Shutdown().
class QueueEmpty : public std::runtime_error {
 public:
  QueueEmpty() : std::runtime_error("queue is empty") {}
};

class QueueFull : public std::runtime_error {
 public:
  QueueFull() : std::runtime_error("queue is full") {}
};

class QueueShutDown : public std::runtime_error {
 public:
  QueueShutDown() : std::runtime_error("queue is shut down") {}
};

// ExceptionGroup
//
// Several errors that happened together: what a `TaskGroup` throws.
class ExceptionGroup : public std::exception {
 public:
  // `what()` is `message` and the count: "errors (2 sub-exceptions)".
  // REQUIRES: `exceptions` is not empty and holds no null.
  ExceptionGroup(std::string message, std::vector<std::exception_ptr> exceptions);
  ExceptionGroup(const ExceptionGroup&) = default;
  ExceptionGroup& operator=(const ExceptionGroup&) = default;
  ~ExceptionGroup() override;

  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& message() const { return message_; }
  const std::vector<std::exception_ptr>& exceptions() const { return exceptions_; }

 private:
  std::string message_;
  std::string text_;
  std::vector<std::exception_ptr> exceptions_;
};

// What `exception` says, in one line with its type: "weft::TimeoutError: timed
// out"; of an ExceptionGroup also what its exceptions say. For logs and reprs; never
// throws. "no exception" for null.
std::string DescribeException(const std::exception_ptr& exception);

namespace internal {

// "weft::TimeoutError"
std::string TypeName(const std::type_info& type);

// True inside a handler of a `CancelledError`. Costs no second throw.
bool IsHandlingCancelledError();

// The same of a `KeyboardInterrupt`.
bool IsHandlingKeyboardInterrupt();

// Whether `error`, which may be null, is a `CancelledError`. Costs a throw.
bool IsCancelledError(const std::exception_ptr& error);

// The same of a `KeyboardInterrupt`.
bool IsKeyboardInterrupt(const std::exception_ptr& error);

}  // namespace internal
}  // namespace weft

#endif  // WEFT_CORE_ERRORS_H_
