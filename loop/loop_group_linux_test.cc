// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What can only be seen with the help of Linux.

#include <pthread.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/loop/loop_group.h"

namespace weft {
namespace {

using ::testing::ElementsAre;

TEST(LoopGroupLinuxTest, NamesItsThreads) {
  LoopGroupOptions options;
  options.loops = 2;
  options.thread_name = "io";
  LoopGroup group(options);
  const auto name = [](int) -> Coro<std::string> {
    char buffer[16] = "";
    ::pthread_getname_np(::pthread_self(), buffer, sizeof(buffer));
    co_return buffer;
  };

  std::vector<std::string> names;
  for (const auto& future : group.RunOnEach(name)) names.push_back(future.Result());

  EXPECT_THAT(names, ElementsAre("io_0", "io_1"));
}

}  // namespace
}  // namespace weft
