// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/oracle.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace weft::oracle {

void Oracle::AskRandom(int64_t seed, int size) {
  Write(absl::StrCat("generate ", seed, " ", size, "\n"));
}

void Oracle::AskTrace(std::string_view program) {
  Write(absl::StrCat("trace ", program.size(), "\n"));
  Write(program);
}

absl::StatusOr<Oracle::Answer> Oracle::Read() {
  absl::StatusOr<std::string> head = ReadLine();
  if (!head.ok()) return head.status();
  const std::vector<std::string> words = absl::StrSplit(*head, ' ');
  size_t program_size = 0;
  size_t trace_size = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &program_size) ||
      !absl::SimpleAtoi(words[2], &trace_size)) {
    return absl::InternalError(absl::StrCat("the oracle said ", *head));
  }
  Answer answer;
  answer.is_valid = words[0] == "ok";
  if (!Read(program_size, &answer.program) || !Read(trace_size, &answer.trace)) {
    return absl::InternalError("the oracle stopped in the midst of an answer");
  }
  return answer;
}

absl::StatusOr<std::string> Oracle::ReadLine() {
  std::string line;
  std::string byte;
  while (Read(1, &byte)) {
    if (byte == "\n") return line;
    line += byte;
  }
  return absl::InternalError("the oracle has stopped");
}

std::string DescribeDifference(std::string_view expected, std::string_view actual) {
  const std::vector<std::string_view> wanted = absl::StrSplit(expected, '\n');
  const std::vector<std::string_view> got = absl::StrSplit(actual, '\n');
  for (size_t i = 0;; ++i) {
    const std::string_view want_line = i < wanted.size() ? wanted[i] : "(the end)";
    const std::string_view got_line = i < got.size() ? got[i] : "(the end)";
    if (want_line != got_line) {
      return absl::StrCat("line ", i + 1, " of the trace\n  CPython: ", want_line,
                          "\n  weft:    ", got_line, "\n");
    }
    if (i >= wanted.size()) return "no difference\n";
  }
}

}  // namespace weft::oracle
