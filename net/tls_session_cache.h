// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_SESSION_CACHE_H_
#define WEFT_NET_TLS_SESSION_CACHE_H_

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "weft/net/tls_openssl.h"

namespace weft::internal {

// The last session with each of the servers that a client has last talked to. A
// session of TLS 1.3 is given out once, so that nobody who looks on can tell by it that
// two connections are the same client's; an older one again and again.
//
// Threads: any.
class TlsSessionCache {
 public:
  explicit TlsSessionCache(size_t capacity) : capacity_(capacity) {}
  TlsSessionCache(const TlsSessionCache&) = delete;

  void Put(std::string_view server, OpenSslPtr<SSL_SESSION> session);
  // Null if there is none.
  OpenSslPtr<SSL_SESSION> Take(std::string_view server);

 private:
  using Entry = std::pair<std::string, OpenSslPtr<SSL_SESSION>>;

  const size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // The latest is in front.
  absl::flat_hash_map<std::string_view, std::list<Entry>::iterator> by_server_;
};

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_SESSION_CACHE_H_
