// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_session_cache.h"

#include <utility>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

OpenSslPtr<SSL_SESSION> Session(int version) {
  OpenSslPtr<SSL_SESSION> session(SSL_SESSION_new());
  SSL_SESSION_set_protocol_version(session.get(), version);
  const unsigned char id[] = "x";  // What has none cannot be taken up.
  SSL_SESSION_set1_id(session.get(), id, 1);
  return session;
}

TEST(TlsSessionCacheTest, GivesANewOneOutOnce) {
  TlsSessionCache cache(10);
  OpenSslPtr<SSL_SESSION> session = Session(TLS1_3_VERSION);
  SSL_SESSION* const same = session.get();
  cache.Put("a", std::move(session));

  EXPECT_EQ(cache.Take("b"), nullptr);
  EXPECT_EQ(cache.Take("a").get(), same);
  EXPECT_EQ(cache.Take("a"), nullptr);
}

TEST(TlsSessionCacheTest, GivesAnOldOneOutAgain) {
  TlsSessionCache cache(10);
  cache.Put("a", Session(TLS1_2_VERSION));

  EXPECT_NE(cache.Take("a"), nullptr);
  EXPECT_NE(cache.Take("a"), nullptr);
}

TEST(TlsSessionCacheTest, KeepsTheLatest) {
  TlsSessionCache cache(2);
  cache.Put("a", Session(TLS1_2_VERSION));
  OpenSslPtr<SSL_SESSION> second = Session(TLS1_2_VERSION);
  SSL_SESSION* const same = second.get();
  cache.Put("b", Session(TLS1_2_VERSION));
  cache.Put("a", std::move(second));
  cache.Put("c", Session(TLS1_2_VERSION));

  EXPECT_EQ(cache.Take("a").get(), same);
  EXPECT_EQ(cache.Take("b"), nullptr);
  EXPECT_NE(cache.Take("c"), nullptr);
}

TEST(TlsSessionCacheTest, KeepsNoneIfItMayNot) {
  TlsSessionCache cache(0);
  cache.Put("a", Session(TLS1_2_VERSION));

  EXPECT_EQ(cache.Take("a"), nullptr);
}

}  // namespace
}  // namespace weft::internal
