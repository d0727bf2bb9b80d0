// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a server does when the process may have no more descriptors.

#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/exception_context.h"
#include "weft/core/sleep.h"
#include "weft/loop/event_loop.h"
#include "weft/net/server.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class ServerPosixTest : public NetTest {};

// (The sanitizers need descriptors for purposes of their own.)
#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && !defined(ABSL_HAVE_THREAD_SANITIZER)

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  absl::StatusOr<std::string> some = co_await reader.Read(65536);
  if (some.ok()) writer.Write(*some);
  writer.Close();
}

// SRV 242
WEFT_TEST_F(ServerPosixTest, RunningOutOfDescriptorsIsReportedAndSurvived) {
  // The poller has opened what it needs, as that of a server that is at work.
  StreamPair other;
  other.a.writer.Write("x");
  absl::StatusOr<std::string> came = co_await other.b.reader.Read(1);
  absl::StatusOr<Server> server = co_await StartServer(Echo, "127.0.0.1", 0);
  // Described when there are descriptors again: UBSan needs some of its own to look
  // at an exception.
  std::vector<ExceptionContext> reports;
  EventLoop& loop = GetRunningLoop();
  loop.SetExceptionHandler(
      [&reports](EventLoop&, const ExceptionContext& context) { reports.push_back(context); });
  Socket client = Socket::Open(SocketDomain::kInet).value();
  rlimit old_limit;
  ::getrlimit(RLIMIT_NOFILE, &old_limit);
  rlimit limit = old_limit;
  limit.rlim_cur = static_cast<rlim_t>(client.handle()) + 1;
  // All numbers below the limit are taken.
  std::vector<int> holes;
  while (holes.empty() || holes.back() < client.handle()) holes.push_back(::dup(0));
  ::close(holes.back());
  holes.pop_back();
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const TimePoint start = loop.Time();

  absl::Status connected = co_await client.Connect(server->addresses().front());
  EXPECT_TRUE(connected.ok()) << connected;
  absl::Status sent = co_await client.SendAll("x");
  EXPECT_TRUE(sent.ok());
  co_await Rounds(20);
  ::setrlimit(RLIMIT_NOFILE, &old_limit);
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports.at(0).message, HasSubstr("socket.accept() out of system resource"));
  EXPECT_THAT(DescribeException(reports.at(0).exception), HasSubstr("EMFILE"));
  EXPECT_THAT(reports.at(0).socket,
              HasSubstr(absl::StrCat("listening on 127.0.0.1:", server->port())));

  char buffer[10];
  absl::StatusOr<size_t> count = co_await client.Recv(absl::MakeSpan(buffer));
  EXPECT_EQ(count.value(), 1u);
  EXPECT_GE(loop.Time() - start, absl::Seconds(1));
  EXPECT_LT(loop.Time() - start, absl::Seconds(2));
  EXPECT_EQ(reports.size(), 1u);
  for (int fd : holes) ::close(fd);
}
#endif

}  // namespace
}  // namespace weft
