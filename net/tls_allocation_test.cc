// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A program of its own, for it counts all calls of operator new: what is done again and
// again on a connection by TLS makes none. (OpenSSL has malloc of its own, for the buffer
// of a record while it is at work.)

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#include "weft/core/task.h"
#include "weft/net/stream.h"
#include "weft/net/test_tls.h"
#include "weft/testing/weft_test.h"

namespace {
size_t allocations = 0;
}  // namespace

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace weft {
namespace {

// Under the sanitizers the free lists are off.
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

class TlsAllocationTest : public TlsTest {};

Coro<void> Echo(Connection& connection) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await connection.reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    connection.writer.Write(std::string_view(unread->data(), unread->size()));
    connection.reader.Consume(unread->size());
    absl::Status sent = co_await connection.writer.Drain();
    if (!sent.ok()) co_return;
  }
}

Coro<void> Ask(Connection& connection, char* buffer, size_t size, int times) {
  for (int i = 0; i < times; ++i) {
    connection.writer.Write(std::string_view(buffer, size));
    for (size_t received = 0; received < size;) {
      absl::StatusOr<size_t> count =
          co_await connection.reader.ReadInto(absl::MakeSpan(buffer, size - received));
      EXPECT_TRUE(count.ok());
      if (!count.ok() || *count == 0) co_return;
      received += *count;
    }
  }
}

WEFT_TEST_F_IN_REAL_TIME(TlsAllocationTest, TheSteadyStateAllocatesNothing) {
  const TlsContext client = ClientContext(), server = ServerContext();
  for (size_t size : {64, 2000, 20000}) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    TlsEnds ends = co_await Shake(std::move(pair), client, server);
    Task<void> echo = CreateTask(Echo(ends.server));
    std::string buffer(size, 'x');
    co_await Ask(ends.client, buffer.data(), size, 50);
    const size_t before = allocations;

    co_await Ask(ends.client, buffer.data(), size, 1000);

    if (kCounts) {
      EXPECT_EQ(allocations - before, 0u) << size;
    }
    ends.client.writer.Close();
    co_await echo;
    ends.server.writer.Close();
  }
}

}  // namespace
}  // namespace weft
