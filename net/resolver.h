// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_RESOLVER_H_
#define WEFT_NET_RESOLVER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/net/socket_address.h"
#include "weft/poller/socket_api.h"

namespace weft {

// What a name is looked up for.
struct ResolveOptions {
  ResolveOptions() {}

  SocketAddress::Family family = SocketAddress::Family::kNone;  // kNone: IPv4 and IPv6.
  SocketType type = SocketType::kStream;
  bool passive = false;  // To be bound: an empty host stands for all interfaces.
};

using Addresses = std::vector<SocketAddress>;

// Resolver
//
// Finds the addresses of a host, in the order in which they should be tried.
//
// Threads: Resolve() is called on the loop's thread; the answer comes there.
// Python: loop.getaddrinfo().
class Resolver {
 public:
  virtual ~Resolver() = default;

  // Errors: NOT_FOUND if there is no such host, UNAVAILABLE if that cannot be found
  // out now. Cancelling it leaves nothing behind that the caller could notice.
  virtual Coro<absl::StatusOr<Addresses>> Resolve(std::string host, uint16_t port,
                                                  ResolveOptions options) = 0;
};

// The operating system's: getaddrinfo() in the running loop's default executor, as
// it blocks. Lives as long as the program.
Resolver* SystemResolver();

// The addresses of `host`; without a thread if it is numeric, or empty. `resolver`
// null: the system's.
Coro<absl::StatusOr<Addresses>> GetAddrInfo(std::string host, uint16_t port,
                                            ResolveOptions options = ResolveOptions(),
                                            Resolver* resolver = nullptr);

namespace internal {

// What the system says, as long as that may take. Any thread.
absl::StatusOr<Addresses> ResolveBlocking(const std::string& host, uint16_t port,
                                          const ResolveOptions& options);

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_RESOLVER_H_
