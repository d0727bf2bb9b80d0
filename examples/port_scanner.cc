// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Finds out which TCP ports of a host somebody listens at, many at a time.
//
//   tools/bazel run -c opt //examples:port_scanner -- --ports=1-1024,8080 localhost
//
// Prints the open ones, and how it went. What it shows: a limit on what is tried at
// once, a timeout for each, and one for all; and that a connection is closed wherever
// it is given up. Scan what is yours.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "weft/core/no_throw.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/net/connect.h"
#include "weft/net/resolver.h"

namespace {

using weft::Coro;

struct Scan {
  weft::SocketAddress address;
  weft::ConnectOptions connect;
  std::vector<uint16_t> ports;
  size_t next = 0;  // Of the ports.
  std::set<uint16_t> open;
  int refused = 0;
  int silent = 0;
  int failed = 0;
};

// One of several that take the ports one after the other: the number of them is the
// limit, and no port has a task before its turn.
Coro<> TryPorts(Scan* scan) {
  while (scan->next < scan->ports.size()) {
    const uint16_t port = scan->ports[scan->next++];
    weft::SocketAddress address = scan->address;
    address.set_port(port);
    absl::StatusOr<weft::Connection> connection =
        co_await weft::OpenConnection(address, scan->connect);
    if (connection.ok()) {
      scan->open.insert(port);
      connection->writer.Abort();
    } else if (absl::IsDeadlineExceeded(connection.status())) {
      ++scan->silent;
    } else if (absl::IsUnavailable(connection.status())) {
      ++scan->refused;
    } else if (scan->failed++ == 0) {
      std::cerr << "port_scanner: " << connection.status().message() << std::endl;
    }
  }
}

Coro<> TryAllPorts(Scan* scan, int limit) {
  auto start_all = [scan, limit](weft::TaskGroup& group) -> Coro<> {
    for (int i = 0; i < limit; ++i) group.CreateTask(TryPorts(scan));
    co_return;
  };
  co_await weft::WithTaskGroup(std::move(start_all));
}

Coro<int> Run(const weft::Flags& flags, std::string host, Scan scan, int limit,
              absl::Duration deadline) {
  weft::ResolveOptions resolve;
  resolve.timeout = deadline;
  absl::StatusOr<weft::Addresses> addresses = co_await weft::GetAddrInfo(host, 0, resolve);
  if (!addresses.ok()) co_return flags.Fail(addresses.status().message());
  scan.address = addresses->front();

  limit = std::min(limit, static_cast<int>(scan.ports.size()));
  auto ended = co_await weft::NoThrow(weft::WithTimeout(deadline, TryAllPorts(&scan, limit)));
  for (const uint16_t port : scan.open) std::cout << "open: " << port << "\n";
  std::cout << "done: " << scan.address.host() << ", " << scan.open.size() << " open, "
            << scan.refused << " refused, " << scan.silent << " silent, " << scan.failed
            << " failed" << std::endl;
  if (ended.has_value()) co_return 0;
  if (ended.cancelled()) ended.value();
  co_return flags.Fail("not done in time");
}

// "80,1-1024": false if it is no such thing.
bool ParsePorts(std::string_view text, std::vector<uint16_t>* ports) {
  for (const std::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<std::string_view, std::string_view> range =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    int first = 0, last = 0;
    if (!absl::SimpleAtoi(range.first, &first)) return false;
    last = first;
    if (!range.second.empty() && !absl::SimpleAtoi(range.second, &last)) return false;
    if (first < 1 || last > 65535 || first > last) return false;
    for (int port = first; port <= last; ++port) ports->push_back(static_cast<uint16_t>(port));
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string poller, ports = "1-1024";
  int limit = 100, timeout = 1000, deadline = 600'000;
  weft::Flags flags("port_scanner HOST");
  flags.Add("ports", &ports, "which, as \"80,8000-8999\"");
  flags.Add("limit", &limit, 1, 100'000, "how many are tried at a time");
  flags.Add("timeout", &timeout, 1, 3'600'000, "ms for each");
  flags.Add("deadline", &deadline, 1, 36'000'000, "ms for all");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  const std::vector<std::string> hosts = flags.Parse(argc, argv);
  if (hosts.size() != 1) return flags.Fail("one HOST is needed");
  Scan scan;
  if (!ParsePorts(ports, &scan.ports)) return flags.Fail("no ports: \"" + ports + "\"");
  scan.connect.timeout = absl::Milliseconds(timeout);

  return weft::RunOn(poller, Run(flags, hosts[0], scan, limit, absl::Milliseconds(deadline)),
                     flags);
}
