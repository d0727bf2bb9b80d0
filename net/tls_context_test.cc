// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a context is made of, and what it refuses to be made of.

#include "weft/net/tls_context.h"

#include <stdlib.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/task.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/test_tls.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsContextTest : public TlsTest {
 protected:
  // A file of the test's own.
  static std::string File(const std::string& name, const std::string& content) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
    std::ofstream(path) << content;
    return path;
  }
  static std::string ServerError(const TlsServerOptions& options) {
    return std::string(TlsContext::ForServer(options).status().message());
  }
  static std::string ClientError(const TlsClientOptions& options) {
    return std::string(TlsContext::ForClient(options).status().message());
  }
};

WEFT_TEST_F(TlsContextTest, FilesWillDo) {
  const TestCertificate certificate = authority_.Issue(kTestHost);
  TlsServerOptions apart, together;
  apart.certificate_file = File("certificate.pem", certificate.certificate);
  apart.private_key_file = File("key.pem", certificate.key);
  together.certificate_file = File("both.pem", certificate.key + certificate.certificate);
  TlsClientOptions believing;
  believing.ca_file = File("ca.pem", authority_.certificate());
  const TlsContext client = TlsContext::ForClient(believing).value();
  for (const TlsServerOptions* options : {&apart, &together}) {
    const TlsContext server = TlsContext::ForServer(*options).value();
    TlsEnds ends = co_await Shake(client, server);
    EXPECT_TRUE(ends.ok()) << ends.client_status;
    co_await CloseBoth(ends);
  }
}

TEST_F(TlsContextTest, FilesThatAreNotThere) {
  TlsServerOptions options = ServerTls();
  options.certificate_pem.clear();
  options.certificate_file = "/nowhere/certificate.pem";
  const absl::Status missing = TlsContext::ForServer(options).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrnoOf(missing), ENOENT);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("certificate_file \"/nowhere/certificate.pem\""));

  options = ServerTls();
  options.private_key_pem.clear();
  options.private_key_file = "/tmp";
  EXPECT_THAT(ServerError(options), AllOf(HasSubstr("private_key_file"), HasSubstr("EISDIR")));

  TlsClientOptions client;
  client.ca_file = "/nowhere/ca.pem";
  EXPECT_THAT(ClientError(client), HasSubstr("ca_file \"/nowhere/ca.pem\""));
}

TEST_F(TlsContextTest, TextThatIsNoCertificateOrKey) {
  TlsServerOptions options = ServerTls();
  options.certificate_pem = "hello";
  EXPECT_THAT(ServerError(options), HasSubstr("certificate_pem: there is no certificate in it"));

  options = ServerTls();
  options.private_key_pem = "hello";
  EXPECT_THAT(ServerError(options), HasSubstr("private_key_pem"));

  options = ServerTls();
  options.certificate_pem.resize(options.certificate_pem.size() / 2);
  EXPECT_THAT(ServerError(options), HasSubstr("certificate_pem"));

  options = ServerTls();
  options.certificate_pem =
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + options.certificate_pem;
  EXPECT_EQ(TlsContext::ForServer(options).status().code(), absl::StatusCode::kInvalidArgument);

  TlsClientOptions client;
  client.ca_pem = "hello";
  EXPECT_THAT(ClientError(client), HasSubstr("ca_pem: there is no certificate in it"));
}

TEST_F(TlsContextTest, AKeyThatIsNotTheCertificates) {
  TlsServerOptions options = ServerTls();
  options.private_key_pem = authority_.Issue(kTestHost).key;

  EXPECT_THAT(ServerError(options), HasSubstr("the key is not the certificate's"));
}

// The default of OpenSSL is to ask the terminal.
TEST_F(TlsContextTest, AnEncryptedKeyNeedsItsPassword) {
  TlsServerOptions options = ServerTls();
  options.private_key_pem = EncryptKey(options.private_key_pem, "secret");
  EXPECT_THAT(ServerError(options), HasSubstr("there is no private_key_password"));
  options.private_key_password = "guess";
  EXPECT_THAT(ServerError(options), HasSubstr("by another password"));
  options.private_key_password = "secret";
  EXPECT_TRUE(TlsContext::ForServer(options).ok());
}

TEST_F(TlsContextTest, UnknownCiphers) {
  TlsServerOptions options = ServerTls();
  options.ciphers = "ROT13";
  EXPECT_THAT(ServerError(options), HasSubstr("ciphers \"ROT13\""));
  options = ServerTls();
  options.cipher_suites = "TLS_ROT13";
  EXPECT_THAT(ServerError(options), HasSubstr("cipher_suites \"TLS_ROT13\""));
}

WEFT_TEST_F(TlsContextTest, CiphersAreThoseThatAreGiven) {
  TlsServerOptions options = ServerTls();
  options.cipher_suites = "TLS_CHACHA20_POLY1305_SHA256";
  options.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
  const TlsContext server = TlsContext::ForServer(options).value();
  TlsEnds ends = co_await Shake(ClientContext(), server);
  EXPECT_EQ(ends.client.writer.tls_info()->cipher, "TLS_CHACHA20_POLY1305_SHA256");
  co_await CloseBoth(ends);

  TlsClientOptions old = ClientTls();
  old.max_version = TlsVersion::kTls12;
  TlsEnds older = co_await Shake(TlsContext::ForClient(old).value(), server);
  EXPECT_EQ(older.client.writer.tls_info()->cipher, "ECDHE-ECDSA-AES256-GCM-SHA384");
  co_await CloseBoth(older);
}

TEST_F(TlsContextTest, OptionsThatContradictEachOther) {
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(TlsServerOptions())), ValueError);

  TlsServerOptions both = ServerTls();
  both.certificate_file = "/tmp/x";
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(both)), ValueError);

  TlsServerOptions nobody = ServerTls();
  nobody.client_certificates = TlsServerOptions::ClientCertificates::kRequired;
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(nobody)), ValueError);

  TlsServerOptions nothing = ServerTls();
  nothing.ca_pem = authority_.certificate();
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(nothing)), ValueError);

  TlsServerOptions versions = ServerTls();
  versions.min_version = TlsVersion::kTls13;
  versions.max_version = TlsVersion::kTls12;
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(versions)), ValueError);

  TlsServerOptions protocols = ServerTls();
  protocols.alpn_protocols = {"h2", ""};
  EXPECT_THROW(static_cast<void>(TlsContext::ForServer(protocols)), ValueError);

  TlsClientOptions key = ClientTls();
  key.private_key_pem = authority_.Issue(kTestHost).key;
  EXPECT_THROW(static_cast<void>(TlsContext::ForClient(key)), ValueError);

  TlsClientOptions unverified = ClientTls();
  unverified.verify_peer = false;
  EXPECT_THROW(static_cast<void>(TlsContext::ForClient(unverified)), ValueError);
}

// SSL_CERT_FILE and SSL_CERT_DIR as OpenSSL has them.
WEFT_TEST_F(TlsContextTest, TheSystemSaysWhomToBelieve) {
  const std::string file = File("system.pem", authority_.certificate());
  ::setenv("SSL_CERT_FILE", file.c_str(), 1);
  absl::StatusOr<TlsContext> client = TlsContext::ForClient();
  EXPECT_TRUE(client.ok()) << client.status();
  TlsEnds ends = co_await Shake(*client, ServerContext());
  EXPECT_TRUE(ends.ok()) << ends.client_status;
  co_await CloseBoth(ends);

  ::setenv("SSL_CERT_FILE", "/nowhere.pem", 1);
  const absl::Status none = TlsContext::ForClient().status();
  EXPECT_EQ(none.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(none.message()), HasSubstr("SSL_CERT_FILE"));

  ::setenv("SSL_CERT_DIR", absl::StrCat("/nowhere:", ::testing::TempDir()).c_str(), 1);
  EXPECT_TRUE(TlsContext::ForClient().ok());
  ::unsetenv("SSL_CERT_FILE");
  ::unsetenv("SSL_CERT_DIR");
}

TEST_F(TlsContextTest, IsNoneUntilItIsMade) {
  TlsContext context;
  EXPECT_FALSE(context);
  context = ServerContext();
  EXPECT_TRUE(context);
}

// The handshakes of several loops at once, on threads of their own, with sessions that
// go from one to the other.
TEST_F(TlsContextTest, ServesSeveralLoopsAtOnce) {
  const TlsContext client = ClientContext(), server = ServerContext();
  const auto main = [&client, &server]() -> Coro<void> {
    for (int i = 0; i < 20; ++i) {
      std::pair<Socket, Socket> pair = Socket::Pair().value();
      TlsEnds ends = co_await Shake(std::move(pair), client, server);
      EXPECT_TRUE(ends.ok()) << ends.client_status << ends.server_status;
      co_await Pass("hello", ends.server, ends.client);
      co_await CloseBoth(ends);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&main] { weft::Run(main()); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace weft
