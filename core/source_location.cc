// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/source_location.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

bool IsOpening(char c) { return c == '(' || c == '<' || c == '[' || c == '{'; }
bool IsClosing(char c) { return c == ')' || c == '>' || c == ']' || c == '}'; }

// Where the bracket was opened that the last character of `text` closes; npos if
// that closes none.
size_t OpeningOfLast(std::string_view text) {
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (IsClosing(text[i])) ++depth;
    if (IsOpening(text[i]) && --depth == 0) return i;
  }
  return std::string_view::npos;
}

// Drops a bracket at the end of `text`, if that ends with one closed by `closing`.
bool DropLast(std::string_view* text, char closing) {
  if (text->empty() || text->back() != closing) return false;
  const size_t opening = OpeningOfLast(*text);
  if (opening == std::string_view::npos) return false;
  *text = text->substr(0, opening);
  return true;
}

}  // namespace

std::string ToString(const SourceLocation& location) {
  return absl::StrCat(location.file_name(), ":", location.line());
}

// What compilers say, for a coroutine, at a co_await in it and at its start:
//
//   gcc    void app::{anonymous}::Read(Read(int)::_ZN3app4ReadEi.Frame*)
//          app::Coro<> app::{anonymous}::Read(int) [with T = char]
//          void main()::<lambda()>::operator()(main()::<lambda()>::_Z...Frame*)
//          main()::<lambda()>
//   clang  app::Coro<> app::(anonymous namespace)::Read(int) const [T = char]
//          auto main()::(anonymous class)::operator()() const
std::string FunctionName(const SourceLocation& location) {
  std::string_view text = location.function_name();
  if (DropLast(&text, ']')) text = absl::StripSuffix(text, " ");
  for (std::string_view suffix : {" noexcept", " &", " &&", " const", " volatile"}) {
    text = absl::StripSuffix(text, suffix);
  }
  DropLast(&text, ')');
  text = absl::StripSuffix(text, "::operator()");
  // The result ends at the last space that is in no bracket.
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (IsClosing(text[i])) ++depth;
    if (IsOpening(text[i])) --depth;
    if (text[i] == ' ' && depth == 0) {
      text.remove_prefix(i + 1);
      break;
    }
  }
  return absl::StrReplaceAll(
      text,
      {{"{anonymous}::", ""}, {"(anonymous namespace)::", ""}, {"(anonymous class)", "<lambda>"}});
}

}  // namespace weft
