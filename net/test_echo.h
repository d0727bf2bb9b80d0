// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TEST_ECHO_H_
#define WEFT_NET_TEST_ECHO_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/core/timeout.h"
#include "weft/net/stream.h"

namespace weft {

// Sends back what comes, without a copy of its own, until the end.
inline Coro<void> EchoByFill(Connection& connection) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await connection.reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    connection.writer.Write(std::string_view(unread->data(), unread->size()));
    connection.reader.Consume(unread->size());
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

// Sends `size` bytes and waits for their echo, with a timeout as a client has one; so
// many times.
inline Coro<void> AskEcho(Connection& connection, char* buffer, size_t size, int times) {
  for (int i = 0; i < times; ++i) {
    connection.writer.Write(std::string_view(buffer, size));
    for (size_t received = 0; received < size;) {
      absl::StatusOr<size_t> count = co_await WithTimeout(
          absl::Seconds(10), connection.reader.ReadInto(absl::MakeSpan(buffer, size - received)));
      EXPECT_TRUE(count.ok());
      if (!count.ok() || *count == 0) co_return;
      received += *count;
    }
  }
}

}  // namespace weft

#endif  // WEFT_NET_TEST_ECHO_H_
