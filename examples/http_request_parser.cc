// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/http_request_parser.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

constexpr std::string_view kVersions = "only HTTP/1.0 and HTTP/1.1 are spoken here";

}  // namespace

// -- HttpRequest.

std::string_view HttpRequest::path() const {
  std::string_view path = target();
  const size_t scheme = path.find("://");
  if (scheme != std::string_view::npos && path[0] != '/') {  // RFC 9112, 3.2.2.
    const size_t end = path.find_first_of("/?", scheme + 3);
    path = end == std::string_view::npos ? "" : path.substr(end);
  }
  path = path.substr(0, path.find('?'));
  return path.empty() ? "/" : path;
}

std::string_view HttpRequest::Name(const Field& field) const {
  return std::string_view(text_).substr(field.name_begin, field.name_end - field.name_begin);
}

std::string_view HttpRequest::Value(const Field& field) const {
  return absl::StripTrailingAsciiWhitespace(
      std::string_view(text_).substr(field.name_end, field.value_end - field.name_end));
}

std::optional<std::string_view> HttpRequest::Header(std::string_view name) const {
  for (const Field& field : fields_) {
    if (absl::EqualsIgnoreCase(Name(field), name)) return Value(field);
  }
  return std::nullopt;
}

// -- What llhttp calls.

const llhttp_settings_t* HttpRequestParser::Settings() {
  static const llhttp_settings_t* const settings = [] {
    auto* made = new llhttp_settings_t;
    llhttp_settings_init(made);
    made->on_url = [](llhttp_t* p, const char* at, size_t size) { return Of(p).OnUrl({at, size}); };
    made->on_header_field = [](llhttp_t* p, const char* at, size_t size) {
      return Of(p).OnField({at, size});
    };
    made->on_header_field_complete = [](llhttp_t* p) { return Of(p).OnFieldEnd(); };
    made->on_header_value = [](llhttp_t* p, const char* at, size_t size) {
      return Of(p).OnValue({at, size});
    };
    made->on_header_value_complete = [](llhttp_t* p) { return Of(p).OnValueEnd(); };
    made->on_headers_complete = [](llhttp_t* p) { return Of(p).OnHead(); };
    made->on_body = [](llhttp_t* p, const char* at, size_t size) {
      return Of(p).OnBody({at, size});
    };
    made->on_message_complete = [](llhttp_t* p) { return Of(p).OnDone(); };
    return made;
  }();
  return settings;
}

int HttpRequestParser::Reject(int status, std::string_view reason) {
  Fail(status, reason);
  return HPE_USER;
}

int HttpRequestParser::Count(size_t size) {
  head_size_ += size;
  if (head_size_ > limits_.head) return Reject(431, "the head of the request is too large");
  return 0;
}

int HttpRequestParser::OnUrl(std::string_view piece) {
  request_.text_.append(piece);
  request_.target_size_ = request_.text_.size();
  field_.name_begin = static_cast<uint32_t>(request_.text_.size());
  return Count(piece.size());
}

// What comes after the head is a trailer: it counts, and is not kept.
int HttpRequestParser::OnField(std::string_view piece) {
  if (state_ == State::kHead) request_.text_.append(piece);
  return Count(piece.size());
}

int HttpRequestParser::OnFieldEnd() {
  field_.name_end = static_cast<uint32_t>(request_.text_.size());
  return 0;
}

int HttpRequestParser::OnValue(std::string_view piece) { return OnField(piece); }

int HttpRequestParser::OnValueEnd() {
  if (state_ == State::kHead) {
    field_.value_end = static_cast<uint32_t>(request_.text_.size());
    request_.fields_.push_back(field_);
    field_.name_begin = field_.value_end;
  }
  return Count(std::string_view(": \r\n").size());
}

// The rules of RFC 9112 that llhttp leaves to us.
int HttpRequestParser::OnHead() {
  request_.method_ = llhttp_method_name(static_cast<llhttp_method_t>(llhttp_.method));
  request_.is_http_1_0_ = llhttp_.http_major == 1 && llhttp_.http_minor == 0;
  if (llhttp_.http_major != 1) return Reject(505, kVersions);

  int hosts = 0;
  for (const HttpRequest::Field& field : request_.fields_) {
    if (request_.Name(field).empty()) return Reject(400, "a header has no name");
    if (absl::EqualsIgnoreCase(request_.Name(field), "host")) ++hosts;
  }
  if (hosts > 1 || (hosts == 0 && !request_.is_http_1_0_)) {
    return Reject(400, "a request has one Host header");
  }
  const auto coding = request_.Header("transfer-encoding");
  if (coding && !absl::EqualsIgnoreCase(*coding, "chunked")) {
    return Reject(501, "no transfer coding but chunked is understood here");
  }
  const auto expectation = request_.Header("expect");
  if (expectation && !request_.is_http_1_0_) {
    if (!absl::EqualsIgnoreCase(*expectation, "100-continue")) {
      return Reject(417, "no expectation but 100-continue is understood here");
    }
    request_.expects_continue_ = true;
  }
  if (llhttp_.content_length > limits_.body) return Reject(413, "the body is too large");
  state_ = State::kBody;
  return 0;
}

int HttpRequestParser::OnBody(std::string_view piece) {
  if (piece.size() > limits_.body - request_.body_.size()) {
    return Reject(413, "the body is too large");
  }
  request_.body_.append(piece);
  return 0;
}

int HttpRequestParser::OnDone() {
  // After CONNECT, whoever sends it speaks something else. And where an HTTP/1.0 request with a
  // transfer coding ends, somebody in between may see otherwise (RFC 9112, 6.1).
  const bool is_framed =
      llhttp_.method != HTTP_CONNECT &&
      !(request_.is_http_1_0_ && request_.Header("transfer-encoding").has_value());
  request_.keep_alive_ = is_framed && llhttp_should_keep_alive(&llhttp_) != 0;
  state_ = State::kDone;
  return HPE_PAUSED;
}

// -- HttpRequestParser.

HttpRequestParser::HttpRequestParser(HttpLimits limits) : limits_(limits) {
  llhttp_init(&llhttp_, HTTP_REQUEST, Settings());
  llhttp_.data = this;
}

size_t HttpRequestParser::Parse(std::string_view data) {
  if (data.empty()) return 0;
  has_begun_ = true;
  const llhttp_errno_t error = llhttp_execute(&llhttp_, data.data(), data.size());
  if (error == HPE_OK) return data.size();
  if (state_ != State::kDone && state_ != State::kFailed) {
    if (error == HPE_PAUSED_H2_UPGRADE) {  // How HTTP/2 begins, by those who know that we speak it.
      Fail(505, kVersions);
    } else {
      Fail(error == HPE_INVALID_VERSION ? 505 : 400, llhttp_get_error_reason(&llhttp_));
    }
  }
  const char* const position = llhttp_get_error_pos(&llhttp_);
  return position == nullptr ? data.size() : static_cast<size_t>(position - data.data());
}

void HttpRequestParser::Fail(int status, std::string_view reason) {
  state_ = State::kFailed;
  error_status_ = status;
  error_ = std::string(reason);
}

void HttpRequestParser::Reset() {
  llhttp_reset(&llhttp_);
  state_ = State::kHead;
  has_begun_ = false;
  head_size_ = 0;
  field_ = {};
  request_.text_.clear();
  request_.fields_.clear();
  request_.method_ = std::string_view();
  request_.is_http_1_0_ = request_.keep_alive_ = request_.expects_continue_ = false;
  // A body that was large is not kept for the small ones that follow.
  constexpr size_t kKept = 4096;
  if (request_.body_.capacity() > kKept) request_.body_ = std::string();
  request_.body_.clear();
  error_.clear();
}

}  // namespace weft
