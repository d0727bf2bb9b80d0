// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_CONTEXT_H_
#define WEFT_NET_TLS_CONTEXT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "weft/net/tls_provider.h"

namespace weft {

enum class TlsVersion { kTls12, kTls13 };

// What clients and servers have in common. What is in files is read when the context
// is made; PEM is text.
struct TlsOptions {
  TlsOptions() {}

  // The certificate that is shown to the peer, followed by those that lead from it to
  // one that the peer knows; and its private key, which may stand with it.
  std::string certificate_file;
  std::string certificate_pem;
  std::string private_key_file;
  std::string private_key_pem;
  std::string private_key_password;

  // Whom to believe: a certificate of the peer has to be one of these, or to lead to
  // one. Without either a client believes whom the system believes.
  std::string ca_file;
  std::string ca_pem;

  // Protocols above TLS, "h2" or "http/1.1", the preferred one first. The server's
  // order decides; if both sides have some and none in common, the handshake fails.
  std::vector<std::string> alpn_protocols;

  TlsVersion min_version = TlsVersion::kTls12;
  TlsVersion max_version = TlsVersion::kTls13;
  std::string ciphers;        // Up to TLS 1.2, in OpenSSL's words; empty: its default.
  std::string cipher_suites;  // Of TLS 1.3.

  // Whether the connection may end without the peer's close_notify, which is then the
  // end of the stream. Else that is DATA_LOSS, for somebody in between may have cut it.
  bool allow_truncation = false;
};

struct TlsClientOptions : TlsOptions {
  TlsClientOptions() {}

  // False: the server may show any certificate; whoever stands in between can read
  // and change everything. For tests.
  bool verify_peer = true;
  // False: the certificate may be for any host.
  bool check_hostname = true;

  // For how many servers the last session is kept, so that the next connection to
  // one needs less. 0: none.
  size_t session_cache_size = 128;
};

class TlsContext;

struct TlsServerOptions : TlsOptions {
  TlsServerOptions() {}

  // Whether a client has to show a certificate that leads to one of ours, may show
  // one (but no other), or is not asked.
  enum class ClientCertificates { kNone, kOptional, kRequired };
  ClientCertificates client_certificates = ClientCertificates::kNone;

  // Chooses by the name that a client asks for ("" if it asks for none): another
  // server's context, which gives the certificate, the clients' certificates that are
  // accepted and the protocols; null for this one; an error to refuse. Called in the
  // handshake, on the loop's thread; what it returns must not go away in between.
  std::function<absl::StatusOr<const TlsContext*>(std::string_view server_name)> choose_context;

  // Whether clients get tickets, by which they take up their session again.
  bool session_tickets = true;
};

// TlsContext
//
// How a program does TLS: keys and certificates, whom it believes, what it speaks. One
// is made at the start and used for many connections:
//
//   absl::StatusOr<TlsContext> context = TlsContext::ForClient();
//   if (!context.ok()) co_return context.status();
//   ConnectOptions options;
//   options.tls = &*context;
//   absl::StatusOr<Connection> connection = co_await OpenConnection("example.org", 443, options);
//
//   TlsServerOptions certificate;
//   certificate.certificate_file = "fullchain.pem";
//   certificate.private_key_file = "privkey.pem";
//   absl::StatusOr<TlsContext> context = TlsContext::ForServer(certificate);
//   ServerOptions options;
//   options.tls = &*context;
//   absl::StatusOr<Server> server = co_await StartServer(handler, "", 443, options);
//
// The streams are those of a plain connection. StreamWriter::StartTls() begins TLS on a
// connection that there is.
//
// Making one reads files, those of the system's authorities too, and takes some
// milliseconds: before the loop runs, or by ToThread(). Later nothing is read: a
// certificate that has been renewed is in the next context. Connections keep theirs.
//
// Without being asked it checks: a client, the server's certificate and that it is for
// the host (by the names and addresses in it; the subject's common name is none);
// both, that it is valid now. TLS is 1.2 or 1.3, without renegotiation, compression and
// early data.
//
// Threads: a value, and safe to be copied and used by several loops at once.
// Python: ssl.SSLContext, as ssl.create_default_context() makes it.
class TlsContext final : public TlsProvider {
 public:
  TlsContext() = default;  // None: good for nothing but to be assigned to.

  // Errors: what the system says of a file, by its name; INVALID_ARGUMENT for what is
  // no certificate or key, for a key that is not the certificate's or needs another
  // password, for unknown ciphers; FAILED_PRECONDITION if the system has no list of
  // authorities. ValueError for options that contradict each other.
  static absl::StatusOr<TlsContext> ForClient(const TlsClientOptions& options = TlsClientOptions());
  static absl::StatusOr<TlsContext> ForServer(const TlsServerOptions& options);

  explicit operator bool() const { return factory() != nullptr; }

 private:
  explicit TlsContext(std::shared_ptr<const internal::TlsFactory> factory)
      : TlsProvider(std::move(factory)) {}
};

}  // namespace weft

#endif  // WEFT_NET_TLS_CONTEXT_H_
