// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/headers_windows.h"
#include "weft/net/utf16_windows.h"
#include "weft/process/command_line_windows.h"
#include "weft/process/process.h"

namespace weft {
namespace internal {
namespace {

std::string DefaultShell() {
  wchar_t path[MAX_PATH];
  const DWORD length = ::GetEnvironmentVariableW(L"ComSpec", path, MAX_PATH);
  if (length == 0 || length >= MAX_PATH) return "cmd.exe";
  return FromUtf16(std::wstring_view(path, length));
}

}  // namespace

// With /s cmd.exe takes the first and the last quote away, and no other, whatever is in
// the command; /d: nothing that the registry has for it runs before.
std::vector<std::string> ShellArgv(const std::string& shell, const std::string& command) {
  const std::string program = shell.empty() ? DefaultShell() : shell;
  return {program, "/d", "/s", "/c", absl::StrCat("\"", command, "\"")};
}

}  // namespace internal

EnvironmentVariables CurrentEnvironment() {
  EnvironmentVariables variables;
  wchar_t* const block = ::GetEnvironmentStringsW();
  if (block == nullptr) return variables;
  for (const wchar_t* entry = block; *entry != L'\0';) {
    const std::string text = internal::FromUtf16(entry);
    entry += std::wstring_view(entry).size() + 1;
    // Names that begin with '=' are the working directories of drives.
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  ::FreeEnvironmentStringsW(block);
  return variables;
}

// Quoted twice: for the program, and each character of that which means something to
// cmd.exe, quotes too, with a caret. So cmd.exe sees no quote at all, and its variables, which
// it puts in even between quotes, end at a name with a caret in it.
std::string ShellQuote(std::string_view word) {
  if (word.find_first_of("\r\n") != std::string_view::npos) {
    throw ValueError("word: cmd.exe ends a command at a line break");
  }
  std::string quoted;
  for (const char c : internal::QuoteArgument(word)) {
    if (std::string_view("()%!^\"<>&|").find(c) != std::string_view::npos) quoted.push_back('^');
    quoted.push_back(c);
  }
  return quoted;
}

}  // namespace weft
