// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// weft against CPython: the programs of programs/, whose traces CPython wrote, and
// random ones, for which it is asked now. For more of them: `//testing/oracle:fuzz`.

#include "weft/testing/oracle/oracle.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/testing/oracle/play.h"
#include "weft/testing/oracle/program.h"

namespace weft::oracle {
namespace {

constexpr int kRandomPrograms = 500;
constexpr char kSkipped[] =
    "SKIPPED: weft was not compared with CPython, as no python3 of version 3.11 or later was found";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<std::filesystem::path> HandWrittenPrograms() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator("testing/oracle/programs")) {
    if (entry.path().extension() == ".weft") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::filesystem::path TraceOf(std::filesystem::path program) {
  return program.replace_extension(".trace");
}

// What weft makes of `text`.
std::string Trace(const std::string& text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  return program.ok() ? Play(*program) : std::string(program.status().message());
}

TEST(OracleTest, HandWrittenProgramsRunAsUnderCPython) {
  const std::vector<std::filesystem::path> programs = HandWrittenPrograms();
  ASSERT_GE(programs.size(), 20u);

  for (const std::filesystem::path& path : programs) {
    const std::string expected = ReadFile(TraceOf(path));
    const std::string actual = Trace(ReadFile(path));
    EXPECT_TRUE(expected == actual) << path << ": " << DescribeDifference(expected, actual);
  }
}

// So that nobody changes a trace by hand.
TEST(OracleTest, TracesOfHandWrittenProgramsAreCPythons) {
  auto oracle = Oracle::Start();
  if (!oracle.ok()) GTEST_SKIP() << kSkipped;

  for (const std::filesystem::path& path : HandWrittenPrograms()) {
    (*oracle)->AskTrace(ReadFile(path));
    absl::StatusOr<Oracle::Answer> answer = (*oracle)->Read();
    ASSERT_TRUE(answer.ok()) << path << ": " << answer.status();
    const std::string kept = ReadFile(TraceOf(path));
    EXPECT_TRUE(answer->trace == kept) << path << ": " << DescribeDifference(answer->trace, kept);
  }
}

TEST(OracleTest, RandomProgramsRunAsUnderCPython) {
  auto oracle = Oracle::Start();
  if (!oracle.ok()) GTEST_SKIP() << kSkipped;

  (*oracle)->AskRandom(0, MixedSize(0));
  for (int seed = 0; seed < kRandomPrograms; ++seed) {
    (*oracle)->AskRandom(seed + 1, MixedSize(seed + 1));
    absl::StatusOr<Oracle::Answer> answer = (*oracle)->Read();
    ASSERT_TRUE(answer.ok()) << "seed " << seed << ": " << answer.status();
    const std::string actual = Trace(answer->program);
    if (!answer->is_valid) continue;
    ASSERT_TRUE(answer->trace == actual)
        << "seed " << seed << ", size " << MixedSize(seed) << ": "
        << DescribeDifference(answer->trace, actual) << "the program:\n"
        << answer->program;
  }
}

}  // namespace
}  // namespace weft::oracle
