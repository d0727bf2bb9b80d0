// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_CONTEXT_STATE_H_
#define WEFT_NET_TLS_CONTEXT_STATE_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/net/stream_filter.h"
#include "weft/net/tls_context.h"
#include "weft/net/tls_openssl.h"
#include "weft/net/tls_provider.h"
#include "weft/net/tls_session_cache.h"

namespace weft::internal {

// What a `TlsContext` refers to. It changes no more once it is made, but for the
// sessions that it keeps; OpenSSL's callbacks find it by their argument, and the filters
// keep it for them.
//
// Threads: any, once it is made.
class TlsContextState final : public TlsFactory {
 public:
  explicit TlsContextState(const TlsClientOptions& options);
  explicit TlsContextState(const TlsServerOptions& options);

  // Does what can fail. REQUIRES: that is not done yet.
  absl::Status LoadClient(const TlsClientOptions& options);
  absl::Status LoadServer(const TlsServerOptions& options);

  SSL_CTX* context() const { return context_.get(); }
  bool allows_truncation() const { return allows_truncation_; }
  bool checks_hostname() const { return checks_hostname_; }

  bool is_server() const override { return is_server_; }
  void Check(const StartTlsOptions& options) const override;
  std::unique_ptr<StreamFilter> MakeFilter(const std::shared_ptr<const TlsFactory>& self,
                                           StreamState* stream,
                                           const StartTlsOptions& options) const override;

  // A server's choice by name; null without the option.
  const std::function<absl::StatusOr<const TlsContext*>(std::string_view)>& choose_context() const {
    return choose_context_;
  }

  // Whether sessions are kept; null for a server.
  TlsSessionCache* sessions() const { return sessions_.get(); }

 private:
  absl::Status Load(const TlsOptions& options);
  absl::Status SetCiphers(const TlsOptions& options);

  const bool is_server_;
  const bool allows_truncation_;
  const bool checks_hostname_;
  OpenSslPtr<SSL_CTX> context_;
  std::string alpn_;  // As it goes over the wire.
  std::function<absl::StatusOr<const TlsContext*>(std::string_view)> choose_context_;
  std::unique_ptr<TlsSessionCache> sessions_;
};

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_CONTEXT_STATE_H_
