// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_EXCEPTION_CONTEXT_H_
#define WEFT_CORE_EXCEPTION_CONTEXT_H_

#include <exception>
#include <optional>
#include <string>

#include "weft/core/callback.h"
#include "weft/core/future_ref.h"

namespace weft {

// ExceptionContext
//
// What the loop's exception handler is told. Only `message` is always there.
//
// Python: the dict that loop.call_exception_handler() takes.
struct ExceptionContext {
  ExceptionContext() {}
  explicit ExceptionContext(std::string text) : message(std::move(text)) {}

  std::string message;
  std::exception_ptr exception;
  FutureRef future;              // The future or task that it is about.
  std::optional<Handle> handle;  // The callback that failed.
  SourceLocation location;       // Where that was scheduled or created; line 0: not known.
  std::string socket;            // The socket that it is about, in words.
};

// The context in words, as the default handler logs it: the message, then one
// line for each field that is there.
std::string ToString(const ExceptionContext& context);

}  // namespace weft

#endif  // WEFT_CORE_EXCEPTION_CONTEXT_H_
