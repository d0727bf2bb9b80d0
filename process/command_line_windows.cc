// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/process/command_line_windows.h"

#include <cerrno>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weft/net/errno_status.h"

namespace weft::internal {

std::string QuoteArgument(std::string_view word) {
  if (!word.empty() && word.find_first_of(" \t\n\v\"") == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "\"";
  size_t backslashes = 0;  // A backslash means itself, unless a quote follows the last one.
  for (const char c : word) {
    if (c == '\\') {
      ++backslashes;
    } else {
      if (c == '"') quoted.append(backslashes + 1, '\\');
      backslashes = 0;
    }
    quoted.push_back(c);
  }
  quoted.append(backslashes, '\\');
  quoted.push_back('"');
  return quoted;
}

absl::StatusOr<std::string> QuoteArguments(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv) {
    if (&word != &argv.front()) {
      absl::StrAppend(&line, " ", QuoteArgument(word));
      continue;
    }
    if (word.find('"') != std::string::npos) {
      return ErrnoStatus(-EINVAL, absl::StrCat("start \"", absl::CHexEscape(word),
                                               "\": a program's name has no quotes"));
    }
    line = absl::StrCat("\"", word, "\"");
  }
  return line;
}

}  // namespace weft::internal
