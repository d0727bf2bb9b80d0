// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/websocket_room.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/errors.h"
#include "weft/core/sleep.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/sync/queue.h"

namespace weft {
namespace {

// A frame that is the same for all, and is kept until the last has it.
using Frame = std::shared_ptr<const std::string>;

Frame MakeFrame(WebSocketOpcode opcode, std::string_view payload) {
  std::string frame;
  AppendFrame(&frame, opcode, payload);
  return std::make_shared<const std::string>(std::move(frame));
}

}  // namespace

// One that has shaken hands.
//
//           Close(), or the peer's close         the peer's close, its end, or too late
//   open ---------------------------> closing ------------------------------> closed
class WebSocketRoom::Client {
 public:
  Client(StreamReader& reader, StreamWriter& writer, WebSocketRoom* room)
      : reader_(reader),
        writer_(writer),
        room_(room),
        decoder_(WebSocketDecoder::Role::kServer, static_cast<size_t>(room->options_.max_message)),
        queue_(room->options_.queue) {}
  Client(const Client&) = delete;
  ~Client() { deadline_.Cancel(); }

  // Until it is closed.
  Coro<> Serve() {
    co_await WithTaskGroup([&](TaskGroup& group) -> Coro<> {
      group.CreateTask(SendQueue());
      co_await ReadMessages();
      BeginClosing();
      writer_.Close();
    });
    absl::Status closed = co_await writer_.WaitClosed();
    closed.IgnoreError();  // However it went, it is over.
  }

  // Sends `frame`, now or when it can. One that has no room for it is closed.
  void Send(const Frame& frame) {
    if (is_closing_ || SendNow(*frame)) return;
    if (!queue_.Full()) return queue_.PutNowait(frame);
    ++room_->too_slow_;
    Close(kPolicyViolation, "too slow");
  }

  // The same for what is worth nothing if it comes late.
  void SendIfThereIsRoom(const Frame& frame) {
    if (is_closing_ || SendNow(*frame)) return;
    if (!queue_.Full()) queue_.PutNowait(frame);
  }

  // Says good-bye, before whatever is in the queue, and waits for the answer.
  void Close(uint16_t code, std::string_view reason) {
    if (is_closing_) return;
    Write(WebSocketOpcode::kClose, ClosePayload(code, reason));
    BeginClosing();
  }

 private:
  // What the connection takes at once does not wait for SendQueue() to have its turn: that
  // much is said in one round does not tell who is slow.
  bool SendNow(std::string_view frame) {
    const bool has_room = writer_.GetWriteBufferSize() <= writer_.GetWriteBufferLimits().second;
    if (!queue_.Empty() || !has_room) return false;
    writer_.Write(frame);
    return true;
  }

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
    deadline_ = GetRunningLoop().CallLater(room_->options_.closing, [this] { writer_.Abort(); });
  }

  Coro<> SendQueue() {
    try {
      while (true) {
        Frame frame = co_await queue_.Get();
        writer_.Write(*frame);
        frame.reset();
        if (absl::Status sent = co_await writer_.Drain(); !sent.ok()) co_return;
      }
    } catch (const QueueShutDown&) {
      // It is closing.
    }
  }

  // Bytes that the client has sent; none after its end, and when it is too silent for too
  // long.
  Coro<absl::Span<const char>> Read() {
    bool is_pinged = false;
    while (true) {
      const absl::Duration patience = is_pinged ? room_->options_.pong : room_->options_.ping;
      try {
        absl::StatusOr<absl::Span<const char>> unread =
            co_await WithTimeout(patience, reader_.Fill());
        co_return unread.ok() ? *unread : absl::Span<const char>();
      } catch (const TimeoutError&) {
        if (is_closing_) continue;
        if (is_pinged) {
          Close(kPolicyViolation, "no answer to a ping");
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
      const int64_t said = room_->said_;
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
      if (room_->said_ != said) co_await Yield();  // Those who were told send it first.
      // Here waits who asks for much, and does not read it.
      if (absl::Status sent = co_await writer_.Drain(); !sent.ok()) co_return;
    }
  }

  // To the peer's close belongs ours, with the same code.
  void Answer(uint16_t code) {
    if (code == kNoStatus) code = kNormalClosure;
    Close(code, "");
  }

  void Handle() {
    if (is_closing_) return;
    if (decoder_.opcode() == WebSocketOpcode::kPing) {
      Write(WebSocketOpcode::kPong, decoder_.payload());
    } else if (decoder_.opcode() != WebSocketOpcode::kPong) {
      ++room_->said_;
      room_->Say(decoder_.opcode(), decoder_.payload());
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

  StreamReader& reader_;
  StreamWriter& writer_;
  WebSocketRoom* const room_;
  WebSocketDecoder decoder_;
  Queue<Frame> queue_;
  bool is_closing_ = false;
  TimerHandle deadline_;
};

Coro<> WebSocketRoom::Serve(StreamReader& reader, StreamWriter& writer) {
  Client client(reader, writer, this);
  const auto self = clients_.insert(clients_.end(), &client);
  const absl::Cleanup leave = [&] { clients_.erase(self); };
  ++welcomed_;
  co_await client.Serve();
}

void WebSocketRoom::Say(WebSocketOpcode opcode, std::string_view payload) {
  const Frame frame = MakeFrame(opcode, payload);
  for (Client* client : clients_) client->Send(frame);
}

void WebSocketRoom::SayWhereThereIsRoom(WebSocketOpcode opcode, std::string_view payload) {
  const Frame frame = MakeFrame(opcode, payload);
  for (Client* client : clients_) client->SendIfThereIsRoom(frame);
}

void WebSocketRoom::Close(uint16_t code, std::string_view reason) {
  for (Client* client : clients_) client->Close(code, reason);
}

}  // namespace weft
