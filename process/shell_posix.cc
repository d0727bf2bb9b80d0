// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "weft/process/process.h"

extern char** environ;  // Not in every system's <unistd.h>.

namespace weft {
namespace internal {

std::vector<std::string> ShellArgv(const std::string& shell, const std::string& command) {
  return {shell.empty() ? "/bin/sh" : shell, "-c", command};
}

}  // namespace internal

EnvironmentVariables CurrentEnvironment() {
  EnvironmentVariables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=', 1);
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::string ShellQuote(std::string_view word) {
  const bool is_safe = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789@%_-+=:,./") == std::string_view::npos;
  if (is_safe) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\"'\"'"}}), "'");
}

}  // namespace weft
