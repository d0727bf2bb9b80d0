// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/shrink.h"

#include <string>

#include "gtest/gtest.h"

namespace weft::oracle {
namespace {

TEST(ShrinkTest, LeavesOnlyWhatMatters) {
  const std::string program =
      "future f1\n"
      "proc main {\n"
      "  spawn t1 p1\n"
      "  group {\n"
      "    try {\n"
      "      log first\n"
      "      yield\n"
      "    } finally {\n"
      "      log second\n"
      "      sleep 3\n"
      "    }\n"
      "  }\n"
      "}\n"
      "proc p1 {\n"
      "  yield\n"
      "}\n";

  const std::string smallest = Shrink(
      program, [](const std::string& text) { return text.find("sleep 3") != std::string::npos; });

  EXPECT_EQ(smallest, "proc main {\n  sleep 3\n}\n");
}

TEST(ShrinkTest, KeepsAProgramOfWhichNothingCanGo) {
  const std::string program = "proc main {\n  yield\n}\n";

  const std::string smallest = Shrink(
      program, [](const std::string& text) { return text.find("yield") != std::string::npos; });

  EXPECT_EQ(smallest, program);
}

}  // namespace
}  // namespace weft::oracle
