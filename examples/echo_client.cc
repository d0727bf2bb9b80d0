// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Sends lines to a server and prints what comes back: the arguments, or what one
// types.
//
//   tools/bazel run //examples:echo_client -- --port=7777 hello world
//   tools/bazel run //examples:echo_client -- --port=7777               (Ctrl-D ends it)
//
// It sends and receives at the same time, in two tasks, so it is of use with
// //examples:chat_server too.

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "weft/core/task.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/to_thread.h"
#include "weft/net/connect.h"
#include "weft/net/errno_status.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

absl::StatusOr<std::string> ReadStdinBlocking() {
  std::string text(4096, '\0');
  const auto count = read(STDIN_FILENO, text.data(), text.size());
  if (count < 0) return weft::ErrnoStatus(-errno, "read the standard input");
  text.resize(static_cast<size_t>(count));
  return text;
}

// What has been typed since the last call; empty at the end. The loop waits for a
// terminal or a pipe; what it refuses to watch, as a file, and on Windows everything, is
// read on a thread.
Coro<absl::StatusOr<std::string>> ReadStdin() {
  weft::EventLoop& loop = weft::GetRunningLoop();
  weft::Future<> readable = loop.CreateFuture();
  const auto on_readable = [&loop, &readable] {
    loop.RemoveReader(STDIN_FILENO);
    readable.SetResult();
  };
  const absl::Cleanup remove = [&loop] { loop.RemoveReader(STDIN_FILENO); };
  const bool is_watched = loop.AddReader(STDIN_FILENO, on_readable).ok();
  if (!is_watched) co_return co_await weft::ToThread(ReadStdinBlocking);
  co_await readable;
  co_return ReadStdinBlocking();
}

// Why it did not send all that there was to be read; whether it arrives is for who
// receives to find out.
Coro<absl::Status> SendAll(weft::StreamWriter& writer, std::vector<std::string> lines) {
  for (const std::string& line : lines) writer.Write(line + "\n");
  absl::Status status;
  while (lines.empty()) {
    absl::StatusOr<std::string> text = co_await ReadStdin();
    if (!text.ok()) status = text.status();
    if (!text.ok() || text->empty()) break;
    writer.Write(*text);
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) break;
  }
  writer.WriteEof();  // The server answers what it has, and ends too.
  co_return status;
}

absl::Status Print(const std::string& text) {
  errno = 0;
  std::cout << text << std::flush;
  if (std::cout) return absl::OkStatus();
  return weft::ErrnoStatus(errno == 0 ? -EIO : -errno, "write to the standard output");
}

Coro<int> Talk(const weft::Flags& flags, std::string host, uint16_t port,
               std::vector<std::string> lines) {
  absl::StatusOr<weft::Connection> connection = co_await weft::OpenConnection(host, port);
  if (!connection.ok()) co_return flags.Fail(connection.status().message());
  auto& [reader, writer] = *connection;

  weft::Task<absl::Status> sender = weft::CreateTask(SendAll(writer, std::move(lines)));
  while (true) {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (!line.ok()) co_return flags.Fail(line.status().message());
    if (line->empty()) break;
    if (absl::Status printed = Print(*line); !printed.ok()) {
      co_return flags.Fail(printed.message(), 1);
    }
  }
  // The end. If the sender is left, Run() cancels it.
  if (sender.Done() && !sender.Result().ok()) {
    co_return flags.Fail(sender.Result().message(), 1);
  }
  co_return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string host = "127.0.0.1", poller;
  uint16_t port = 7777;
  weft::Flags flags("echo_client [LINE...]");
  flags.Add("host", &host, "the server: an address or a name");
  flags.Add("port", &port, "the server's port");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  const std::vector<std::string> lines = flags.Parse(argc, argv);

  return weft::RunOn(poller, Talk(flags, host, port, lines), flags);
}
