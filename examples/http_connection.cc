// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/http_connection.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "weft/core/exception_context.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

using State = HttpRequestParser::State;

// While so much is unsent, a client that does not read gets no more answers.
constexpr size_t kMuchUnsent = 64 * 1024;

std::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "";
  }
}

// Drops what comes, until the end.
Coro<> Discard(StreamReader& reader) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    reader.Consume(unread->size());
  }
}

}  // namespace

Coro<> HttpService::Serve(StreamReader reader, StreamWriter writer) {
  Client client(std::move(reader), std::move(writer), options_.limits);
  clients_.PushBack(&client);
  ++connections_;
  while (true) {
    const bool is_there = co_await Receive(client);
    if (!is_there) co_return;
    const bool is_bad = client.parser.state() == State::kFailed;
    HttpResponse response;
    if (is_bad) {
      response.status = client.parser.error_status();
      response.body = absl::StrCat(client.parser.error(), "\n");
    } else {
      response = co_await Answer(client.parser.request());
    }
    const bool is_last = is_bad || is_stopping_ || !client.parser.request().keep_alive();
    Write(client, response, is_last);
    ++requests_;
    if (is_last) {
      co_await HangUp(client);
      co_return;
    }
    client.parser.Reset();
    if (client.writer.GetWriteBufferSize() > kMuchUnsent) {
      absl::Status sent = co_await client.writer.Drain();
      if (!sent.ok()) co_return;
    }
  }
}

// Parses until the request is done, or has failed. False if there is none: the client
// has gone, or may go. What is there already needs no wait, so the answers to requests
// that came together are written in one round, and leave together.
Coro<bool> HttpService::Receive(Client& client) {
  HttpRequestParser& parser = client.parser;
  const absl::Duration* timeout = nullptr;
  TimePoint deadline;
  while (true) {
    const absl::Span<const char> unread = client.reader.Unread();
    if (!unread.empty()) {
      const State before = parser.state();
      client.reader.Consume(parser.Parse(std::string_view(unread.data(), unread.size())));
      if (parser.state() == State::kDone || parser.state() == State::kFailed) co_return true;
      if (parser.state() != before && parser.request().expects_continue()) {
        client.writer.Write("HTTP/1.1 100 Continue\r\n\r\n");
      }
      continue;
    }
    absl::Status sent = co_await client.writer.Drain();
    if (!sent.ok()) co_return false;
    if (is_stopping_ && !parser.has_begun()) co_return false;
    if (const absl::Duration* wanted = &Patience(parser); wanted != timeout) {
      timeout = wanted;
      deadline = GetRunningLoop().Time() + *timeout;
    }
    client.is_idle = !parser.has_begun();
    auto filled = co_await NoThrow(WithTimeoutAt(deadline, client.reader.Fill()));
    client.is_idle = false;
    if (filled.cancelled()) filled.value();  // Throws.
    if (!filled.has_value()) {
      if (!parser.has_begun()) co_return false;
      parser.Fail(408, "the request takes too long");
      co_return true;
    }
    if (!(*filled).ok()) co_return false;
    if ((*filled)->empty()) {
      if (!parser.has_begun()) co_return false;
      parser.Fail(400, "the connection ends in the midst of a request");
      co_return true;
    }
  }
}

// How long what the request wants next may take, all in all.
const absl::Duration& HttpService::Patience(const HttpRequestParser& parser) const {
  if (!parser.has_begun()) return options_.idle_timeout;
  return parser.state() == State::kHead ? options_.head_timeout : options_.body_timeout;
}

// A handler that fails has a client that waits for an answer all the same.
Coro<HttpResponse> HttpService::Answer(const HttpRequest& request) {
  Outcome<HttpResponse> response = co_await NoThrow(handler_(request));
  if (response.has_value()) co_return *std::move(response);
  if (response.cancelled()) response.value();  // Throws.
  ExceptionContext context("a handler of HTTP failed");
  context.exception = response.exception();
  GetRunningLoop().CallExceptionHandler(context);
  co_return HttpResponse(500, "something went wrong\n");
}

void HttpService::Write(Client& client, const HttpResponse& response, bool is_last) {
  const HttpRequest& request = client.parser.request();
  head_.clear();
  absl::StrAppend(&head_, "HTTP/1.1 ", response.status, " ", Reason(response.status));
  absl::StrAppend(&head_, "\r\nDate: ", Date());
  absl::StrAppend(&head_, "\r\nContent-Type: ", response.content_type);
  absl::StrAppend(&head_, "\r\nContent-Length: ", response.body.size());
  if (!response.allow.empty()) absl::StrAppend(&head_, "\r\nAllow: ", response.allow);
  if (is_last) {
    absl::StrAppend(&head_, "\r\nConnection: close");
  } else if (request.is_http_1_0()) {
    absl::StrAppend(&head_, "\r\nConnection: keep-alive");
  }
  absl::StrAppend(&head_, "\r\n\r\n");
  client.writer.Write(head_);
  if (request.method() != "HEAD") client.writer.Write(response.body);
}

// Ends a connection so that the last answer arrives. To close while something is unread,
// or still to come, is a reset, which may overtake the answer (RFC 9112, 9.6).
Coro<> HttpService::HangUp(Client& client) {
  const bool is_over = client.parser.state() == State::kDone && client.reader.Unread().empty();
  if (is_over) co_return;
  client.writer.WriteEof();
  auto ended = co_await NoThrow(WithTimeout(options_.linger, Discard(client.reader)));
  if (ended.cancelled()) ended.value();  // Throws.
}

void HttpService::Stop() {
  is_stopping_ = true;
  for (Client* client = clients_.front(); client != nullptr; client = clients_.Next(client)) {
    if (client->is_idle) client->writer.Close();  // Which is the end for its reader.
  }
}

std::string_view HttpService::Date() {
  const absl::Time now = absl::Now();
  const int64_t second = absl::ToUnixSeconds(now);
  if (second != date_second_) {
    date_second_ = second;
    date_ = absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", now, absl::UTCTimeZone());
  }
  return date_;
}

}  // namespace weft
