// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_PROVIDER_H_
#define WEFT_NET_TLS_PROVIDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

// What the streams have to know of TLS, so that a program that does without does
// not link a library for it. tls_context.h has what one makes.

namespace weft {

// How long a peer may take, as asyncio has it.
inline constexpr absl::Duration kDefaultTlsHandshakeTimeout = absl::Seconds(60);
inline constexpr absl::Duration kDefaultTlsShutdownTimeout = absl::Seconds(30);

// What was agreed upon with the peer of a connection.
struct TlsInfo {
  TlsInfo() {}

  std::string version;        // "TLSv1.3"
  std::string cipher;         // "TLS_AES_256_GCM_SHA384"
  std::string alpn_protocol;  // "h2"; empty if none was agreed upon.
  std::string server_name;    // The name that the client asked for; empty: none.
  bool is_resumed = false;    // An earlier session was taken up again.

  // The peer's certificate; all empty if it has shown none.
  std::string peer_certificate_pem;
  std::string peer_subject;             // "CN=example.org,O=Example"
  std::string peer_issuer;              // The same of who signed it.
  std::vector<std::string> peer_names;  // The DNS names and IP addresses it is for.
};

struct StartTlsOptions {
  StartTlsOptions() {}

  // For clients: whom they want to talk to, a DNS name or an IP address. The peer's
  // certificate has to be for it; and a name is told to the server, so that it can
  // choose one.
  std::string server_hostname;

  // When it has passed, the connection is lost with DEADLINE_EXCEEDED.
  absl::Duration handshake_timeout = kDefaultTlsHandshakeTimeout;
  // How long Close() waits for the peer's close_notify. When it has passed, the
  // connection is closed, and WaitClosed() returns DEADLINE_EXCEEDED.
  absl::Duration shutdown_timeout = kDefaultTlsShutdownTimeout;
};

namespace internal {

class StreamFilter;
class StreamState;

// Makes what stands between a stream and its socket.
class TlsFactory {
 public:
  virtual ~TlsFactory() = default;

  virtual bool is_server() const = 0;
  // Errors: ValueError if it cannot do with these.
  virtual void Check(const StartTlsOptions& options) const = 0;
  // `self` is this. REQUIRES: Check() has passed.
  // Errors: std::bad_alloc, RuntimeError.
  virtual std::unique_ptr<StreamFilter> MakeFilter(const std::shared_ptr<const TlsFactory>& self,
                                                   StreamState* stream,
                                                   const StartTlsOptions& options) const = 0;
};

}  // namespace internal

// TlsProvider
//
// Who does TLS for a stream: a `TlsContext`, by its address. It has to live until
// the call that takes it has been awaited, and not longer.
class TlsProvider {
 public:
  // -- For weft's own parts.
  const std::shared_ptr<const internal::TlsFactory>& factory() const { return factory_; }

 protected:
  TlsProvider() = default;
  explicit TlsProvider(std::shared_ptr<const internal::TlsFactory> factory)
      : factory_(std::move(factory)) {}
  TlsProvider(const TlsProvider&) = default;
  TlsProvider& operator=(const TlsProvider&) = default;
  ~TlsProvider() = default;

 private:
  std::shared_ptr<const internal::TlsFactory> factory_;
};

namespace internal {

// Throws if `tls` is no context, is for the other side, or cannot do with `options`.
// Errors: ValueError.
void CheckTls(const TlsProvider& tls, bool is_server, const StartTlsOptions& options);

}  // namespace internal
}  // namespace weft

#endif  // WEFT_NET_TLS_PROVIDER_H_
