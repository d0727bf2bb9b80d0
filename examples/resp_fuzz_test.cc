// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Requests of RESP are the same however they are cut into pieces, are within their limits,
// and are read back as they were when they are written as arrays.
//
//   number of pieces | pieces | text

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/examples/resp.h"
#include "weft/testing/fuzz_input.h"

namespace weft {
namespace {

using Request = std::vector<std::string>;

struct Parsed {
  std::vector<Request> requests;
  std::string error;
  size_t size = 0;  // Of all that was taken.

  bool operator==(const Parsed&) const = default;
};

RespLimits Limits() {
  RespLimits limits;
  limits.line = 40;
  limits.arguments = 10;
  limits.argument = 100;
  limits.request = 300;
  return limits;
}

// As a server does: what has not been taken comes again, with more behind it.
Parsed Parse(std::string_view text, std::string_view pieces) {
  RespParser parser(Limits());
  Parsed parsed;
  size_t end = 0;
  for (size_t i = 0; i <= pieces.size(); ++i) {
    const size_t piece = i < pieces.size() ? static_cast<uint8_t>(pieces[i]) : text.size();
    end = std::min(text.size(), end + piece);
    while (true) {
      const std::string input(text.substr(parsed.size, end - parsed.size));
      const RespParser::Result result = parser.Parse(input);
      if (result == RespParser::Result::kError) {
        parsed.error = parser.error();
        return parsed;
      }
      if (result == RespParser::Result::kIncomplete) {
        FuzzCheck(parser.needed() > input.size(), "it needs what it has");
        break;
      }
      FuzzCheck(parser.size() > 0 && parser.size() <= input.size(), "a request of no size");
      FuzzCheck(parser.arguments().size() <= 40, "too many arguments");
      parsed.requests.emplace_back(parser.arguments().begin(), parser.arguments().end());
      parsed.size += parser.size();
    }
  }
  return parsed;
}

std::string Write(const std::vector<Request>& requests) {
  std::string text;
  for (const Request& request : requests) {
    AppendArray(&text, request.size());
    for (const std::string& argument : request) AppendBulk(&text, argument);
  }
  return text;
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::FuzzInput input(data, size);
  const std::string_view pieces = input.Take(input.Below(64));
  const std::string_view text = input.Rest();
  const weft::Parsed whole = weft::Parse(text, "");
  weft::FuzzCheck(weft::Parse(text, pieces) == whole, "it depends on how it is cut");

  // What was typed may have more arguments than an array may.
  for (const weft::Request& request : whole.requests) {
    size_t bytes = 0;
    for (const std::string& argument : request) bytes += argument.size() + 10;
    if (request.size() > 10 || bytes > 250) continue;
    const weft::Parsed again = weft::Parse(weft::Write({request}), pieces);
    weft::FuzzCheck(again.requests == std::vector<weft::Request>{request}, "it is not the same");
  }
  return 0;
}
