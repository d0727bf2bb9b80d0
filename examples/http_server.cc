// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// An HTTP server that uses all cores.
//
//   tools/bazel run -c opt //examples:http_server -- --port=8080
//   curl -i localhost:8080/                       (or: wrk -c64 http://localhost:8080/)
//   curl --data hello localhost:8080/echo
//   curl localhost:8080/delay/500
//
// There is a loop for each core, with a listening socket of its own, and the kernel
// spreads the connections over them. What HTTP is, is in http_connection.cc.
//
// Ctrl-C or SIGTERM shut it down: it accepts nobody any more, closes the connections on
// which nothing is asked, and gives the others time to be answered. Once more, and it
// does not wait.

#include <atomic>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/sleep.h"
#include "weft/examples/flags.h"
#include "weft/examples/http_connection.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/loop_group.h"
#include "weft/loop/loop_ref.h"
#include "weft/loop/processors.h"
#include "weft/loop/run.h"
#include "weft/net/address_reservation.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"

namespace {

using weft::Coro;
using weft::HttpRequest;
using weft::HttpResponse;

HttpResponse NotAllowed(std::string_view allowed) {
  HttpResponse response(405, "that method is not allowed here\n");
  response.allow = allowed;
  return response;
}

Coro<HttpResponse> Answer(const HttpRequest& request) {
  std::string_view path = request.path();
  const bool is_get = request.method() == "GET" || request.method() == "HEAD";
  if (path == "/echo") {
    if (request.method() != "POST") co_return NotAllowed("POST");
    HttpResponse response(200, request.body());
    response.content_type = request.Header("content-type").value_or("application/octet-stream");
    co_return response;
  }
  if (path == "/") {
    if (!is_get) co_return NotAllowed("GET, HEAD");
    co_return HttpResponse(200, "Hello, world!\n");
  }
  int delay = 0;
  if (absl::ConsumePrefix(&path, "/delay/") && absl::SimpleAtoi(path, &delay) && delay >= 0) {
    if (!is_get) co_return NotAllowed("GET, HEAD");
    co_await weft::Sleep(absl::Milliseconds(delay));
    co_return HttpResponse(200, "late\n");
  }
  co_return HttpResponse(404, "there is nothing here\n");
}

// Of all loops.
struct Totals {
  std::atomic<int64_t> connections{0}, requests{0}, cut_off{0};
};

// What each loop does. Tells the main loop when it listens.
class ServeOnLoop {
 public:
  ServeOnLoop(const weft::Addresses* addresses, const weft::HttpOptions& http, absl::Duration grace,
              std::function<void()> on_listening, Totals* totals)
      : addresses_(addresses),
        http_(http),
        grace_(grace),
        on_listening_(std::move(on_listening)),
        totals_(totals) {}

  Coro<> operator()(int) const {
    auto service = std::make_shared<weft::HttpService>(Answer, http_);
    const auto serve = [service](weft::StreamReader reader, weft::StreamWriter writer) {
      return service->Serve(std::move(reader), std::move(writer));
    };
    weft::ServerOptions options;
    options.reuse_port = true;  // With the other loops.
    options.backlog = 1024;     // Clients that come all at once.
    auto server = co_await weft::StartServer(serve, *addresses_, options);
    if (!server.ok()) throw weft::RuntimeError(std::string(server.status().message()));
    main_.Post(on_listening_);

    const absl::Cleanup count = [&] {
      totals_->connections += service->connections();
      totals_->requests += service->requests();
    };
    weft::ShutdownOptions ending;
    ending.grace = grace_;
    ending.on_stopping = [&service] { service->Stop(); };
    ending.on_stopped = [this](const weft::ShutdownReport& report) {
      totals_->cut_off += static_cast<int64_t>(report.cancelled);
    };
    co_await weft::ServeUntilCancelled(*server, ending);
  }

 private:
  const weft::Addresses* addresses_;
  weft::HttpOptions http_;
  absl::Duration grace_;
  std::function<void()> on_listening_;
  Totals* totals_;
  weft::LoopRef main_ = weft::GetRunningLoop().Ref();
};

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port,
                const weft::LoopGroupOptions& loops, const weft::HttpOptions& http,
                absl::Duration grace) {
  auto reserved = co_await weft::ReserveAddresses(host, port);
  if (!reserved.ok()) co_return flags.Fail(reserved.status().message());
  Totals totals;
  int missing = loops.loops;
  const auto on_listening = [&missing, &reserved] {
    if (--missing > 0) return;
    for (const weft::SocketAddress& address : reserved->addresses()) {
      std::cout << "listening on " << address << std::endl;
    }
  };
  weft::LoopGroup group(loops);
  group.RunOnEach(ServeOnLoop(&reserved->addresses(), http, grace, on_listening, &totals));
  co_await group.RunUntilSignal();
  std::cout << "done: " << totals.connections << " connections, " << totals.requests
            << " requests, " << totals.cut_off << " cut off" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 8080;
  int loops = static_cast<int>(weft::AvailableProcessors().size());
  int max_head = 16 * 1024, max_body = 1024 * 1024;
  int idle = 60'000, head = 10'000, body = 60'000, grace = 5000;
  weft::Flags flags("http_server");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.Add("loops", &loops, 1, 1024, "how many loops, each on a thread of its own");
  flags.Add("max-head", &max_head, 16, 1 << 30, "bytes of a request's head");
  flags.Add("max-body", &max_body, 0, 1 << 30, "bytes of a request's body");
  flags.Add("idle-timeout", &idle, 1, 3'600'000, "ms that a connection may be idle");
  flags.Add("head-timeout", &head, 1, 3'600'000, "ms that a request's head may take");
  flags.Add("body-timeout", &body, 1, 3'600'000, "ms that a request's body may take");
  flags.Add("grace", &grace, 0, 3'600'000, "ms that requests have to be answered, at the end");
  flags.ParseAll(argc, argv);

  weft::LoopGroupOptions group;
  group.loops = loops;
  group.poller = poller;
  group.thread_name = "http";
  weft::HttpOptions http;
  http.limits.head = static_cast<size_t>(max_head);
  http.limits.body = static_cast<size_t>(max_body);
  http.idle_timeout = absl::Milliseconds(idle);
  http.head_timeout = absl::Milliseconds(head);
  http.body_timeout = absl::Milliseconds(body);
  try {
    return weft::Run(Serve(flags, host, port, group, http, absl::Milliseconds(grace)), group);
  } catch (const weft::ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller.
  } catch (const weft::RuntimeError& error) {
    return flags.Fail(error.what());  // A loop could not listen.
  }
}
