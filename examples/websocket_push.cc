// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A WebSocket server that pushes: a tick each second, and to everybody what anybody says.
//
//   tools/bazel run -c opt //examples:websocket_push -- --port=8080
//   open http://localhost:8080 in a browser, twice
//
// Each client has a queue of its own, with a limit, and a task that sends what is in it; so
// nobody waits for a slow one. A tick that finds no room is dropped, for the next one is
// as good. What somebody has said is not: a client whose queue has no room for it is too slow,
// and is shown out. Who is silent is pinged, and is shown out if nothing comes back.

#include <cstdint>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/websocket.h"
#include "weft/examples/websocket_handshake.h"
#include "weft/loop/run.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/sync/queue.h"

namespace {

using weft::Coro;
using weft::WebSocketDecoder;
using weft::WebSocketOpcode;

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

struct Settings {
  absl::Duration tick;     // None if it is 0.
  absl::Duration ping;     // So long a client may be silent,
  absl::Duration pong;     // and so long after it was pinged.
  absl::Duration closing;  // So long it has to say good-bye.
  int queue = 64;
  int max_message = 1024 * 1024;
};

// A frame that is the same for all, and is kept until the last has it.
using Frame = std::shared_ptr<const std::string>;

Frame MakeFrame(WebSocketOpcode opcode, std::string_view payload) {
  std::string frame;
  AppendFrame(&frame, opcode, payload);
  return std::make_shared<const std::string>(std::move(frame));
}

class Client;

struct Room {
  Settings settings;
  std::list<Client*> clients;
  int64_t welcomed = 0;
  int64_t said = 0;
  int64_t too_slow = 0;
};

// One that has shaken hands.
//
//           Close(), or the peer's close         the peer's close, its end, or too late
//   open ---------------------------> closing ------------------------------> closed
class Client {
 public:
  Client(weft::StreamReader& reader, weft::StreamWriter& writer, Room* room)
      : reader_(reader),
        writer_(writer),
        room_(room),
        decoder_(WebSocketDecoder::Role::kServer, static_cast<size_t>(room->settings.max_message)),
        queue_(room->settings.queue) {}
  Client(const Client&) = delete;
  ~Client() { deadline_.Cancel(); }

  // Until it is closed.
  Coro<> Serve() {
    co_await weft::WithTaskGroup([&](weft::TaskGroup& group) -> Coro<> {
      group.CreateTask(SendQueue());
      co_await ReadMessages();
      BeginClosing();
      writer_.Close();
    });
    absl::Status closed = co_await writer_.WaitClosed();
    closed.IgnoreError();  // However it went, it is over.
  }

  // Sends `frame` when it can. One that has no room for it is closed.
  void Send(const Frame& frame) {
    if (is_closing_) return;
    if (!queue_.Full()) return queue_.PutNowait(frame);
    ++room_->too_slow;
    Close(weft::kPolicyViolation, "too slow");
  }

  // The same for what is worth nothing if it comes late.
  void SendIfThereIsRoom(const Frame& frame) {
    if (!is_closing_ && !queue_.Full()) queue_.PutNowait(frame);
  }

  // Says good-bye, before whatever is in the queue, and waits for the answer.
  void Close(uint16_t code, std::string_view reason) {
    if (is_closing_) return;
    Write(WebSocketOpcode::kClose, weft::ClosePayload(code, reason));
    BeginClosing();
  }

 private:
  void Write(WebSocketOpcode opcode, std::string_view payload) {
    std::string frame;
    AppendFrame(&frame, opcode, payload);
    writer_.Write(frame);
  }

  // From here on nothing is sent, and there is an end.
  void BeginClosing() {
    if (is_closing_) return;
    is_closing_ = true;
    queue_.Shutdown(/*immediate=*/true);
    deadline_ =
        weft::GetRunningLoop().CallLater(room_->settings.closing, [this] { writer_.Abort(); });
  }

  Coro<> SendQueue() {
    try {
      while (true) {
        Frame frame = co_await queue_.Get();
        writer_.Write(*frame);
        frame.reset();
        if (absl::Status sent = co_await writer_.Drain(); !sent.ok()) co_return;
      }
    } catch (const weft::QueueShutDown&) {
      // It is closing.
    }
  }

  // Bytes that the client has sent; none after its end, and when it is too silent for too
  // long.
  Coro<absl::Span<const char>> Read() {
    bool is_pinged = false;
    while (true) {
      const absl::Duration patience = is_pinged ? room_->settings.pong : room_->settings.ping;
      try {
        absl::StatusOr<absl::Span<const char>> unread =
            co_await weft::WithTimeout(patience, reader_.Fill());
        co_return unread.ok() ? *unread : absl::Span<const char>();
      } catch (const weft::TimeoutError&) {
        if (is_closing_) continue;
        if (is_pinged) {
          Close(weft::kPolicyViolation, "no answer to a ping");
        } else {
          Write(WebSocketOpcode::kPing, "");
          is_pinged = true;
        }
      }
    }
  }

  // Until the client has said good-bye, is gone, or has broken a rule.
  Coro<> ReadMessages() {
    while (true) {
      absl::Span<const char> unread = co_await Read();
      if (unread.empty()) co_return;
      std::string_view input(unread.data(), unread.size());
      while (true) {
        const WebSocketDecoder::Result result = decoder_.Decode(&input);
        if (result == WebSocketDecoder::Result::kIncomplete) break;
        if (result == WebSocketDecoder::Result::kError) {
          Close(decoder_.error_code(), decoder_.error());
          co_await Discard();
          co_return;
        }
        if (decoder_.opcode() == WebSocketOpcode::kClose) {
          Answer(decoder_.close_code());
          co_return;
        }
        Handle();
      }
      reader_.Consume(unread.size());
      // Here waits who asks for much, and does not read it.
      if (absl::Status sent = co_await writer_.Drain(); !sent.ok()) co_return;
    }
  }

  // To the peer's close belongs ours, with the same code.
  void Answer(uint16_t code) {
    if (code == weft::kNoStatus) code = weft::kNormalClosure;
    Close(code, "");
  }

  void Handle() {
    if (is_closing_) return;
    if (decoder_.opcode() == WebSocketOpcode::kPing) {
      Write(WebSocketOpcode::kPong, decoder_.payload());
    } else if (decoder_.opcode() != WebSocketOpcode::kPong) {
      ++room_->said;
      const Frame frame = MakeFrame(decoder_.opcode(), decoder_.payload());
      for (Client* client : room_->clients) client->Send(frame);
    }
  }

  // To close a socket with unread bytes in it is a reset, and the peer might never read why.
  Coro<> Discard() {
    writer_.WriteEof();
    while (true) {
      absl::StatusOr<absl::Span<const char>> unread = co_await reader_.Fill();
      if (!unread.ok() || unread->empty()) co_return;
      reader_.Consume(unread->size());
    }
  }

  weft::StreamReader& reader_;
  weft::StreamWriter& writer_;
  Room* room_;
  WebSocketDecoder decoder_;
  weft::Queue<Frame> queue_;
  bool is_closing_ = false;
  weft::TimerHandle deadline_;
};

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

Coro<> Welcome(weft::StreamReader reader, weft::StreamWriter writer, Room* room) {
  std::string answer;
  absl::StatusOr<weft::HttpHead> head = co_await ReadHead(reader, &answer);
  if (head.ok() && head->target == "/socket") {
    const weft::WebSocketHandshake handshake = weft::AnswerHandshake(*head);
    writer.Write(handshake.answer);
    if (!handshake.is_accepted) co_return;
    Client client(reader, writer, room);
    const auto self = room->clients.insert(room->clients.end(), &client);
    const absl::Cleanup leave = [&] { room->clients.erase(self); };
    ++room->welcomed;
    co_await client.Serve();
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

Coro<> Tick(Room* room) {
  if (room->settings.tick == absl::ZeroDuration()) co_return;
  for (int64_t i = 1;; ++i) {
    co_await weft::Sleep(room->settings.tick);
    const Frame frame = MakeFrame(WebSocketOpcode::kText, absl::StrCat("tick ", i));
    for (Client* client : room->clients) client->SendIfThereIsRoom(frame);
  }
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port, Settings settings) {
  Room room;
  room.settings = settings;
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
  weft::Task<> ticker = weft::CreateTask(Tick(&room));

  weft::ServeOptions ending;
  ending.grace = settings.closing + absl::Seconds(1);
  ending.on_stopping = [&room] {
    std::cout << "shutting down, " << room.clients.size() << " clients are here" << std::endl;
    for (Client* client : room.clients) client->Close(weft::kGoingAway, "the server ends");
  };
  co_await weft::ServeUntilSignal(*server, ending);
  ticker.Cancel();
  co_await weft::NoThrow(ticker);  // It looks into the room.
  std::cout << "done: " << room.welcomed << " clients, " << room.said << " messages, "
            << room.too_slow << " too slow" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 8080;
  Settings settings;
  int tick = 1000, ping = 20'000, pong = 10'000, closing = 2000;
  weft::Flags flags("websocket_push");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.Add("tick", &tick, 0, 3'600'000, "ms from one tick to the next; 0: none");
  flags.Add("ping", &ping, 1, 3'600'000, "ms of silence after which a client is pinged");
  flags.Add("pong", &pong, 1, 3'600'000, "ms that it has to answer");
  flags.Add("closing", &closing, 1, 3'600'000, "ms that a client has to say good-bye");
  flags.Add("queue", &settings.queue, 1, 1'000'000, "how many messages may wait for a client");
  flags.Add("max-message", &settings.max_message, 1, 1'000'000'000, "bytes of one message");
  flags.ParseAll(argc, argv);
  settings.tick = absl::Milliseconds(tick);
  settings.ping = absl::Milliseconds(ping);
  settings.pong = absl::Milliseconds(pong);
  settings.closing = absl::Milliseconds(closing);

  weft::RunOptions options;
  options.poller = poller;
  try {
    return weft::Run(Serve(flags, host, port, settings), options);
  } catch (const weft::ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller.
  }
}
