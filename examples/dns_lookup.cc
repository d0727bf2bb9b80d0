// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Looks up many names at the same time, and addresses too.
//
//   tools/bazel run //examples:dns_lookup -- localhost example.org 127.0.0.1 ::1
//
// Prints a line for each, in the order in which they were given: the addresses of a
// name, the name of an address. The exit code is 1 if one was not found. A name that is
// slow holds up no other, and is given up after --timeout.

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "weft/core/gather.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/net/resolver.h"
#include "weft/net/socket_address.h"

namespace {

using weft::Coro;

struct Answer {
  Answer(std::string line, bool found) : text(std::move(line)), is_found(found) {}
  std::string text;
  bool is_found;
};

Coro<Answer> FindName(weft::SocketAddress address, absl::Duration timeout) {
  weft::NameOptions options;
  options.numeric_service = true;
  options.name_required = true;
  options.timeout = timeout;
  const std::string host = address.host();
  absl::StatusOr<weft::NameInfo> name = co_await weft::GetNameInfo(std::move(address), options);
  if (!name.ok()) co_return Answer(absl::StrCat(host, ": ", name.status().message()), false);
  co_return Answer(absl::StrCat(host, ": ", name->host), true);
}

Coro<Answer> FindAddresses(std::string name, weft::ResolveOptions options) {
  absl::StatusOr<weft::Addresses> found = co_await weft::GetAddrInfo(name, 0, options);
  if (!found.ok()) co_return Answer(absl::StrCat(name, ": ", found.status().message()), false);
  std::string line = absl::StrCat(name, ":");
  for (const weft::SocketAddress& address : *found) absl::StrAppend(&line, " ", address.host());
  co_return Answer(std::move(line), true);
}

Coro<int> LookUp(std::vector<std::string> names, weft::ResolveOptions options) {
  std::vector<Coro<Answer>> lookups;
  for (const std::string& name : names) {
    absl::StatusOr<weft::SocketAddress> address = weft::SocketAddress::FromHost(name, 0);
    lookups.push_back(address.ok() ? FindName(*std::move(address), options.timeout)
                                   : FindAddresses(name, options));
  }
  int code = 0;
  std::vector<Answer> answers = co_await weft::Gather(std::move(lookups));
  for (const Answer& answer : answers) {
    (answer.is_found ? std::cout : std::cerr) << answer.text << std::endl;
    if (!answer.is_found) code = 1;
  }
  co_return code;
}

}  // namespace

int main(int argc, char** argv) {
  std::string poller;
  bool ipv4 = false, ipv6 = false;
  int timeout = 5000;
  weft::Flags flags("dns_lookup NAME...");
  flags.Add("ipv4", &ipv4, "only addresses of IPv4");
  flags.Add("ipv6", &ipv6, "only addresses of IPv6");
  flags.Add("timeout", &timeout, 1, 3'600'000, "ms for each");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  std::vector<std::string> names = flags.Parse(argc, argv);
  if (names.empty()) return flags.Fail("there is nothing to look up");

  weft::ResolveOptions resolve;
  using Family = weft::SocketAddress::Family;
  if (ipv4 != ipv6) resolve.family = ipv4 ? Family::kIpv4 : Family::kIpv6;
  resolve.timeout = absl::Milliseconds(timeout);
  return weft::RunOn(poller, LookUp(std::move(names), resolve), flags);
}
