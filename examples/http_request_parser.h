// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_HTTP_REQUEST_PARSER_H_
#define WEFT_EXAMPLES_HTTP_REQUEST_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "llhttp.h"

namespace weft {

// How much a request may be, in bytes.
struct HttpLimits {
  HttpLimits() {}

  size_t head = 16 * 1024;  // Request line and headers, trailers included.
  size_t body = 1024 * 1024;
};

// HttpRequest
//
// One request, whole. What it gives out is valid until the next one is parsed.
class HttpRequest {
 public:
  std::string_view method() const { return method_; }
  // As it was sent: "/a?b=c".
  std::string_view target() const { return std::string_view(text_).substr(0, target_size_); }
  // The target up to its "?"; of a whole URL, as proxies are sent, only its path.
  std::string_view path() const;
  // The first header of that name, whatever its case.
  std::optional<std::string_view> Header(std::string_view name) const;
  const std::string& body() const { return body_; }

  bool is_http_1_0() const { return is_http_1_0_; }
  // Whether the client wants to send another one on this connection.
  bool keep_alive() const { return keep_alive_; }
  // Whether it waits for a "100 Continue" before it sends the body.
  bool expects_continue() const { return expects_continue_; }

 private:
  friend class HttpRequestParser;

  struct Field {
    uint32_t name_begin;
    uint32_t name_end;
    uint32_t value_end;  // It begins where the name ends.
  };
  std::string_view Name(const Field& field) const;
  std::string_view Value(const Field& field) const;

  std::string_view method_;
  std::string text_;  // The target, then names and values, one behind the other.
  size_t target_size_ = 0;
  std::vector<Field> fields_;
  std::string body_;
  bool is_http_1_0_ = false;
  bool keep_alive_ = false;
  bool expects_continue_ = false;
};

// HttpRequestParser
//
// Makes requests of bytes, however they are cut, one at a time; llhttp reads them, and
// this keeps what is found and enforces the limits.
//
//   kHead ------> kBody ------> kDone ------> Reset()
//     |             |
//     +-------------+-----> kFailed: `error_status()` is the answer that it deserves
//
// Does no I/O and knows no time.
class HttpRequestParser {
 public:
  enum class State { kHead, kBody, kDone, kFailed };

  explicit HttpRequestParser(HttpLimits limits);
  HttpRequestParser(const HttpRequestParser&) = delete;

  // Takes bytes, and says how many: all, unless the request is done, or has failed.
  size_t Parse(std::string_view data);

  // Ends it otherwise: it took too long, or ended in its midst.
  void Fail(int status, std::string_view reason);

  // Begins the next.
  void Reset();

  State state() const { return state_; }
  bool has_begun() const { return has_begun_; }
  const HttpRequest& request() const { return request_; }  // From kBody on.
  int error_status() const { return error_status_; }
  const std::string& error() const { return error_; }  // In words.

 private:
  static const llhttp_settings_t* Settings();
  static HttpRequestParser& Of(llhttp_t* parser) {
    return *static_cast<HttpRequestParser*>(parser->data);
  }

  // What llhttp calls; other than 0 ends the parsing.
  int OnUrl(std::string_view piece);
  int OnField(std::string_view piece);
  int OnFieldEnd();
  int OnValue(std::string_view piece);
  int OnValueEnd();
  int OnHead();
  int OnBody(std::string_view piece);
  int OnDone();

  int Count(size_t size);
  int Reject(int status, std::string_view reason);

  const HttpLimits limits_;
  llhttp_t llhttp_;
  State state_ = State::kHead;
  bool has_begun_ = false;
  size_t head_size_ = 0;
  HttpRequest::Field field_ = {};
  HttpRequest request_;
  int error_status_ = 0;
  std::string error_;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_HTTP_REQUEST_PARSER_H_
