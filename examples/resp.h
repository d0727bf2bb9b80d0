// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_RESP_H_
#define WEFT_EXAMPLES_RESP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// RESP2, the protocol of Redis: how requests are read, and how answers are written.

namespace weft {

// What a client may ask for; the defaults are those of Redis.
struct RespLimits {
  RespLimits() {}

  size_t line = 64 * 1024;                // An inline command, or the line of a count.
  int64_t arguments = 1024 * 1024;        // Of one request.
  int64_t argument = 512 * 1024 * 1024;   // The bytes of one of them.
  size_t request = 1024UL * 1024 * 1024;  // The bytes of all of it.
};

// RespParser
//
// Reads one request after another: an array of bulk strings, or an inline command,
// which is what one types. Nothing is copied, and nothing is looked at twice, into
// however small pieces the input is cut:
//
//   while (parser.Parse(unread) == RespParser::Result::kRequest) {
//     Execute(parser.arguments());
//     unread.remove_prefix(parser.size());
//   }
//
// After kIncomplete the next input begins with the same bytes, and goes on behind
// them. After kError there is no way to tell where the next request begins.
//
// Threads: a value.
class RespParser {
 public:
  enum class Result { kRequest, kIncomplete, kError };

  explicit RespParser(RespLimits limits = RespLimits()) : limits_(limits) {}

  Result Parse(std::string_view input);

  // After kRequest: its arguments, in the input, and how many bytes of that it took. An
  // inline command with quotes lies in the parser. None: an empty line, which asks for
  // nothing. Valid until the next call.
  const std::vector<std::string_view>& arguments() const { return arguments_; }
  size_t size() const { return position_; }

  // After kIncomplete: with fewer bytes than this nothing new can be said.
  size_t needed() const { return needed_; }

  // After kError: what is wrong, in the words of Redis ("Protocol error: invalid bulk
  // length").
  const std::string& error() const { return error_; }

 private:
  enum class State { kStart, kInline, kArray, kLength, kArgument };

  struct Piece {
    size_t begin;
    size_t size;
  };

  Result TakeLine(std::string_view input, std::string_view what, std::string_view* line);
  Result ParseInline(std::string_view line);
  Result Incomplete(size_t needed);
  Result Fail(std::string error);

  RespLimits limits_;
  State state_ = State::kStart;
  bool is_done_ = false;  // The last call ended a request.
  size_t position_ = 0;   // Up to here all is understood.
  size_t searched_ = 0;   // Up to here there is no end of a line.
  int64_t count_ = 0;     // How many arguments there will be.
  size_t length_ = 0;     // Of the one at hand.
  size_t needed_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::string_view> arguments_;
  std::vector<std::string> unquoted_;
  std::string error_;
};

// Answers, appended to `*out`.
void AppendSimple(std::string* out, std::string_view text);  // One line.
void AppendError(std::string* out, std::string_view text);   // "ERR ..."; one line.
void AppendInteger(std::string* out, int64_t value);
void AppendBulk(std::string* out, std::string_view value);
void AppendNull(std::string* out);
void AppendNullArray(std::string* out);
void AppendArray(std::string* out, size_t count);  // The answers of its elements follow.

}  // namespace weft

#endif  // WEFT_EXAMPLES_RESP_H_
