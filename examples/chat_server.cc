// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A room in which everybody reads what anybody writes, line by line.
//
//   tools/bazel run //examples:chat_server -- --port=7778
//   tools/bazel run //examples:echo_client -- --port=7778     twice; or: nc localhost 7778
//
// A state that many tasks share, and not one lock: between two awaits nobody else
// runs. Nobody waits for a slow reader either: what he has not taken is kept for
// him up to a limit, and then he is shown out.

#include <cstdint>
#include <iostream>
#include <list>
#include <string>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

constexpr size_t kMostUnsent = 1024 * 1024;

struct Guest {
  std::string name;
  weft::StreamWriter* writer;
};
using Room = std::list<Guest>;

// To all but one. Write() does not wait, so the slowest holds up nobody.
void Tell(const Room& room, const Guest* except, std::string_view text) {
  for (const Guest& guest : room) {
    if (&guest == except) continue;
    guest.writer->Write(text);
    if (guest.writer->GetWriteBufferSize() > kMostUnsent) guest.writer->Abort();
  }
}

// A line without its end, or an error; OUT_OF_RANGE at the end of the stream.
Coro<absl::StatusOr<std::string>> ReadText(weft::StreamReader& reader) {
  absl::StatusOr<std::string> line = co_await reader.ReadLine();
  if (!line.ok()) co_return line;
  if (line->empty()) co_return absl::OutOfRangeError("the end");
  absl::string_view text = *line;
  absl::ConsumeSuffix(&text, "\n");
  absl::ConsumeSuffix(&text, "\r");
  co_return std::string(text);
}

Coro<> Welcome(weft::StreamReader reader, weft::StreamWriter writer, Room* room) {
  writer.Write("* what is your name?\n");
  absl::StatusOr<std::string> name = co_await ReadText(reader);
  if (!name.ok()) co_return;
  if (name->empty()) *name = "somebody";

  writer.Write(absl::StrCat("* hello ", *name, ", there are ", room->size(), " others here\n"));
  const Room::iterator self = room->insert(room->end(), Guest{*name, &writer});
  Tell(*room, &*self, absl::StrCat("* ", *name, " joined\n"));
  const absl::Cleanup leave = [&] {
    room->erase(self);
    Tell(*room, nullptr, absl::StrCat("* ", *name, " left\n"));
  };

  while (true) {
    absl::StatusOr<std::string> text = co_await ReadText(reader);
    if (absl::IsResourceExhausted(text.status())) {
      writer.Write("* nobody reads such a long line\n");
      continue;
    }
    if (!text.ok()) co_return;
    Tell(*room, &*self, absl::StrCat(*name, ": ", *text, "\n"));
    // Who writes much does not write faster than it leaves; that is his wait alone.
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) co_return;
  }
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port) {
  Room room;
  const auto welcome = [&room](weft::StreamReader reader, weft::StreamWriter writer) {
    return Welcome(std::move(reader), std::move(writer), &room);
  };
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(welcome, host, port);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }

  weft::ServeOptions ending;
  ending.grace = absl::Seconds(2);
  ending.on_stopping = [&room, &server] {
    std::cout << "shutting down, " << room.size() << " guests are here" << std::endl;
    Tell(room, nullptr, "* we are closing, good night\n");
    server->CloseClients();  // When they have read it.
  };
  co_await weft::ServeUntilSignal(*server, ending);
  std::cout << "done" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 7778;
  weft::Flags flags("chat_server");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.ParseAll(argc, argv);

  return weft::RunOn(poller, Serve(flags, host, port), flags);
}
