// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The server of the README.

// [snippet echo]
#include <iostream>

#include "weft/weft.h"

weft::Coro<> Echo(weft::StreamReader reader, weft::StreamWriter writer) {
  while (true) {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (!line.ok() || line->empty()) co_return;  // An error, or the end: `writer` closes.
    writer.Write(*line);
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) co_return;
  }
}

weft::Coro<int> Main() {
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(Echo, "127.0.0.1", 7777);
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    co_return 1;
  }
  weft::ServeOptions options;
  options.grace = absl::Seconds(1);  // For clients in the middle of something.
  co_await weft::ServeUntilSignal(*server, options);
  co_return 0;
}

int main() { return weft::Run(Main()); }
// [end]
