// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/exception_context.h"

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft {

std::string ToString(const ExceptionContext& context) {
  std::string text = context.message;
  if (context.exception != nullptr) {
    absl::StrAppend(&text, "\n  exception: ", DescribeException(context.exception));
  }
  if (context.future) absl::StrAppend(&text, "\n  future: ", context.future.ToString());
  if (context.location.line() != 0) {
    absl::StrAppend(&text, "\n  created at: ", ToString(context.location));
  }
  if (!context.socket.empty()) absl::StrAppend(&text, "\n  socket: ", context.socket);
  return text;
}

}  // namespace weft
