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

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "weft/core/errors.h"
#include "weft/core/task.h"
#include "weft/examples/flags.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/stream.h"

namespace {

using weft::Coro;

// What has been typed since the last call; empty at the end. The loop waits for a
// terminal or a pipe; a file, for which nobody has to wait, it refuses to watch.
Coro<std::string> ReadStdin() {
  weft::EventLoop& loop = weft::GetRunningLoop();
  weft::Future<> readable = loop.CreateFuture();
  const auto on_readable = [&loop, &readable] {
    loop.RemoveReader(STDIN_FILENO);
    readable.SetResult();
  };
  const absl::Cleanup remove = [&loop] { loop.RemoveReader(STDIN_FILENO); };
  if (loop.AddReader(STDIN_FILENO, on_readable).ok()) co_await readable;

  std::string text(4096, '\0');
  const ssize_t count = read(STDIN_FILENO, text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  co_return text;
}

Coro<> SendAll(weft::StreamWriter& writer, std::vector<std::string> lines) {
  for (const std::string& line : lines) writer.Write(line + "\n");
  if (lines.empty()) {
    while (true) {
      const std::string text = co_await ReadStdin();
      if (text.empty()) break;
      writer.Write(text);
      if (absl::Status sent = co_await writer.Drain(); !sent.ok()) co_return;
    }
  }
  writer.WriteEof();  // The server answers what it has, and ends too.
}

Coro<int> Talk(const weft::Flags& flags, std::string host, uint16_t port,
               std::vector<std::string> lines) {
  absl::StatusOr<weft::Connection> connection = co_await weft::OpenConnection(host, port);
  if (!connection.ok()) co_return flags.Fail(connection.status().message());
  auto& [reader, writer] = *connection;

  weft::Task<> sender = weft::CreateTask(SendAll(writer, std::move(lines)));
  while (true) {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (!line.ok()) co_return flags.Fail(line.status().message());
    if (line->empty()) co_return 0;  // The end; Run() cancels the sender if it is left.
    std::cout << *line << std::flush;
  }
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

  weft::RunOptions options;
  options.poller = poller;
  try {
    return weft::Run(Talk(flags, host, port, lines), options);
  } catch (const weft::ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller.
  } catch (const weft::KeyboardInterrupt&) {
    return 130;
  }
}
