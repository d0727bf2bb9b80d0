// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_FILTER_H_
#define WEFT_NET_TLS_FILTER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "weft/net/stream_filter.h"
#include "weft/net/stream_state.h"
#include "weft/net/tls_context_state.h"
#include "weft/net/tls_openssl.h"
#include "weft/net/tls_provider.h"
#include "weft/poller/slab_pool.h"

namespace weft::internal {

// TLS on one connection, by OpenSSL.
//
// OpenSSL does no I/O here. It reads through a BIO from the slab that the stream has
// received, and writes into the stream's queue; so every poller serves it, nothing blocks
// and nothing raises a signal. It is called when something has come and when something
// is to be sent, and never waits in between.
//
// Threads: belongs to the loop's thread.
class TlsFilter final : public StreamFilter {
 public:
  // `server_hostname`: of a client; empty if it is not checked, and not told.
  // Errors: std::bad_alloc, RuntimeError.
  TlsFilter(std::shared_ptr<const TlsContextState> context, StreamState* stream,
            const std::string& server_hostname);

  void Start() override;
  void Receive(Slab slab, size_t count) override;
  void Produce(bool ends) override;
  bool CanWriteEof() const override;
  TlsInfo Info() const override;

  // -- Callbacks of OpenSSL.

  static int OnNewSession(SSL* ssl, SSL_SESSION* session);
  static int OnServerName(SSL* ssl, int* alert, void* argument);
  static int OnRead(BIO* bio, char* data, int size);
  static int OnWrite(BIO* bio, const char* data, int size);

 private:
  void ConnectTo(const std::string& server_hostname);
  int ChooseContext(std::string_view server_name, int* alert);

  void Handshake();
  void Decrypt();
  void Deliver(Slab slab, size_t count);
  void ReceiveEnd();
  // What is to be done after a call that returned `result`, which is not a success.
  void HandleResult(int result);
  void Fail(absl::Status error);

  const std::shared_ptr<const TlsContextState> context_;
  std::shared_ptr<const TlsContextState> chosen_;  // By name; null: the same.
  StreamState* const stream_;
  OpenSslPtr<SSL> ssl_;
  std::string host_;           // That a client wants to talk to.
  std::string server_;         // The same for the cache of sessions.
  std::string detail_;         // Why a callback has refused.
  std::string_view incoming_;  // What has come, and OpenSSL has not read yet.
  bool is_out_of_memory_ = false;
  bool is_failed_ = false;
  bool has_said_end_ = false;
};

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_FILTER_H_
