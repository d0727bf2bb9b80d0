// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_LOG_H_
#define WEFT_CORE_LOG_H_

#include <string_view>

namespace weft {

enum class LogSeverity { kWarning, kError };

// Where weft's own words go: a function that is given one message, of one or
// more lines, without a newline at its end. It may be called from any thread
// and must not throw.
using LogSink = void (*)(LogSeverity severity, std::string_view message);

// Replaces the sink for the whole program; null restores the default, which
// writes "weft: MESSAGE" to standard error. Returns the one before. Any thread.
//
// Python: the logger "asyncio".
LogSink SetLogSink(LogSink sink);

namespace internal {

// Hands `message` to the sink. Any thread.
void Log(LogSeverity severity, std::string_view message) noexcept;

}  // namespace internal
}  // namespace weft

#endif  // WEFT_CORE_LOG_H_
