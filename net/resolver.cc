// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/resolver.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/executor/thread_pool.h"
#include "weft/loop/event_loop.h"

namespace weft {
namespace {

using Family = SocketAddress::Family;

// The threads of the look-ups. Shared by all loops, for what they wait for is outside
// of all of them; and never destroyed, for a look-up may take longer than the end of
// the program would want to wait.
ThreadPool& LookupPool() {
  static std::mutex mutex;
  static ThreadPool* pool = nullptr;
  static int64_t owner = 0;
  const std::lock_guard<std::mutex> lock(mutex);
  if (pool == nullptr || owner != internal::ProcessNumber()) {
    ThreadPoolOptions options;
    options.max_threads = kMaxLookups;
    options.thread_name_prefix = "weft_names";
    pool = new ThreadPool(options);  // A parent's is left where it is.
    owner = internal::ProcessNumber();
  }
  return *pool;
}

std::string Quoted(const std::string& host) {
  return absl::StrCat("\"", absl::CHexEscape(host), "\"");
}

absl::StatusOr<Addresses> ResolveBlocking(const std::string& host, uint16_t port,
                                          const ResolveOptions& options) {
  std::vector<SockAddr> found;
  // The system would see a name that ends there.
  if (host.find('\0') == std::string::npos) {
    absl::StatusOr<std::vector<SockAddr>> said =
        internal::LookUpAddresses(host, options, Quoted(host));
    if (!said.ok()) return said.status();
    found = *std::move(said);
  }
  Addresses addresses;
  for (const SockAddr& native : found) {
    SocketAddress address = SocketAddress::FromNative(native);
    if (!address.is_ip()) continue;
    address.set_port(port);
    if (std::find(addresses.begin(), addresses.end(), address) == addresses.end()) {
      addresses.push_back(std::move(address));
    }
  }
  if (!addresses.empty()) return addresses;
  return absl::NotFoundError(absl::StrCat("resolve ", Quoted(host), ": Name or service not known"));
}

absl::StatusOr<NameInfo> FindNameBlocking(const SocketAddress& address,
                                          const NameOptions& options) {
  return internal::LookUpName(address.ToNative(), options, address.ToString());
}

class SystemResolverImpl final : public Resolver {
 public:
  Coro<absl::StatusOr<Addresses>> Resolve(std::string host, uint16_t port,
                                          ResolveOptions options) override {
    const auto job = [host, port, options] { return ResolveBlocking(host, port, options); };
    Future<absl::StatusOr<Addresses>> found = GetRunningLoop().RunInExecutor(&LookupPool(), job);
    co_return co_await std::move(found);
  }

  Coro<absl::StatusOr<NameInfo>> FindName(SocketAddress address, NameOptions options) override {
    const auto job = [address, options] { return FindNameBlocking(address, options); };
    Future<absl::StatusOr<NameInfo>> found = GetRunningLoop().RunInExecutor(&LookupPool(), job);
    co_return co_await std::move(found);
  }
};

// What needs no look-up; none if this does.
std::optional<absl::StatusOr<Addresses>> FindKnown(const std::string& host, uint16_t port,
                                                   const ResolveOptions& options) {
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
  if (!numeric.ok()) return std::nullopt;
  if (!wanted(numeric->family())) {
    return absl::NotFoundError(
        absl::StrCat("resolve \"", host, "\": it is an address of another family"));
  }
  known.push_back(*std::move(numeric));
  return known;
}

// `lookup`, for as long as that.
template <class T>
Coro<absl::StatusOr<T>> InTime(Coro<absl::StatusOr<T>> lookup, absl::Duration timeout,
                               std::string what) {
  if (timeout == absl::InfiniteDuration()) co_return co_await std::move(lookup);
  Outcome<absl::StatusOr<T>> outcome = co_await NoThrow(WithTimeout(timeout, std::move(lookup)));
  if (!outcome.has_exception() || outcome.cancelled()) co_return std::move(outcome).value();
  try {
    std::rethrow_exception(outcome.exception());
  } catch (const TimeoutError&) {
    co_return absl::DeadlineExceededError(
        absl::StrCat("resolve ", what, ": timed out after ", absl::FormatDuration(timeout)));
  }
}

Resolver* Choose(Resolver* resolver) {
  if (resolver == nullptr) resolver = GetRunningLoop().resolver();
  return resolver != nullptr ? resolver : SystemResolver();
}

}  // namespace

Coro<absl::StatusOr<NameInfo>> Resolver::FindName(SocketAddress address, NameOptions) {
  co_return absl::UnimplementedError(
      absl::StrCat("resolve ", address.ToString(), ": this resolver finds no names"));
}

Resolver* SystemResolver() {
  static SystemResolverImpl resolver;
  return &resolver;
}

Coro<absl::StatusOr<Addresses>> GetAddrInfo(std::string host, uint16_t port, ResolveOptions options,
                                            Resolver* resolver) {
  std::optional<absl::StatusOr<Addresses>> known = FindKnown(host, port, options);
  if (known.has_value()) co_return *std::move(known);
  std::string what = Quoted(host);
  Coro<absl::StatusOr<Addresses>> lookup =
      Choose(resolver)->Resolve(std::move(host), port, options);
  co_return co_await InTime(std::move(lookup), options.timeout, std::move(what));
}

Coro<absl::StatusOr<NameInfo>> GetNameInfo(SocketAddress address, NameOptions options,
                                           Resolver* resolver) {
  if (!address.is_ip()) {
    co_return absl::InvalidArgumentError(
        absl::StrCat("resolve ", address.ToString(), ": it is no IP address"));
  }
  if (options.numeric_host && options.numeric_service) {
    if (!options.name_required) co_return NameInfo(address.host(), absl::StrCat(address.port()));
    co_return absl::NotFoundError(
        absl::StrCat("resolve ", address.ToString(), ": a number is no name"));
  }
  std::string what = address.ToString();
  Coro<absl::StatusOr<NameInfo>> lookup = Choose(resolver)->FindName(std::move(address), options);
  co_return co_await InTime(std::move(lookup), options.timeout, std::move(what));
}

}  // namespace weft
