// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_RESOLVER_H_
#define WEFT_NET_RESOLVER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/net/socket_address.h"
#include "weft/poller/sock_addr.h"
#include "weft/poller/socket_api.h"

namespace weft {

// What a name is looked up for.
struct ResolveOptions {
  ResolveOptions() {}

  SocketAddress::Family family = SocketAddress::Family::kNone;  // kNone: IPv4 and IPv6.
  SocketType type = SocketType::kStream;
  bool passive = false;  // To be bound: an empty host stands for all interfaces.

  // When it has passed: DEADLINE_EXCEEDED.
  absl::Duration timeout = absl::InfiniteDuration();
};

using Addresses = std::vector<SocketAddress>;

// What an address is looked up for.
struct NameOptions {
  NameOptions() {}

  bool numeric_host = false;              // "127.0.0.1" rather than "localhost".
  bool numeric_service = false;           // "80" rather than "http".
  bool name_required = false;             // No name: an error, instead of the number.
  SocketType type = SocketType::kStream;  // A port may have other names for datagrams.
  absl::Duration timeout = absl::InfiniteDuration();
};

struct NameInfo {
  NameInfo() {}
  NameInfo(std::string h, std::string s) : host(std::move(h)), service(std::move(s)) {}

  std::string host;
  std::string service;
};

// Resolver
//
// Finds the addresses of a host, in the order in which they should be tried, and the
// name of an address. A program or a test may bring its own: for all of a loop
// (Environment::resolver) or for one call.
//
// Threads: it is called on the loop's thread; the answer comes there.
// Python: loop.getaddrinfo(), loop.getnameinfo().
class Resolver {
 public:
  virtual ~Resolver() = default;

  // Errors: NOT_FOUND if there is no such host, UNAVAILABLE if that cannot be found
  // out now. Cancelling it leaves nothing behind that the caller could notice. The
  // timeout is GetAddrInfo()'s business.
  virtual Coro<absl::StatusOr<Addresses>> Resolve(std::string host, uint16_t port,
                                                  ResolveOptions options) = 0;

  // Errors: the same. UNIMPLEMENTED unless overridden.
  virtual Coro<absl::StatusOr<NameInfo>> FindName(SocketAddress address, NameOptions options);
};

// The operating system's: getaddrinfo() and getnameinfo(), which block, on threads of
// their own. So names that are slow to be found hold up other names at most, and
// nothing else that needs a thread. A look-up that is cancelled, or given up for its
// timeout, holds its thread until the system has an answer; one that waits for a
// thread is not begun. Lives as long as the program.
Resolver* SystemResolver();

// How many look-ups SystemResolver() makes at a time.
inline constexpr int kMaxLookups = 16;

// The addresses of `host`; without a thread if it is numeric, or empty. `resolver`
// null: the loop's, which is the system's unless the environment has another.
// Python: loop.getaddrinfo().
Coro<absl::StatusOr<Addresses>> GetAddrInfo(std::string host, uint16_t port,
                                            ResolveOptions options = ResolveOptions(),
                                            Resolver* resolver = nullptr);

// The name of the host and of the service at `address`, as far as they have one;
// without a thread if only numbers are wanted.
// Errors: INVALID_ARGUMENT if it is no IP address. NOT_FOUND if a name is required and
// there is none.
// Python: loop.getnameinfo().
Coro<absl::StatusOr<NameInfo>> GetNameInfo(SocketAddress address,
                                           NameOptions options = NameOptions(),
                                           Resolver* resolver = nullptr);

namespace internal {

// What the system says, as long as that may take; a message calls it `what`. Any thread.
// Of addresses it may be any number, of any kind, with repetitions.
absl::StatusOr<std::vector<SockAddr>> LookUpAddresses(const std::string& host,
                                                      const ResolveOptions& options,
                                                      const std::string& what);
absl::StatusOr<NameInfo> LookUpName(const SockAddr& address, const NameOptions& options,
                                    const std::string& what);

// Tells one process from another: the threads of a pool do not survive a fork().
int64_t ProcessNumber();

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_RESOLVER_H_
