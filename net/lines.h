// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_LINES_H_
#define WEFT_NET_LINES_H_

#include <string>

#include "absl/status/statusor.h"
#include "weft/core/async_generator.h"
#include "weft/net/connection.h"

namespace weft {

// The lines of a stream, one after the other, each with its "\n"; the last may have
// none. `reader` has to stay.
//
//   AsyncGenerator<absl::StatusOr<std::string>> lines = Lines(reader);
//   while (true) {
//     std::optional<absl::StatusOr<std::string>> line = co_await lines.Next();
//     if (!line.has_value()) break;  // The end.
//     if (!line->ok()) co_return line->status();
//     ...
//   }
//
// Errors: those of ReadLine(), as an element. After a line that was too long
// (RESOURCE_EXHAUSTED) the next follow; any other is the last element.
// Python: async for line in reader.
inline AsyncGenerator<absl::StatusOr<std::string>> Lines(StreamReader& reader) {
  while (true) {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (line.ok() && line->empty()) co_return;
    const bool goes_on = line.ok() || line.status().code() == absl::StatusCode::kResourceExhausted;
    co_yield std::move(line);
    if (!goes_on) co_return;
  }
}

}  // namespace weft

#endif  // WEFT_NET_LINES_H_
