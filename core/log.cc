// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/log.h"

#include <atomic>
#include <cstdio>

namespace weft {
namespace {

void WriteToStandardError(LogSeverity severity, std::string_view message) {
  // One call a message, so that those of several threads do not mix.
  std::fprintf(stderr, "weft: %s%.*s\n", severity == LogSeverity::kWarning ? "warning: " : "",
               static_cast<int>(message.size()), message.data());
}

std::atomic<LogSink> current_sink{&WriteToStandardError};

}  // namespace

LogSink SetLogSink(LogSink sink) {
  return current_sink.exchange(sink != nullptr ? sink : &WriteToStandardError);
}

namespace internal {

void Log(LogSeverity severity, std::string_view message) noexcept {
  try {
    current_sink.load()(severity, message);
  } catch (...) {  // Against its contract; but what was to be said is worth more.
    WriteToStandardError(severity, message);
  }
}

}  // namespace internal
}  // namespace weft
