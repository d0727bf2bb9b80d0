// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A small Redis: strings, lists, sets, hashes, keys that expire, and publishing. It keeps
// nothing on disk.
//
//   tools/bazel run -c opt //examples:redis_mini -- --port=6379
//   redis-cli set greeting hello            redis-cli get greeting
//   redis-benchmark -q -t set,get -P 16
//
// All clients share the database, and no command waits for anything, so each is executed as a
// whole. What a client sends in one piece is answered in one: the requests that have come are
// executed one after another, and their answers leave together.

#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "weft/examples/flags.h"
#include "weft/examples/redis_database.h"
#include "weft/examples/resp.h"
#include "weft/examples/run.h"
#include "weft/loop/event_loop.h"
#include "weft/net/graceful.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

// So much of the answers is collected before it leaves.
constexpr size_t kMostAnswers = 64 * 1024;

// A subscriber for whom more waits than this is cut off, for all of it is kept for him.
constexpr size_t kMostUnread = 32 * 1024 * 1024;

class Client final : public weft::RedisClient {
 public:
  Client(weft::StreamReader reader, weft::StreamWriter writer, weft::RedisDatabase* database)
      : reader_(std::move(reader)), writer_(std::move(writer)), database_(database) {}
  Client(const Client&) = delete;
  ~Client() { database_->Forget(this); }

  void Push(std::string_view message) override {
    writer_.Write(message);
    if (writer_.GetWriteBufferSize() > kMostUnread) writer_.Abort();
  }

  // Answers until the client leaves, or says what is no request.
  Coro<> Serve() {
    size_t needed = 1;
    while (true) {
      absl::StatusOr<absl::Span<const char>> unread = co_await reader_.Fill(needed);
      if (!unread.ok() || unread->size() < needed) co_return;  // Reset, or all has been said.
      std::string_view input(unread->data(), unread->size());
      bool goes_on = true;
      while (goes_on && Answer(&input, &goes_on)) {
        if (answers_.size() < kMostAnswers) continue;
        if (absl::Status sent = co_await Send(); !sent.ok()) co_return;
      }
      reader_.Consume(unread->size() - input.size());
      needed = parser_.needed();
      if (absl::Status sent = co_await Send(); !sent.ok() || !goes_on) co_return;
    }
  }

 private:
  // Executes the first request of `*input`, if it is there, and takes it away.
  bool Answer(std::string_view* input, bool* goes_on) {
    switch (parser_.Parse(*input)) {
      case weft::RespParser::Result::kIncomplete:
        return false;
      case weft::RespParser::Result::kError:
        weft::AppendError(&answers_, "ERR " + parser_.error());
        *goes_on = false;
        return true;
      case weft::RespParser::Result::kRequest:
        database_->Execute(this, parser_.arguments(), &answers_);
        input->remove_prefix(parser_.size());
        *goes_on = !wants_to_quit();
        return true;
    }
    return false;
  }

  // Here waits who asks, and does not read the answers.
  Coro<absl::Status> Send() {
    writer_.Write(answers_);
    answers_.clear();
    if (answers_.capacity() > 2 * kMostAnswers) answers_.shrink_to_fit();
    absl::Status sent = co_await writer_.Drain();
    co_return sent;
  }

  weft::StreamReader reader_;
  weft::StreamWriter writer_;
  weft::RedisDatabase* database_;
  weft::RespParser parser_;
  std::string answers_;
};

Coro<> ServeClient(weft::StreamReader reader, weft::StreamWriter writer,
                   weft::RedisDatabase* database) {
  Client client(std::move(reader), std::move(writer), database);
  co_await client.Serve();
}

Coro<int> Serve(const weft::Flags& flags, std::string host, uint16_t port) {
  weft::RedisDatabase database(&weft::GetRunningLoop());
  const auto serve = [&database](weft::StreamReader reader, weft::StreamWriter writer) {
    return ServeClient(std::move(reader), std::move(writer), &database);
  };
  weft::ServerOptions options;
  options.backlog = 1024;
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(serve, host, port, options);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  for (const weft::SocketAddress& address : server->addresses()) {
    std::cout << "listening on " << address << std::endl;
  }

  weft::ServeOptions ending;
  // Every request that was read has been answered, and a client would stay for ever.
  ending.grace = absl::Seconds(1);
  ending.on_stopping = [&server] {
    std::cout << "shutting down, " << server->connection_count() << " clients are here"
              << std::endl;
    server->CloseClients();
  };
  co_await weft::ServeUntilSignal(*server, ending);
  std::cout << "done" << std::endl;
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 6379;
  weft::Flags flags("redis_mini");
  flags.Add("host", &host, "where to listen: an address or a name; empty for everywhere");
  flags.Add("port", &port, "where to listen; 0 picks one that is free");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.ParseAll(argc, argv);

  return weft::RunOn(poller, Serve(flags, host, port), flags);
}
