// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <sys/wait.h>
#include <unistd.h>

#include "absl/base/config.h"
#include "gtest/gtest.h"
#include "weft/loop/run.h"
#include "weft/net/resolver.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

// (ThreadSanitizer lets no child start threads.)
#if !defined(ABSL_HAVE_THREAD_SANITIZER)
// The pool's threads do not survive a fork, and are started anew.
TEST(ResolverPosixTest, WorksInAChildProcess) {
  auto body = []() -> Coro<void> {
    absl::StatusOr<Addresses> found = co_await GetAddrInfo("localhost", 7);
    WEFT_EXPECT_OK(found.status());
  };
  weft::Run(body());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    weft::Run(body());
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace weft
