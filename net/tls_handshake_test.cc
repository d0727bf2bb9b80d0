// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What a handshake accepts, refuses and agrees upon.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/net/test_tls.h"
#include "weft/net/tls_context.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ClientCertificates = TlsServerOptions::ClientCertificates;

class TlsHandshakeTest : public TlsTest {
 protected:
  // How a client's handshake with a server that has `certificate` ends.
  Coro<absl::Status> Verify(TestCertificate certificate, std::string host) {
    const TlsContext server = TlsContext::ForServer(ServerTls(certificate)).value();
    const TlsContext client = ClientContext();
    TlsEnds ends = co_await Shake(client, server, For(std::move(host)));
    EXPECT_EQ(ends.client_status.ok(), ends.server_status.ok()) << ends.server_status;
    co_return ends.client_status;
  }
};

std::string Text(const absl::Status& status) { return std::string(status.message()); }

WEFT_TEST_F(TlsHandshakeTest, AgreesAndPassesBytesBothWays) {
  const TlsContext client = ClientContext(), server = ServerContext();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_TRUE(ends.client_status.ok()) << ends.client_status;
  EXPECT_TRUE(ends.server_status.ok()) << ends.server_status;
  co_await Pass("from the client", ends.client, ends.server);
  co_await Pass("from the server", ends.server, ends.client);
  const std::optional<TlsInfo> info = ends.client.writer.tls_info();
  EXPECT_EQ(info->version, "TLSv1.3");
  EXPECT_FALSE(info->cipher.empty());
  EXPECT_EQ(info->peer_subject, "CN=test");
  EXPECT_EQ(info->peer_issuer, "CN=test authority");
  EXPECT_THAT(info->peer_names, ElementsAre(kTestHost));
  EXPECT_THAT(info->peer_certificate_pem, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_EQ(ends.server.writer.tls_info()->server_name, kTestHost);
  EXPECT_EQ(ends.server.writer.tls_info()->peer_certificate_pem, "");
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsHandshakeTest, WorksInTheOlderVersionToo) {
  TlsClientOptions options = ClientTls();
  options.max_version = TlsVersion::kTls12;
  const TlsContext client = TlsContext::ForClient(options).value(), server = ServerContext();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_TRUE(ends.ok());
  EXPECT_EQ(ends.client.writer.tls_info()->version, "TLSv1.2");
  co_await Pass("hello", ends.client, ends.server);
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsHandshakeTest, RefusesAVersionBelowTheLeast) {
  TlsClientOptions old = ClientTls();
  old.max_version = TlsVersion::kTls12;
  TlsServerOptions modern = ServerTls();
  modern.min_version = TlsVersion::kTls13;
  const TlsContext client = TlsContext::ForClient(old).value();
  const TlsContext server = TlsContext::ForServer(modern).value();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_EQ(ends.client_status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(ends.client_status), HasSubstr("alert protocol version"));
  EXPECT_THAT(Text(ends.server_status), HasSubstr("unsupported protocol"));
}

// -- Whom a client believes.

WEFT_TEST_F(TlsHandshakeTest, ChecksTheHost) {
  const absl::Status wrong = co_await Verify(authority_.Issue("a.example"), "b.example");
  const absl::Status star = co_await Verify(authority_.Issue("*.b.example"), "a.b.example");
  const absl::Status deep = co_await Verify(authority_.Issue("*.b.example"), "x.a.b.example");
  const absl::Status dot = co_await Verify(authority_.Issue("a.example"), "a.example.");
  const absl::Status other_case = co_await Verify(authority_.Issue("a.example"), "A.Example");

  EXPECT_EQ(wrong.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Text(wrong),
              AllOf(HasSubstr("TLS handshake with 127.0.0.1:"), HasSubstr("(b.example)"),
                    HasSubstr("certificate verify failed: hostname mismatch, the certificate is "
                              "for a.example [SSL: CERTIFICATE_VERIFY_FAILED]")));
  EXPECT_TRUE(star.ok()) << star;
  EXPECT_FALSE(deep.ok());
  EXPECT_TRUE(dot.ok()) << dot;
  EXPECT_TRUE(other_case.ok()) << other_case;
}

WEFT_TEST_F(TlsHandshakeTest, ChecksAddresses) {
  const absl::Status v4 = co_await Verify(authority_.Issue("127.0.0.1"), "127.0.0.1");
  const absl::Status v6 = co_await Verify(authority_.Issue("fe80::1"), "fe80::1%1");
  const absl::Status other = co_await Verify(authority_.Issue("127.0.0.1"), "127.0.0.2");
  const absl::Status name = co_await Verify(authority_.Issue(kTestHost), "127.0.0.1");

  EXPECT_TRUE(v4.ok()) << v4;
  EXPECT_TRUE(v6.ok()) << v6;
  EXPECT_EQ(other.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Text(other), HasSubstr("IP address mismatch, the certificate is for 127.0.0.1"));
  EXPECT_EQ(name.code(), absl::StatusCode::kUnauthenticated);
}

WEFT_TEST_F(TlsHandshakeTest, TheCommonNameIsNoHost) {
  TestCertificateOptions options;
  options.common_name = kTestHost;

  const absl::Status status = co_await Verify(authority_.Issue(options), kTestHost);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Text(status), HasSubstr("the certificate is for no host"));
}

WEFT_TEST_F(TlsHandshakeTest, ChecksTheTime) {
  TestCertificateOptions old({kTestHost}), young({kTestHost});
  old.valid_from = -absl::Hours(2);
  old.valid_until = -absl::Hours(1);
  young.valid_from = absl::Hours(1);
  young.valid_until = absl::Hours(2);

  const absl::Status expired = co_await Verify(authority_.Issue(old), kTestHost);
  const absl::Status early = co_await Verify(authority_.Issue(young), kTestHost);

  EXPECT_EQ(expired.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Text(expired), HasSubstr("certificate has expired"));
  EXPECT_THAT(Text(early), HasSubstr("certificate is not yet valid"));
}

WEFT_TEST_F(TlsHandshakeTest, RefusesWhoIsSignedByNobodyItKnows) {
  const TestAuthority stranger("somebody else");
  TestCertificateOptions options({kTestHost});

  const absl::Status self_signed = co_await Verify(SelfSigned(options), kTestHost);
  const absl::Status unknown = co_await Verify(stranger.Issue(options), kTestHost);

  EXPECT_EQ(self_signed.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Text(self_signed), HasSubstr("self-signed certificate"));
  EXPECT_THAT(Text(unknown), HasSubstr("unable to get local issuer certificate"));
}

WEFT_TEST_F(TlsHandshakeTest, TheServerLearnsWhyItWasRefused) {
  const TestAuthority stranger("somebody else");
  const TlsContext server = TlsContext::ForServer(ServerTls(stranger.Issue(kTestHost))).value();
  const TlsContext client = ClientContext();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_EQ(ends.server_status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Text(ends.server_status), HasSubstr("alert unknown ca"));
}

WEFT_TEST_F(TlsHandshakeTest, BelievesASelfSignedCertificateThatItWasGiven) {
  const TestCertificate own = SelfSigned(TestCertificateOptions({kTestHost}));
  TlsClientOptions options;
  options.ca_pem = own.certificate;
  const TlsContext client = TlsContext::ForClient(options).value();
  const TlsContext server = TlsContext::ForServer(ServerTls(own)).value();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_TRUE(ends.ok()) << ends.client_status;
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsHandshakeTest, AChainLeadsToWhomItBelieves) {
  const TestAuthority below = authority_.IssueAuthority("in between");
  TestCertificate chain = below.Issue(kTestHost);
  const absl::Status cut = co_await Verify(chain, kTestHost);
  chain.certificate += below.certificate();
  const absl::Status whole = co_await Verify(chain, kTestHost);

  EXPECT_THAT(Text(cut), HasSubstr("unable to get local issuer certificate"));
  EXPECT_TRUE(whole.ok()) << whole;
}

WEFT_TEST_F(TlsHandshakeTest, BelievesAllIfItIsToldTo) {
  TlsClientOptions options;
  options.verify_peer = false;
  const TlsContext client = TlsContext::ForClient(options).value();
  const TlsContext server =
      TlsContext::ForServer(ServerTls(SelfSigned(TestCertificateOptions({"x"})))).value();
  TlsEnds ends = co_await Shake(client, server);

  EXPECT_TRUE(ends.ok()) << ends.client_status;
  co_await CloseBoth(ends);
}

WEFT_TEST_F(TlsHandshakeTest, BelievesAnyHostIfItIsToldTo) {
  TlsClientOptions options = ClientTls();
  options.check_hostname = false;
  const TlsContext client = TlsContext::ForClient(options).value();
  const TlsContext server = ServerContext();
  TlsEnds ends = co_await Shake(client, server, For(""));
  TlsEnds others = co_await Shake(client, server, For("other.example"));

  EXPECT_TRUE(ends.ok()) << ends.client_status;
  EXPECT_TRUE(others.ok()) << others.client_status;
  co_await CloseBoth(ends);
  co_await CloseBoth(others);
}

// -- Clients that show a certificate.

WEFT_TEST_F(TlsHandshakeTest, AClientCertificateIsCheckedToo) {
  const TestAuthority stranger("somebody else");
  TlsServerOptions asking = ServerTls();
  asking.ca_pem = authority_.certificate();
  TlsClientOptions known = ClientTls(), unknown = ClientTls();
  const TestCertificate good = authority_.Issue("client"), bad = stranger.Issue("client");
  known.certificate_pem = good.certificate;
  known.private_key_pem = good.key;
  unknown.certificate_pem = bad.certificate;
  unknown.private_key_pem = bad.key;
  for (const auto wanted : {ClientCertificates::kOptional, ClientCertificates::kRequired}) {
    for (const TlsVersion version : {TlsVersion::kTls12, TlsVersion::kTls13}) {
      asking.client_certificates = wanted;
      asking.max_version = version;
      const TlsContext server = TlsContext::ForServer(asking).value();

      TlsEnds with = co_await Shake(TlsContext::ForClient(known).value(), server);
      EXPECT_TRUE(with.ok()) << with.server_status;
      EXPECT_THAT(with.server.writer.tls_info()->peer_names, ElementsAre("client"));

      TlsEnds wrong = co_await Shake(TlsContext::ForClient(unknown).value(), server);
      EXPECT_EQ(wrong.server_status.code(), absl::StatusCode::kUnauthenticated);

      TlsEnds without = co_await Shake(ClientContext(), server);
      EXPECT_EQ(without.server_status.ok(), wanted == ClientCertificates::kOptional);
      if (wanted == ClientCertificates::kOptional) continue;
      EXPECT_EQ(without.server_status.code(), absl::StatusCode::kUnauthenticated);
      EXPECT_THAT(Text(without.server_status), HasSubstr("peer did not return a certificate"));
      // By TLS 1.3 the client has finished before the server has looked.
      absl::Status told = without.client_status;
      if (told.ok()) {
        absl::StatusOr<std::string> got = co_await without.client.reader.Read(1);
        told = got.status();
      }
      if (version == TlsVersion::kTls13) {
        EXPECT_EQ(told.code(), absl::StatusCode::kPermissionDenied) << told;
        EXPECT_THAT(Text(told), HasSubstr("alert certificate required"));
      } else {
        EXPECT_EQ(told.code(), absl::StatusCode::kFailedPrecondition) << told;
      }
    }
  }
}

// Else the reset that comes of closing takes the alert from it.
WEFT_TEST_F_IN_REAL_TIME(TlsHandshakeTest, AClientThatIsRefusedLearnsWhyAlsoIfItHasWritten) {
  TlsServerOptions asking = ServerTls();
  asking.ca_pem = authority_.certificate();
  asking.client_certificates = ClientCertificates::kRequired;
  const TlsContext server = TlsContext::ForServer(asking).value(), client = ClientContext();
  for (int i = 0; i < 20; ++i) {
    std::pair<Socket, Socket> pair = co_await TcpPair();
    Connection served = ToConnection(std::move(pair.second));
    Connection asked = ToConnection(std::move(pair.first));
    const auto serve = [](Connection connection, const TlsContext& tls) -> Coro<void> {
      absl::Status status = co_await connection.writer.StartTls(tls);
      EXPECT_FALSE(status.ok());
    };
    Task<void> serving = CreateTask(serve, std::move(served), std::cref(server));
    const StartTlsOptions options = For(kTestHost);
    auto handshake = asked.writer.StartTls(client, options);
    asked.writer.Write(std::string(100'000, 'x'));  // Waits for it.
    absl::Status status = co_await std::move(handshake);
    if (status.ok()) {
      asked.writer.Write("more");
      absl::StatusOr<std::string> got = co_await asked.reader.Read();
      status = got.status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    co_await serving;
  }
}

// -- ALPN.

WEFT_TEST_F(TlsHandshakeTest, TheServersOrderDecidesOnTheProtocol) {
  TlsClientOptions c = ClientTls();
  TlsServerOptions s = ServerTls();
  c.alpn_protocols = {"http/1.1", "h2"};
  s.alpn_protocols = {"h3", "h2", "http/1.1"};
  const TlsContext client = TlsContext::ForClient(c).value();
  TlsEnds ends = co_await Shake(client, TlsContext::ForServer(s).value());

  EXPECT_TRUE(ends.ok());
  EXPECT_EQ(ends.client.writer.tls_info()->alpn_protocol, "h2");
  EXPECT_EQ(ends.server.writer.tls_info()->alpn_protocol, "h2");
  co_await CloseBoth(ends);

  TlsEnds silent = co_await Shake(client, ServerContext());
  EXPECT_TRUE(silent.ok());
  EXPECT_EQ(silent.client.writer.tls_info()->alpn_protocol, "");
  co_await CloseBoth(silent);
}

WEFT_TEST_F(TlsHandshakeTest, NoProtocolInCommonIsAnError) {
  TlsClientOptions c = ClientTls();
  TlsServerOptions s = ServerTls();
  c.alpn_protocols = {"h2"};
  s.alpn_protocols = {"smtp"};
  TlsEnds ends = co_await Shake(TlsContext::ForClient(c).value(), TlsContext::ForServer(s).value());

  EXPECT_EQ(ends.client_status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(ends.client_status), HasSubstr("alert no application protocol"));
  EXPECT_THAT(Text(ends.server_status), HasSubstr("no application protocol"));
}

// -- Names.

WEFT_TEST_F(TlsHandshakeTest, ACertificateIsChosenByName) {
  std::vector<std::string> asked;
  const TlsContext one = TlsContext::ForServer(ServerTls("one.example")).value();
  TlsServerOptions strict = ServerTls("two.example");
  strict.ca_pem = authority_.certificate();
  strict.client_certificates = ClientCertificates::kRequired;
  strict.alpn_protocols = {"two"};
  const TlsContext two = TlsContext::ForServer(strict).value();
  TlsServerOptions options = ServerTls();
  options.choose_context = [&](std::string_view name) -> absl::StatusOr<const TlsContext*> {
    asked.emplace_back(name);
    if (name == "one.example") return &one;
    if (name == "two.example") return &two;
    if (name == "bad.example") return absl::NotFoundError("not served here");
    if (name == "throw.example") throw RuntimeError("out of order");
    return nullptr;
  };
  const TlsContext server = TlsContext::ForServer(options).value();
  TlsClientOptions client_options = ClientTls();
  client_options.alpn_protocols = {"two"};
  const TestCertificate own = authority_.Issue("client");
  client_options.certificate_pem = own.certificate;
  client_options.private_key_pem = own.key;
  const TlsContext client = TlsContext::ForClient(client_options).value();

  TlsEnds first = co_await Shake(client, server, For("one.example"));
  EXPECT_TRUE(first.ok()) << first.client_status;
  EXPECT_EQ(first.server.writer.tls_info()->peer_subject, "");
  TlsEnds second = co_await Shake(client, server, For("two.example"));
  EXPECT_TRUE(second.ok()) << second.client_status;
  EXPECT_EQ(second.server.writer.tls_info()->peer_subject, "CN=test");
  EXPECT_EQ(second.client.writer.tls_info()->alpn_protocol, "two");
  TlsEnds other = co_await Shake(client, server);
  EXPECT_TRUE(other.ok()) << other.client_status;
  TlsEnds refused = co_await Shake(client, server, For("bad.example"));
  EXPECT_THAT(Text(refused.client_status), HasSubstr("unrecognized name"));
  EXPECT_THAT(Text(refused.server_status), HasSubstr("\"bad.example\": not served here"));
  TlsEnds thrown = co_await Shake(client, server, For("throw.example"));
  EXPECT_THAT(Text(thrown.client_status), HasSubstr("internal error"));
  EXPECT_THAT(Text(thrown.server_status), HasSubstr("out of order"));
  EXPECT_THAT(asked,
              ElementsAre("one.example", "two.example", kTestHost, "bad.example", "throw.example"));
  co_await CloseBoth(first);
  co_await CloseBoth(second);
  co_await CloseBoth(other);
}

WEFT_TEST_F(TlsHandshakeTest, AddressesAreNotToldAsNames) {
  TlsEnds ends = co_await Shake(
      ClientContext(), TlsContext::ForServer(ServerTls("127.0.0.1")).value(), For("127.0.0.1"));

  EXPECT_TRUE(ends.ok()) << ends.client_status;
  EXPECT_EQ(ends.server.writer.tls_info()->server_name, "");
  co_await CloseBoth(ends);
}

// -- Sessions.

WEFT_TEST_F(TlsHandshakeTest, SessionsAreTakenUpAgain) {
  for (const TlsVersion version : {TlsVersion::kTls12, TlsVersion::kTls13}) {
    TlsServerOptions options = ServerTls();
    options.max_version = version;
    const TlsContext client = ClientContext(), server = TlsContext::ForServer(options).value();
    for (int i = 0; i < 4; ++i) {
      std::pair<Socket, Socket> pair = Socket::Pair().value();
      TlsEnds ends = co_await Shake(std::move(pair), client, server);
      EXPECT_TRUE(ends.ok()) << ends.client_status;
      EXPECT_EQ(ends.client.writer.tls_info()->is_resumed, i > 0);
      EXPECT_EQ(ends.server.writer.tls_info()->is_resumed, i > 0);
      EXPECT_EQ(ends.client.writer.tls_info()->peer_subject, "CN=test");
      // A ticket comes after the handshake, with what is read next.
      co_await Pass("hello", ends.server, ends.client);
      co_await CloseBoth(ends);
    }
  }
}

WEFT_TEST_F(TlsHandshakeTest, SessionsAreNotTakenUpWithAnotherHost) {
  TestCertificateOptions both({"a.example", "b.example"});
  const TlsContext client = ClientContext();
  const TlsContext server = TlsContext::ForServer(ServerTls(authority_.Issue(both))).value();
  for (const char* const host : {"a.example", "b.example"}) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    TlsEnds ends = co_await Shake(std::move(pair), client, server, For(host));
    EXPECT_TRUE(ends.ok()) << ends.client_status;
    EXPECT_FALSE(ends.client.writer.tls_info()->is_resumed);
    co_await Pass("hello", ends.server, ends.client);
    co_await CloseBoth(ends);
  }
}

WEFT_TEST_F(TlsHandshakeTest, ThereAreNoSessionsIfEitherSideWantsNone) {
  TlsClientOptions forgetful = ClientTls();
  forgetful.session_cache_size = 0;
  TlsServerOptions stingy = ServerTls();
  stingy.session_tickets = false;
  const TlsContext server = ServerContext(), client = ClientContext();
  const TlsContext other_client = TlsContext::ForClient(forgetful).value();
  const TlsContext other_server = TlsContext::ForServer(stingy).value();
  for (int i = 0; i < 2; ++i) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    TlsEnds ends = co_await Shake(std::move(pair), other_client, server);
    EXPECT_FALSE(ends.client.writer.tls_info()->is_resumed);
    co_await Pass("hello", ends.server, ends.client);
    co_await CloseBoth(ends);
    pair = Socket::Pair().value();
    TlsEnds others = co_await Shake(std::move(pair), client, other_server);
    EXPECT_FALSE(others.client.writer.tls_info()->is_resumed);
    co_await Pass("hello", others.server, others.client);
    co_await CloseBoth(others);
  }
}

WEFT_TEST_F(TlsHandshakeTest, ASessionTheServerHasForgottenIsNoError) {
  const TlsContext client = ClientContext();
  for (int i = 0; i < 2; ++i) {
    std::pair<Socket, Socket> pair = Socket::Pair().value();
    const TlsContext server = ServerContext();  // With keys of its own.
    TlsEnds ends = co_await Shake(std::move(pair), client, server);
    EXPECT_TRUE(ends.ok()) << ends.client_status;
    EXPECT_FALSE(ends.client.writer.tls_info()->is_resumed);
    co_await Pass("hello", ends.server, ends.client);
    co_await CloseBoth(ends);
  }
}

// -- Peers that do something else.

WEFT_TEST_F(TlsHandshakeTest, APeerThatDoesNotSpeakTls) {
  StreamPair pair;
  pair.b.writer.Write("HTTP/1.1 400 Bad Request\r\n\r\n");
  const TlsContext client = ClientContext();
  const StartTlsOptions options = For(kTestHost);

  const absl::Status status = co_await pair.a.writer.StartTls(client, options);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("wrong version number [SSL: WRONG_VERSION_NUMBER]"));
  pair.a.writer.Close();
}

WEFT_TEST_F(TlsHandshakeTest, APeerThatGoesAway) {
  StreamPair pair(co_await TcpPair());
  pair.b.writer.Close();
  const TlsContext client = ClientContext();
  const StartTlsOptions options = For(kTestHost);

  const absl::Status status = co_await pair.a.writer.StartTls(client, options);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr("TLS handshake with 127.0.0.1:"));
  const absl::Status drained = co_await pair.a.writer.Drain();
  EXPECT_FALSE(drained.ok());
}

WEFT_TEST_F(TlsHandshakeTest, APeerThatSaysNothing) {
  StreamPair pair;
  const TlsContext client = ClientContext();
  StartTlsOptions options = For(kTestHost);
  options.handshake_timeout = absl::Seconds(7);

  const absl::Status status = co_await pair.a.writer.StartTls(client, options);

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(status), HasSubstr("TLS handshake"));
  EXPECT_THAT(Text(status), HasSubstr("timed out after 7s"));
}

WEFT_TEST_F(TlsHandshakeTest, ACancelledHandshakeClosesTheConnection) {
  StreamPair pair;
  const TlsContext client = ClientContext();
  const auto shake = [](Connection& connection, const TlsContext& tls) -> Coro<void> {
    const StartTlsOptions options = For(kTestHost);
    absl::Status status = co_await connection.writer.StartTls(tls, options);
  };
  Task<void> task = CreateTask(shake, std::ref(pair.a), std::cref(client));
  co_await Rounds(3);
  task.Cancel();
  Outcome<void> outcome = co_await NoThrow(task);

  EXPECT_TRUE(outcome.cancelled());
  EXPECT_TRUE(pair.a.writer.IsClosing());
  absl::StatusOr<std::string> hello = co_await pair.b.reader.Read();
  EXPECT_TRUE(hello.ok());
  EXPECT_FALSE(hello->empty());
}

// Wherever it is, nothing hangs, nothing leaks.
WEFT_TEST_F(TlsHandshakeTest, MayBeCancelledAtEveryRound) {
  const TlsContext client = ClientContext(), server = ServerContext();
  int finished = 0;
  for (int rounds = 0; rounds < 30; ++rounds) {
    std::pair<Socket, Socket> pair = co_await TcpPair();
    Task<TlsEnds> task = CreateTask(Shake(std::move(pair), client, server));
    co_await Rounds(rounds);
    task.Cancel();
    Outcome<TlsEnds> outcome = co_await NoThrow(std::move(task));
    if (outcome.has_value()) ++finished;
  }
  EXPECT_GT(finished, 0);
  EXPECT_LT(finished, 30);
}

WEFT_TEST_F(TlsHandshakeTest, ClosedOnThisSideMeanwhile) {
  StreamPair pair;
  const TlsContext client = ClientContext();
  Task<absl::Status> task = CreateTask(SecureEnd(pair.a, client, For(kTestHost)));
  co_await Rounds(2);
  pair.a.writer.Close();
  const absl::Status status = co_await std::move(task);

  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

// -- StartTls().

WEFT_TEST_F(TlsHandshakeTest, TlsBeginsOnAConnectionThatThereIs) {
  StreamPair pair;
  const TlsContext client = ClientContext(), server = ServerContext();
  const auto serve = [](Connection& c, const TlsContext& tls) -> Coro<void> {
    absl::StatusOr<std::string> line = co_await c.reader.ReadLine();
    EXPECT_EQ(line.value(), "STARTTLS\n");
    c.writer.Write("go ahead\n");
    absl::Status status = co_await c.writer.StartTls(tls);
    EXPECT_TRUE(status.ok()) << status;
    line = co_await c.reader.ReadLine();
    c.writer.Write("by TLS: " + line.value());
  };
  Task<void> serving = CreateTask(serve, std::ref(pair.b), std::cref(server));
  EXPECT_FALSE(pair.a.writer.tls_info().has_value());
  pair.a.writer.Write("STARTTLS\n");
  absl::StatusOr<std::string> line = co_await pair.a.reader.ReadLine();
  EXPECT_EQ(line.value(), "go ahead\n");
  const StartTlsOptions options = For(kTestHost);
  absl::Status status = co_await pair.a.writer.StartTls(client, options);
  EXPECT_TRUE(status.ok()) << status;
  pair.a.writer.Write("hello\n");
  line = co_await pair.a.reader.ReadLine();
  EXPECT_EQ(line.value(), "by TLS: hello\n");
  co_await serving;
  pair.a.writer.Close();
  pair.b.writer.Close();
}

// Somebody in between appends a command to the plain one, to have it taken for one
// that came by TLS: CVE-2011-0411 and its kin.
WEFT_TEST_F(TlsHandshakeTest, RefusesPlainTextThatIsStillToBeRead) {
  StreamPair pair;
  const TlsContext server = ServerContext();
  pair.a.writer.Write("STARTTLS\nDELETE ALL\n");
  absl::StatusOr<std::string> line = co_await pair.b.reader.ReadLine();
  EXPECT_EQ(line.value(), "STARTTLS\n");

  const absl::Status status = co_await pair.b.writer.StartTls(server);

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("11 bytes that came without TLS are still to be read"));
  EXPECT_FALSE(pair.b.writer.tls_info().has_value());
}

WEFT_TEST_F(TlsHandshakeTest, MisuseIsNamed) {
  const TlsContext client = ClientContext(), server = ServerContext(), none;
  StreamPair pair;
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(none)), ValueError);
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(client)), ValueError);
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(client, For(".example"))), ValueError);
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(client, For("b\xc3\xbc.example"))),
               ValueError);
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(server, For(kTestHost))), ValueError);
  StartTlsOptions hasty;
  hasty.handshake_timeout = absl::ZeroDuration();
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(server, hasty)), ValueError);
  EXPECT_FALSE(pair.a.writer.IsClosing());

  Task<absl::StatusOr<std::string>> reading = CreateTask(pair.a.reader.Read(1));
  co_await Rounds(1);
  EXPECT_THROW(static_cast<void>(pair.a.writer.StartTls(server)), RuntimeError);
  reading.Cancel();
  co_await NoThrow(std::move(reading));

  TlsEnds ends = co_await Shake(client, server);
  EXPECT_THROW(static_cast<void>(ends.client.writer.StartTls(server)), RuntimeError);
  pair.b.writer.WriteEof();
  EXPECT_THROW(static_cast<void>(pair.b.writer.StartTls(server)), RuntimeError);
  co_await CloseBoth(ends);
}

// -- Clients and servers.

WEFT_TEST_F_IN_REAL_TIME(TlsHandshakeTest, OpenConnectionAndStartServer) {
  std::vector<absl::Status> errors;
  TlsContext server_tls = TlsContext::ForServer(ServerTls("127.0.0.1")).value();
  const TlsContext client_tls = ClientContext();
  ServerOptions serving;
  serving.tls = &server_tls;
  serving.on_handshake_error = [&errors](const absl::Status& error) { errors.push_back(error); };
  const auto greet = [](StreamReader reader, StreamWriter writer) -> Coro<void> {
    absl::StatusOr<std::string> name = co_await reader.ReadLine();
    writer.Write("hello, " + name.value());
  };
  absl::StatusOr<Server> server = co_await StartServer(greet, "127.0.0.1", 0, serving);
  server_tls = TlsContext();  // It has what it needs.
  ConnectOptions options;
  options.tls = &client_tls;

  absl::StatusOr<Connection> connection =
      co_await OpenConnection("127.0.0.1", server->port(), options);
  EXPECT_TRUE(connection.ok()) << connection.status();
  connection->writer.Write("you\n");
  absl::StatusOr<std::string> answer = co_await connection->reader.Read();
  EXPECT_EQ(answer.value(), "hello, you\n");
  connection->writer.Close();

  options.server_hostname = "other.example";
  absl::StatusOr<Connection> other = co_await OpenConnection(server->addresses().front(), options);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kUnauthenticated);

  absl::StatusOr<Connection> plain = co_await OpenConnection("127.0.0.1", server->port());
  plain->writer.Write("GET / HTTP/1.0\r\n\r\n");
  absl::StatusOr<std::string> alert = co_await plain->reader.Read();
  plain->writer.Close();
  server->Close();
  co_await server->WaitClosed();
  EXPECT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].code(), absl::StatusCode::kPermissionDenied) << errors[0];
  EXPECT_THAT(Text(errors[1]), AllOf(HasSubstr("127.0.0.1:"), HasSubstr("http request")));
}

WEFT_TEST_F_IN_REAL_TIME(TlsHandshakeTest, ATimeoutCoversTheHandshake) {
  const TlsContext client = ClientContext();
  const auto keep = [](StreamReader reader, StreamWriter) -> Coro<void> {
    absl::StatusOr<std::string> all = co_await reader.Read();
  };
  absl::StatusOr<Server> server = co_await StartServer(keep, "127.0.0.1", 0);
  ConnectOptions options;
  options.tls = &client;
  options.timeout = absl::Milliseconds(50);
  absl::StatusOr<Connection> late = co_await OpenConnection("127.0.0.1", server->port(), options);
  options.timeout = absl::InfiniteDuration();
  options.tls_handshake_timeout = absl::Milliseconds(50);
  absl::StatusOr<Connection> later = co_await OpenConnection("127.0.0.1", server->port(), options);

  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(later.status().code(), absl::StatusCode::kDeadlineExceeded);
  server->Close();
  co_await server->WaitClosed();
}

WEFT_TEST_F_IN_REAL_TIME(TlsHandshakeTest, AServerDoesNotWaitForEver) {
  std::vector<absl::Status> errors;
  const TlsContext tls = ServerContext();
  ServerOptions serving;
  serving.tls = &tls;
  serving.tls_handshake_timeout = absl::Milliseconds(50);
  serving.on_handshake_error = [&errors](const absl::Status& error) { errors.push_back(error); };
  const auto never = [](StreamReader, StreamWriter) -> Coro<void> {
    ADD_FAILURE() << "called before the handshake was done";
    co_return;
  };
  absl::StatusOr<Server> server = co_await StartServer(never, "127.0.0.1", 0, serving);
  absl::StatusOr<Connection> mute = co_await OpenConnection("127.0.0.1", server->port());
  absl::StatusOr<std::string> end = co_await mute->reader.Read();

  EXPECT_EQ(end.value_or("?"), "");
  EXPECT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code(), absl::StatusCode::kDeadlineExceeded);
  server->Close();
  co_await server->WaitClosed();
}

WEFT_TEST_F(TlsHandshakeTest, OptionsThatDoNotFit) {
  const TlsContext client = ClientContext(), server = ServerContext();
  ConnectOptions options;
  options.server_hostname = kTestHost;
  EXPECT_THROW(static_cast<void>(OpenConnection("127.0.0.1", 1, options)), ValueError);
  options.tls = &server;
  EXPECT_THROW(static_cast<void>(OpenConnection("127.0.0.1", 1, options)), ValueError);
  options = ConnectOptions();
  options.tls = &client;
  Outcome<absl::StatusOr<Connection>> path =
      co_await NoThrow(OpenUnixConnection("/nowhere", options));
  EXPECT_THROW(std::rethrow_exception(path.exception()), ValueError);
  ServerOptions serving;
  serving.tls = &client;
  const auto handler = [](StreamReader, StreamWriter) -> Coro<void> { co_return; };
  Outcome<absl::StatusOr<Server>> started =
      co_await NoThrow(StartServer(handler, "127.0.0.1", 0, serving));
  EXPECT_THROW(std::rethrow_exception(started.exception()), ValueError);
}

}  // namespace
}  // namespace weft
