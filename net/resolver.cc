// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/resolver.h"

#include <utility>

#include "weft/loop/event_loop.h"

namespace weft {
namespace {

using Family = SocketAddress::Family;

class SystemResolverImpl final : public Resolver {
 public:
  Coro<absl::StatusOr<Addresses>> Resolve(std::string host, uint16_t port,
                                          ResolveOptions options) override {
    const auto job = [host, port, options] {
      return internal::ResolveBlocking(host, port, options);
    };
    Future<absl::StatusOr<Addresses>> found = GetRunningLoop().RunInExecutor(nullptr, job);
    co_return co_await std::move(found);
  }
};

// Those that need no look-up; empty if this one does.
Addresses KnownAddresses(const std::string& host, uint16_t port, const ResolveOptions& options) {
  const auto wanted = [&options](Family family) {
    return options.family == Family::kNone || options.family == family;
  };
  Addresses known;
  if (host.empty()) {
    if (wanted(Family::kIpv4)) {
      known.push_back(options.passive ? SocketAddress::Ipv4Any(port)
                                      : SocketAddress::Ipv4Loopback(port));
    }
    if (wanted(Family::kIpv6)) {
      known.push_back(options.passive ? SocketAddress::Ipv6Any(port)
                                      : SocketAddress::Ipv6Loopback(port));
    }
    return known;
  }
  absl::StatusOr<SocketAddress> numeric = SocketAddress::FromHost(host, port);
  if (numeric.ok() && wanted(numeric->family())) known.push_back(*std::move(numeric));
  return known;
}

}  // namespace

Resolver* SystemResolver() {
  static SystemResolverImpl resolver;
  return &resolver;
}

Coro<absl::StatusOr<Addresses>> GetAddrInfo(std::string host, uint16_t port, ResolveOptions options,
                                            Resolver* resolver) {
  Addresses known = KnownAddresses(host, port, options);
  if (!known.empty()) co_return known;
  if (resolver == nullptr) resolver = SystemResolver();
  co_return co_await resolver->Resolve(std::move(host), port, options);
}

}  // namespace weft
