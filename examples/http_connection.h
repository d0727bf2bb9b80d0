// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_HTTP_CONNECTION_H_
#define WEFT_EXAMPLES_HTTP_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/core/intrusive_list.h"
#include "weft/examples/http_request_parser.h"
#include "weft/net/stream.h"

namespace weft {

struct HttpResponse {
  HttpResponse() {}
  HttpResponse(int code, std::string text) : status(code), body(std::move(text)) {}

  int status = 200;
  std::string body;
  std::string_view content_type = "text/plain";  // Valid as long as the request.
  std::string_view allow;                        // For 405: the methods.
};

// Answers a request. One for HEAD is answered as if it were GET: its body is not sent.
using HttpHandler = std::function<Coro<HttpResponse>(const HttpRequest& request)>;

struct HttpOptions {
  HttpOptions() {}

  HttpLimits limits;
  absl::Duration idle_timeout = absl::Seconds(60);  // For the first byte of a request,
  absl::Duration head_timeout = absl::Seconds(10);  // from there to the end of its head,
  absl::Duration body_timeout = absl::Seconds(60);  // and from there to its end.
  // How long a client that is being sent away may go on sending.
  absl::Duration linger = absl::Seconds(2);
};

// HttpService
//
// HTTP/1.1 and 1.0 on the connections of one loop: keep-alive, pipelining, chunked
// bodies, Expect, limits, timeouts, and an end that cuts nobody off in the midst of
// an answer.
//
//   auto service = std::make_shared<HttpService>(Answer);
//   const auto serve = [service](StreamReader reader, StreamWriter writer) {
//     return service->Serve(std::move(reader), std::move(writer));
//   };
//   absl::StatusOr<Server> server = co_await StartServer(serve, host, port);
//
// A client is told what is wrong with what it sends by an answer of its own (400, 408,
// 413, 417, 431, 501, 505), which is the last on its connection.
//
// It outlives its connections, as in the closure above.
//
// Threads: belongs to the loop's thread.
class HttpService {
 public:
  explicit HttpService(HttpHandler handler, HttpOptions options = HttpOptions())
      : handler_(std::move(handler)), options_(options) {}
  HttpService(const HttpService&) = delete;

  // Serves one connection to its end.
  Coro<> Serve(StreamReader reader, StreamWriter writer);

  // From now on each answer is the last on its connection; those on which no request has
  // begun are closed.
  void Stop();

  int64_t connections() const { return connections_; }  // So far.
  int64_t requests() const { return requests_; }        // That were answered.

 private:
  // One connection, in its frame.
  struct Client : ListNode {
    Client(StreamReader r, StreamWriter w, HttpLimits limits)
        : reader(std::move(r)), writer(std::move(w)), parser(limits) {}

    StreamReader reader;
    StreamWriter writer;
    HttpRequestParser parser;
    bool is_idle = false;  // Waits, and no request has begun.
  };

  Coro<bool> Receive(Client& client);
  Coro<HttpResponse> Answer(const HttpRequest& request);
  Coro<> HangUp(Client& client);
  const absl::Duration& Patience(const HttpRequestParser& parser) const;
  void Write(Client& client, const HttpResponse& response, bool is_last);
  std::string_view Date();

  const HttpHandler handler_;
  const HttpOptions options_;
  List<Client> clients_;
  bool is_stopping_ = false;
  int64_t connections_ = 0;
  int64_t requests_ = 0;
  std::string head_;  // Of the response that is being written.
  int64_t date_second_ = -1;
  std::string date_;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_HTTP_CONNECTION_H_
