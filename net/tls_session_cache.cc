// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_session_cache.h"

namespace weft::internal {

void TlsSessionCache::Put(std::string_view server, OpenSslPtr<SSL_SESSION> session) {
  if (capacity_ == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = by_server_.find(server);
  if (found != by_server_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    entries_.front().second = std::move(session);
    return;
  }
  if (entries_.size() == capacity_) {
    by_server_.erase(entries_.back().first);
    entries_.pop_back();
  }
  entries_.emplace_front(std::string(server), std::move(session));
  by_server_.emplace(entries_.front().first, entries_.begin());
}

OpenSslPtr<SSL_SESSION> TlsSessionCache::Take(std::string_view server) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto found = by_server_.find(server);
  if (found == by_server_.end()) return nullptr;
  const std::list<Entry>::iterator entry = found->second;
  SSL_SESSION* const session = entry->second.get();
  if (SSL_SESSION_is_resumable(session) == 1 &&
      SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION) {
    SSL_SESSION_up_ref(session);
    return OpenSslPtr<SSL_SESSION>(session);
  }
  OpenSslPtr<SSL_SESSION> taken = std::move(entry->second);
  by_server_.erase(found);
  entries_.erase(entry);
  if (SSL_SESSION_is_resumable(taken.get()) != 1) return nullptr;
  return taken;
}

}  // namespace weft::internal
