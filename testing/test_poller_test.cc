// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/test_poller.h"

#include <stdio.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/loop/event_loop.h"
#include "weft/poller/poller_registry.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Poller> MakeNone() { return nullptr; }
absl::Status ProbeNone() { return absl::UnimplementedError("the kernel is made of wood"); }

// A backend that no machine has.
[[maybe_unused]] const bool registered = [] {
  RegisterPoller({.name = "wooden", .make = &MakeNone, .probe = &ProbeNone, .priority = -1});
  return true;
}();

struct Ended {
  int status;
  std::string output;
};

// This program once more, on that backend.
Ended RunOn(const std::string& poller) {
  const std::string command =
      absl::StrCat("exec env -u XML_OUTPUT_FILE WEFT_POLLER=", poller, " /proc/", ::getpid(),
                   "/exe --gtest_filter=TestPollerTest.EachLoopIsOnIt 2>&1");
  Ended ended;
  FILE* out = ::popen(command.c_str(), "r");
  for (int c; (c = std::fgetc(out)) != EOF;) ended.output.push_back(static_cast<char>(c));
  ended.status = ::pclose(out);
  return ended;
}

WEFT_TEST(TestPollerTest, EachLoopIsOnIt) {
  const char* wanted = std::getenv("WEFT_POLLER");

  EXPECT_EQ(GetRunningLoop().poller_name(), wanted != nullptr ? wanted : DefaultPollerName());
  co_return;
}

TEST(TestPollerTest, ABackendThatIsNotThereIsSkippedWithTheReason) {
  const Ended ended = RunOn("wooden");

  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(absl::StrCat(kPollerSkipped, "poller 'wooden'")));
  EXPECT_THAT(ended.output, HasSubstr("the kernel is made of wood"));
  EXPECT_THAT(ended.output, Not(HasSubstr("[       OK ]")));
}

TEST(TestPollerTest, ABackendThatNobodyKnowsIsAFailure) {
  const Ended ended = RunOn("nosuch");

  EXPECT_NE(ended.status, 0);
  EXPECT_THAT(ended.output, HasSubstr("there is no poller 'nosuch'"));
}

}  // namespace
}  // namespace weft
