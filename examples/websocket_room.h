// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_WEBSOCKET_ROOM_H_
#define WEFT_EXAMPLES_WEBSOCKET_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <string_view>

#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/examples/websocket.h"
#include "weft/net/stream.h"

namespace weft {

struct WebSocketRoomOptions {
  WebSocketRoomOptions() {}

  absl::Duration ping = absl::Seconds(20);    // So long a client may be silent,
  absl::Duration pong = absl::Seconds(10);    // and so long after it was pinged.
  absl::Duration closing = absl::Seconds(2);  // So long it has to say good-bye.
  int queue = 64;                             // So many messages may wait for it.
  int max_message = 1024 * 1024;              // Bytes of one that it sends.
};

// WebSocketRoom
//
// Clients that are all told what any of them says. Each has a queue of its own, with a limit,
// and a task that sends what is in it; so nobody waits for a slow one. A client whose queue
// has no room for a message is too slow, and is closed with 1008. So is one that is silent,
// and does not answer a ping.
//
//   Coro<> Welcome(StreamReader reader, StreamWriter writer, WebSocketRoom* room) {
//     ... shake hands ...
//     co_await room->Serve(reader, writer);
//   }
//
// Threads: belongs to the loop's thread.
class WebSocketRoom {
 public:
  explicit WebSocketRoom(WebSocketRoomOptions options) : options_(options) {}
  WebSocketRoom(const WebSocketRoom&) = delete;

  // Serves a client that has shaken hands, until its connection is closed. The streams are
  // the caller's, and this room's until then.
  Coro<> Serve(StreamReader& reader, StreamWriter& writer);

  // To all of them.
  void Say(WebSocketOpcode opcode, std::string_view payload);

  // The same for what is worth nothing if it comes late: it is dropped where there is no room
  // for it.
  void SayWhereThereIsRoom(WebSocketOpcode opcode, std::string_view payload);

  // Says good-bye to all of them.
  void Close(uint16_t code, std::string_view reason);

  size_t size() const { return clients_.size(); }

  // Since the beginning.
  int64_t welcomed() const { return welcomed_; }
  int64_t said() const { return said_; }  // By clients.
  int64_t too_slow() const { return too_slow_; }

 private:
  class Client;

  const WebSocketRoomOptions options_;
  std::list<Client*> clients_;
  int64_t welcomed_ = 0;
  int64_t said_ = 0;
  int64_t too_slow_ = 0;
};

}  // namespace weft

#endif  // WEFT_EXAMPLES_WEBSOCKET_ROOM_H_
