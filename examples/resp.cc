// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/resp.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr std::string_view kEnd = "\r\n";

// As Redis reads a number: digits, and nothing but digits.
std::optional<int64_t> ReadNumber(std::string_view text) {
  int64_t number;
  const std::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return std::nullopt;
  for (const char c : digits) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
  }
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The character that a backslash and what follows at `*i` stand for in double quotes.
char Unescape(std::string_view line, size_t* i) {
  const char c = line[*i];
  if (c == 'x' && *i + 2 < line.size()) {
    const int high = HexDigit(line[*i + 1]), low = HexDigit(line[*i + 2]);
    if (high >= 0 && low >= 0) {
      *i += 2;
      return static_cast<char>(high * 16 + low);
    }
  }
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

bool IsSpace(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

// Splits what somebody has typed, as a shell would; false if a quote is not closed, or
// something follows it at once.
bool SplitWords(std::string_view line, std::vector<std::string>* words) {
  size_t i = 0;
  while (true) {
    while (i < line.size() && IsSpace(line[i])) ++i;
    if (i == line.size()) return true;
    std::string word;
    char quote = '\0';
    for (; i < line.size() && (quote != '\0' || !IsSpace(line[i])); ++i) {
      const char c = line[i];
      if (quote == '\0' && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote == '"' && c == '\\' && i + 1 < line.size()) {
        ++i;
        word += Unescape(line, &i);
      } else if (quote == '\'' && c == '\\' && i + 1 < line.size() && line[i + 1] == '\'') {
        ++i;
        word += '\'';
      } else if (quote != '\0' && c == quote) {
        if (i + 1 < line.size() && !IsSpace(line[i + 1])) return false;
        quote = '\0';
      } else {
        word += c;
      }
    }
    if (quote != '\0') return false;
    words->push_back(std::move(word));
  }
}

}  // namespace

RespParser::Result RespParser::Fail(std::string error) {
  error_ = absl::StrCat("Protocol error: ", error);
  return Result::kError;
}

RespParser::Result RespParser::Incomplete(size_t needed) {
  needed_ = needed;
  return Result::kIncomplete;
}

// Takes the line at `position_`, which has no end in `*line`. However it comes, it is too
// big when more than the limit comes before its end, which may be two characters.
RespParser::Result RespParser::TakeLine(std::string_view input, std::string_view what,
                                        std::string_view* line) {
  const size_t end = input.find('\n', searched_);
  if (end == std::string_view::npos) {
    searched_ = input.size();
    if (input.size() - position_ <= limits_.line + 1) return Incomplete(input.size() + 1);
    return Fail(absl::StrCat("too big ", what));
  }
  *line = input.substr(position_, end - position_);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  if (line->size() > limits_.line) return Fail(absl::StrCat("too big ", what));
  position_ = searched_ = end + 1;
  return Result::kRequest;
}

RespParser::Result RespParser::ParseInline(std::string_view line) {
  if (!SplitWords(line, &unquoted_)) return Fail("unbalanced quotes in request");
  arguments_.assign(unquoted_.begin(), unquoted_.end());
  is_done_ = true;
  return Result::kRequest;
}

RespParser::Result RespParser::Parse(std::string_view input) {
  if (is_done_ || state_ == State::kStart) {
    is_done_ = false;
    position_ = searched_ = 0;
    pieces_.clear();
    arguments_.clear();
    unquoted_.clear();
    state_ = State::kStart;
    if (input.empty()) return Incomplete(1);
    state_ = input[0] == '*' ? State::kArray : State::kInline;
  }

  std::string_view line;
  if (state_ == State::kInline) {
    const Result taken = TakeLine(input, "inline request", &line);
    return taken == Result::kRequest ? ParseInline(line) : taken;
  }

  if (state_ == State::kArray) {
    const Result taken = TakeLine(input, "mbulk count string", &line);
    if (taken != Result::kRequest) return taken;
    const std::optional<int64_t> count = ReadNumber(line.substr(1));
    if (!count.has_value() || *count > limits_.arguments) {
      return Fail("invalid multibulk length");
    }
    count_ = *count;
    state_ = State::kLength;
  }

  while (static_cast<int64_t>(pieces_.size()) < count_) {
    if (state_ == State::kLength) {
      if (position_ < input.size() && input[position_] != '$') {
        return Fail(absl::StrCat("expected '$', got '", input.substr(position_, 1), "'"));
      }
      const Result taken = TakeLine(input, "bulk count string", &line);
      if (taken != Result::kRequest) return taken;
      const std::optional<int64_t> length = ReadNumber(line.substr(1));
      if (!length.has_value() || *length < 0 || *length > limits_.argument) {
        return Fail("invalid bulk length");
      }
      length_ = static_cast<size_t>(*length);
      state_ = State::kArgument;
    }
    const size_t end = position_ + length_ + kEnd.size();
    if (end > limits_.request) return Fail("too big request");
    if (input.size() < end) return Incomplete(end);
    pieces_.push_back({position_, length_});
    position_ = searched_ = end;
    state_ = State::kLength;
  }

  for (const Piece& piece : pieces_) {
    arguments_.push_back(input.substr(piece.begin, piece.size));
  }
  is_done_ = true;
  return Result::kRequest;
}

void AppendSimple(std::string* out, std::string_view text) {
  absl::StrAppend(out, "+", text, kEnd);
}

void AppendError(std::string* out, std::string_view text) {
  out->push_back('-');
  // What a client sent is part of it, and may be anything.
  for (const char c : text) out->push_back(c == '\r' || c == '\n' ? ' ' : c);
  out->append(kEnd);
}

void AppendInteger(std::string* out, int64_t value) { absl::StrAppend(out, ":", value, kEnd); }

void AppendBulk(std::string* out, std::string_view value) {
  absl::StrAppend(out, "$", value.size(), kEnd, value, kEnd);
}

void AppendNull(std::string* out) { out->append("$-1\r\n"); }

void AppendNullArray(std::string* out) { out->append("*-1\r\n"); }

void AppendArray(std::string* out, size_t count) { absl::StrAppend(out, "*", count, kEnd); }

}  // namespace weft
