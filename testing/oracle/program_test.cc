// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/program.h"

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::oracle {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::string Error(std::string_view text) {
  return std::string(ParseProgram(text).status().message());
}

TEST(ProgramTest, ArgumentsAreSortedByKind) {
  absl::StatusOr<Program> program =
      ParseProgram("queue q1 2  # a comment\nproc main {\n  later h1 3 try_put q1 7\n}\n");

  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->objects.size(), 1u);
  EXPECT_EQ(program->objects[0].number, 2);
  const Statement& later = program->procs.at("main").at(0);
  EXPECT_EQ(later.op, Op::kLater);
  EXPECT_EQ(later.line, 3);
  EXPECT_THAT(later.words, ElementsAre("h1"));
  EXPECT_THAT(later.numbers, ElementsAre(3));
  EXPECT_EQ(later.blocks.at(0).at(0).op, Op::kTryPut);
}

TEST(ProgramTest, SeveralBlocksBelongToOneStatement) {
  absl::StatusOr<Program> program =
      ParseProgram("proc main {\n  try {\n    yield\n  } finally {\n    log a\n  }\n}");

  ASSERT_TRUE(program.ok()) << program.status();
  const Statement& statement = program->procs.at("main").at(0);
  EXPECT_THAT(statement.words, ElementsAre("finally"));
  EXPECT_EQ(statement.blocks.size(), 2u);
}

TEST(ProgramTest, ErrorsNameTheLine) {
  EXPECT_EQ(Error("proc main {\n  yeld\n}\n"), "line 2: unknown statement yeld");
  EXPECT_EQ(Error("proc main {\n  sleep soon\n}\n"),
            "line 2: sleep: expected a number in place of soon");
  EXPECT_EQ(Error("proc main {\n  sleep\n}\n"), "line 2: sleep: something is missing behind sleep");
  EXPECT_EQ(Error("proc main {\n  yield 1\n}\n"), "line 2: yield: unexpected 1");
  EXPECT_EQ(Error("proc main {\n  spawn t1 p1\n}\n"), "line 2: there is no proc p1");
  EXPECT_EQ(Error("proc main {\n  group {\n}\n"), "line 1: { that is not closed");
  EXPECT_EQ(Error("proc main {\n}\n}\n"), "line 3: } without {");
  EXPECT_EQ(Error("proc main {\n  soon h1 sleep 1\n}\n"),
            "line 2: sleep may wait, it cannot stand in a callback");
  EXPECT_EQ(Error("barrier b1 0\nproc main {\n}\n"), "line 1: a barrier is for 1 or more");
  EXPECT_THAT(Error("future f1\n"), StartsWith("line "));
}

}  // namespace
}  // namespace weft::oracle
