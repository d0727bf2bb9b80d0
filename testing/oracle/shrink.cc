// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/testing/oracle/shrink.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weft/testing/oracle/program.h"

namespace weft::oracle {
namespace {

using Lines = std::vector<std::string>;

bool Opens(const std::string& line) { return absl::EndsWith(line, "{"); }
bool Closes(const std::string& line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "}");
}

// The lines on which the blocks of the statement at `first` begin and end: one
// line for a statement without a block.
std::vector<size_t> Bounds(const Lines& lines, size_t first) {
  std::vector<size_t> bounds{first};
  if (!Opens(lines[first])) return bounds;
  int depth = 1;
  for (size_t i = first + 1; i < lines.size(); ++i) {
    if (Closes(lines[i])) --depth;
    if (depth == 0) bounds.push_back(i);
    if (Opens(lines[i])) ++depth;
    if (depth == 0) return bounds;
  }
  return bounds;
}

// Without the lines from `first` to `last`, both included.
Lines Without(const Lines& lines, size_t first, size_t last) {
  Lines rest(lines.begin(), lines.begin() + first);
  rest.insert(rest.end(), lines.begin() + last + 1, lines.end());
  return rest;
}

// The programs in which the statement at `first` is gone, or only one of its
// blocks is left of it.
std::vector<Lines> Smaller(const Lines& lines, size_t first) {
  const std::vector<size_t> bounds = Bounds(lines, first);
  std::vector<Lines> smaller{Without(lines, first, bounds.back())};
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    Lines unwrapped(lines.begin(), lines.begin() + first);
    unwrapped.insert(unwrapped.end(), lines.begin() + bounds[i] + 1, lines.begin() + bounds[i + 1]);
    unwrapped.insert(unwrapped.end(), lines.begin() + bounds.back() + 1, lines.end());
    smaller.push_back(std::move(unwrapped));
  }
  return smaller;
}

// The text again, each line as far in as its block.
std::string Indented(const Lines& lines) {
  std::string text;
  size_t depth = 0;
  for (const std::string& line : lines) {
    if (Closes(line) && depth > 0) --depth;
    absl::StrAppend(&text, std::string(2 * depth, ' '), absl::StripLeadingAsciiWhitespace(line),
                    "\n");
    if (Opens(line)) ++depth;
  }
  return text;
}

}  // namespace

std::string Shrink(std::string program,
                   const std::function<bool(const std::string&)>& still_fails) {
  Lines lines = absl::StrSplit(absl::StripSuffix(program, "\n"), '\n');
  bool found = true;
  while (found) {
    found = false;
    for (size_t i = 0; i < lines.size();) {
      bool shrunk = false;
      if (!Closes(lines[i])) {
        for (Lines& candidate : Smaller(lines, i)) {
          const std::string text = absl::StrJoin(candidate, "\n") + "\n";
          if (!ParseProgram(text).ok() || !still_fails(text)) continue;
          lines = std::move(candidate);
          shrunk = found = true;
          break;
        }
      }
      if (!shrunk) ++i;
    }
  }
  return Indented(lines);
}

}  // namespace weft::oracle
