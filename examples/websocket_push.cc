// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A WebSocket server that pushes: a tick each second, and to everybody what anybody says.
//
//   tools/bazel run -c opt //examples:websocket_push -- --port=8080
//   open http://localhost:8080 in a browser, twice
//
// Here is the page, and who talks HTTP. What clients say to each other, and that a slow one
// holds up nobody, is in websocket_room.cc; the frames are in websocket.cc.

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/examples/websocket.h"
#include "weft/examples/websocket_handshake.h"
#include "weft/examples/websocket_room.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

constexpr std::string_view kPage = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>websocket_push</title>
<form id="form"><input id="text" autofocus placeholder="say something"></form>
<p id="tick">not connected</p>
<ul id="said"></ul>
<script>
  const get = id => document.getElementById(id);
  const socket = new WebSocket(`ws://${location.host}/socket`);
  socket.onmessage = event => {
    if (event.data.startsWith("tick ")) {
      get("tick").textContent = event.data;
    } else {
      get("said").appendChild(document.createElement("li")).textContent = event.data;
    }
  };
  socket.onclose = event => get("tick").textContent = `closed: ${event.code} ${event.reason}`;
  get("form").onsubmit = event => {
    event.preventDefault();
    socket.send(get("text").value);
    get("text").value = "";
  };
</script>
</html>
)";

constexpr size_t kLongestHead = 16 * 1024;
constexpr absl::Duration kHeadTimeout = absl::Seconds(10);

// The head of a request, or what to answer instead of it; that is empty if nobody is there.
Coro<absl::StatusOr<weft::HttpHead>> ReadHead(weft::StreamReader& reader, std::string* answer) {
  try {
    absl::StatusOr<std::string> text =
        co_await weft::WithTimeout(kHeadTimeout, reader.ReadUntil("\r\n\r\n"));
    if (!text.ok()) {
      if (absl::IsResourceExhausted(text.status())) {
        *answer = weft::HttpAnswer("431 Request Header Fields Too Large", "text/plain", "");
      }
      co_return text.status();
    }
    absl::StatusOr<weft::HttpHead> head = weft::ParseHttpHead(*text);
    if (!head.ok()) {
      *answer = weft::HttpAnswer("400 Bad Request", "text/plain",
                                 absl::StrCat(head.status().message(), "\n"));
    }
    co_return head;
  } catch (const weft::TimeoutError&) {
    *answer = weft::HttpAnswer("408 Request Timeout", "text/plain", "");
    co_return absl::DeadlineExceededError("no request");
  }
}

Coro<> Welcome(weft::StreamReader reader, weft::StreamWriter writer, weft::WebSocketRoom* room) {
  std::string answer;
  absl::StatusOr<weft::HttpHead> head = co_await ReadHead(reader, &answer);
  if (head.ok() && head->target == "/socket") {
    const weft::WebSocketHandshake handshake = weft::AnswerHandshake(*head);
    writer.Write(handshake.answer);
    if (!handshake.is_accepted) co_return;
    co_await room->Serve(reader, writer);
    co_return;
  }
  if (head.ok()) {
    const bool is_get = head->method == "GET";
    if (head->target != "/") {
      answer = weft::HttpAnswer("404 Not Found", "text/plain", "There is / and /socket.\n");
    } else if (!is_get) {
      answer = weft::HttpAnswer("405 Method Not Allowed", "text/plain", "", "Allow: GET\r\n");
    } else {
      answer = weft::HttpAnswer("200 OK", "text/html; charset=utf-8", kPage);
    }
  }
  writer.Write(answer);
}

Coro<> Tick(weft::WebSocketRoom* room, absl::Duration interval) {
  if (interval == absl::ZeroDuration()) co_return;
  for (int64_t i = 1;; ++i) {
    co_await weft::Sleep(interval);
    // One that finds no room is dropped: the next is as good.
    room->SayWhereThereIsRoom(weft::WebSocketOpcode::kText, absl::StrCat("tick ", i));
  }
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port, absl::Duration tick,
                weft::WebSocketRoomOptions room_options) {
  weft::WebSocketRoom room(room_options);
  const auto welcome = [&room](weft::StreamReader reader, weft::StreamWriter writer) {
    return Welcome(std::move(reader), std::move(writer), &room);
  };
  weft::ServerOptions options;
  options.backlog = 1024;
  options.limit = kLongestHead;
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(welcome, host, port, options);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }
  weft::Task<> ticker = weft::CreateTask(Tick(&room, tick));

  weft::ServeOptions ending;
  ending.grace = room_options.closing + absl::Seconds(1);
  ending.on_stopping = [&room] {
    std::cout << "shutting down, " << room.size() << " clients are here" << std::endl;
    room.Close(weft::kGoingAway, "the server ends");
  };
  co_await weft::ServeUntilSignal(*server, ending);
  ticker.Cancel();
  co_await weft::NoThrow(ticker);  // It looks into the room.
  std::cout << "done: " << room.welcomed() << " clients, " << room.said() << " messages, "
            << room.too_slow() << " too slow" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 8080;
  weft::WebSocketRoomOptions room;
  int tick = 1000, ping = 20'000, pong = 10'000, closing = 2000;
  weft::Flags flags("websocket_push");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.Add("tick", &tick, 0, 3'600'000, "ms from one tick to the next; 0: none");
  flags.Add("ping", &ping, 1, 3'600'000, "ms of silence after which a client is pinged");
  flags.Add("pong", &pong, 1, 3'600'000, "ms that it has to answer");
  flags.Add("closing", &closing, 1, 3'600'000, "ms that a client has to say good-bye");
  flags.Add("queue", &room.queue, 1, 1'000'000, "how many messages may wait for a client");
  flags.Add("max-message", &room.max_message, 1, 1'000'000'000, "bytes of one message");
  flags.ParseAll(argc, argv);
  room.ping = absl::Milliseconds(ping);
  room.pong = absl::Milliseconds(pong);
  room.closing = absl::Milliseconds(closing);

  return weft::RunOn(poller, Serve(flags, host, port, absl::Milliseconds(tick), room), flags);
}
