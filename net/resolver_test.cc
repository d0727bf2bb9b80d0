// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The system's resolver is asked for what is in every hosts file only: there may be no
// network.

#include "weft/net/resolver.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/executor/executor.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/test_net.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using MaybeAddresses = absl::StatusOr<Addresses>;
using MaybeName = absl::StatusOr<NameInfo>;

// (The system opens files of its own, also for a look-up that nobody waits for any more,
// so descriptors are not counted.)
class ResolverTest : public ::testing::Test {};

WEFT_TEST_F_IN_REAL_TIME(ResolverTest, FindsAddresses) {
  MaybeAddresses found = co_await GetAddrInfo("localhost", 7);
  WEFT_ASSERT_OK(found.status());
  EXPECT_TRUE(found->front().is_loopback());
  EXPECT_EQ(found->front().port(), 7);

  ResolveOptions v4;
  v4.family = SocketAddress::Family::kIpv4;
  found = co_await GetAddrInfo("localhost", 7, v4);
  EXPECT_EQ(found->front().ToString(), "127.0.0.1:7");

  std::string with_nul("local\0host", 10);
  found = co_await GetAddrInfo(with_nul, 7);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("local\\x00host"));
}

// CONN 232: no thread, and nobody is asked.
WEFT_TEST_F(ResolverTest, NumbersNeedNoLookUp) {
  ResolveOptions v4, v6, any;
  v4.family = SocketAddress::Family::kIpv4;
  v6.family = SocketAddress::Family::kIpv6;
  any.passive = true;
  MaybeAddresses found = co_await GetAddrInfo("127.0.0.1", 7);
  EXPECT_THAT(*found, ElementsAre(SocketAddress::Ipv4Loopback(7)));
  found = co_await GetAddrInfo("::1", 7, v6);
  EXPECT_THAT(*found, ElementsAre(SocketAddress::Ipv6Loopback(7)));
  found = co_await GetAddrInfo("", 7, v4);
  EXPECT_THAT(*found, ElementsAre(SocketAddress::Ipv4Loopback(7)));
  found = co_await GetAddrInfo("", 7, any);
  EXPECT_THAT(*found, ElementsAre(SocketAddress::Ipv4Any(7), SocketAddress::Ipv6Any(7)));
  found = co_await GetAddrInfo("::1", 7, v4);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("another family"));
}

WEFT_TEST_F_IN_REAL_TIME(ResolverTest, FindsNames) {
  NameOptions numeric;
  numeric.numeric_host = numeric.numeric_service = true;
  MaybeName name = co_await GetNameInfo(SocketAddress::Ipv6Loopback(80), numeric);
  EXPECT_EQ(name->host, "::1");
  EXPECT_EQ(name->service, "80");

  numeric.numeric_host = false;
  name = co_await GetNameInfo(SocketAddress::Ipv4Loopback(80), numeric);
  WEFT_ASSERT_OK(name.status());
  EXPECT_THAT(name->host, HasSubstr("localhost"));
  EXPECT_EQ(name->service, "80");

  name = co_await GetNameInfo(SocketAddress::FromUnixPath("/x").value());
  EXPECT_EQ(name.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(name.status().message()), HasSubstr("unix:/x"));
}

// An executor that refuses everything.
class NoExecutor final : public Executor {
 public:
  void Submit(absl::AnyInvocable<void()>) override { throw RuntimeError("a thread was used"); }
  size_t queue_depth() const override { return 0; }
  void Shutdown(ExecutorShutdown how) override {
    if (how.ended) how.ended();
  }
};

// Slow names do not hold up files and computations, nor the other way round.
TEST_F(ResolverTest, HasThreadsOfItsOwn) {
  NoExecutor executor;
  RunOptions options;
  options.environment.executor = &executor;
  auto body = []() -> Coro<void> {
    MaybeAddresses found = co_await GetAddrInfo("localhost", 7);
    EXPECT_TRUE(found.ok()) << found.status();
  };
  weft::Run(body(), options);
}

// Takes an hour.
class SlowResolver final : public Resolver {
 public:
  Coro<MaybeAddresses> Resolve(std::string, uint16_t port, ResolveOptions) override {
    ++asked;
    co_await Sleep(absl::Hours(1));
    ++answered;
    co_return Addresses(1, SocketAddress::Ipv4Loopback(port));
  }
  int asked = 0;
  int answered = 0;
};

WEFT_TEST_F(ResolverTest, TimesOut) {
  SlowResolver resolver;
  ResolveOptions options;
  options.timeout = absl::Seconds(5);
  MaybeAddresses found = co_await GetAddrInfo("slow", 7, options, &resolver);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(found.status().message(), "resolve \"slow\": timed out after 5s");
  options.timeout = absl::Hours(2);
  found = co_await GetAddrInfo("slow", 7, options, &resolver);
  WEFT_EXPECT_OK(found.status());
  EXPECT_EQ(resolver.answered, 1);
}

WEFT_TEST_F(ResolverTest, CanBeCancelled) {
  SlowResolver resolver;
  Task<MaybeAddresses> lookup = CreateTask(GetAddrInfo("slow", 7, ResolveOptions(), &resolver));
  co_await Sleep(absl::Seconds(1));
  lookup.Cancel();
  co_await NoThrow(lookup);
  EXPECT_TRUE(lookup.Cancelled());
  EXPECT_EQ(resolver.asked, 1);
}

// Also the system's, wherever its threads are by then.
WEFT_TEST_F_IN_REAL_TIME(ResolverTest, CancellingTheSystemsLeavesNothingBehind) {
  for (int i = 0; i < 200; ++i) {
    std::vector<Task<MaybeAddresses>> lookups;
    for (int j = 0; j < 20; ++j) lookups.push_back(CreateTask(GetAddrInfo("localhost", 7)));
    co_await Rounds(i % 5);
    for (Task<MaybeAddresses>& lookup : lookups) lookup.Cancel();
    for (Task<MaybeAddresses>& lookup : lookups) co_await NoThrow(lookup);
  }
  MaybeAddresses found = co_await GetAddrInfo("localhost", 7);
  WEFT_EXPECT_OK(found.status());
}

// A loop's own, for all that runs on it.
TEST_F(ResolverTest, TheEnvironmentMayHaveAnother) {
  SlowResolver resolver;
  VirtualClock clock;
  RunOptions options;
  options.environment.resolver = &resolver;
  options.environment.clock = &clock;
  auto body = []() -> Coro<void> {
    MaybeAddresses found = co_await GetAddrInfo("localhost", 7);
    WEFT_EXPECT_OK(found.status());
    MaybeName name = co_await GetNameInfo(SocketAddress::Ipv4Loopback(7));
    EXPECT_EQ(name.status().code(), absl::StatusCode::kUnimplemented);
  };
  weft::Run(body(), options);
  EXPECT_EQ(resolver.answered, 1);
}

}  // namespace
}  // namespace weft
