// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_context_state.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/net/tls_credentials.h"
#include "weft/net/tls_error.h"
#include "weft/net/tls_filter.h"

namespace weft {
namespace internal {
namespace {

// Sessions are taken up only by a context with the same word; theirs are all of one
// program.
constexpr std::string_view kSessionIdContext = "weft";

// RFC 6066, section 3, and DNS itself.
constexpr size_t kLongestHostname = 255;

int VersionNumber(TlsVersion version) {
  return version == TlsVersion::kTls12 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

std::string AlpnWire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    if (protocol.empty() || protocol.size() > 255) {
      throw ValueError(absl::StrCat("alpn_protocols: \"", protocol,
                                    "\" does not have between 1 and 255 characters"));
    }
    wire.push_back(static_cast<char>(protocol.size()));
    wire.append(protocol);
  }
  return wire;
}

// The server's order, and no protocol in common is an error: RFC 7301, section 3.2.
int SelectAlpn(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
               const unsigned char* offered, unsigned int offered_size, void* argument) {
  const std::string& ours = *static_cast<const std::string*>(argument);
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(
      &found, chosen_size, reinterpret_cast<const unsigned char*>(ours.data()),
      static_cast<unsigned int>(ours.size()), offered, offered_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

TlsContextState::TlsContextState(const TlsClientOptions& options)
    : is_server_(false),
      allows_truncation_(options.allow_truncation),
      checks_hostname_(options.verify_peer && options.check_hostname),
      alpn_(AlpnWire(options.alpn_protocols)),
      sessions_(std::make_unique<TlsSessionCache>(options.session_cache_size)) {}

TlsContextState::TlsContextState(const TlsServerOptions& options)
    : is_server_(true),
      allows_truncation_(options.allow_truncation),
      checks_hostname_(false),
      alpn_(AlpnWire(options.alpn_protocols)),
      choose_context_(options.choose_context) {}

absl::Status TlsContextState::Load(const TlsOptions& options) {
  if (VersionNumber(options.min_version) > VersionNumber(options.max_version)) {
    throw ValueError("min_version is above max_version");
  }
  ERR_clear_error();
  context_.reset(SSL_CTX_new(is_server_ ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* const context = context_.get();
  if (context == nullptr) return OpenSslStatus(absl::StatusCode::kInternal, "TLS context");
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // An idle connection keeps no buffers; and a record is copied from where it lies, also
  // if that has moved since the last attempt.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_min_proto_version(context, VersionNumber(options.min_version));
  SSL_CTX_set_max_proto_version(context, VersionNumber(options.max_version));
  // A certificate that is believed need not be a root: whoever lists it means it.
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  absl::Status done = SetCiphers(options);
  if (done.ok()) done = LoadCertificate(options, context);
  return done;
}

absl::Status TlsContextState::SetCiphers(const TlsOptions& options) {
  const auto invalid = [](std::string_view name, const std::string& value) {
    return OpenSslStatus(absl::StatusCode::kInvalidArgument,
                         absl::StrCat(name, " \"", value, "\""));
  };
  if (!options.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context_.get(), options.ciphers.c_str()) != 1) {
    return invalid("ciphers", options.ciphers);
  }
  if (!options.cipher_suites.empty() &&
      SSL_CTX_set_ciphersuites(context_.get(), options.cipher_suites.c_str()) != 1) {
    return invalid("cipher_suites", options.cipher_suites);
  }
  return absl::OkStatus();
}

absl::Status TlsContextState::LoadClient(const TlsClientOptions& options) {
  absl::Status loaded = Load(options);
  if (!loaded.ok()) return loaded;
  SSL_CTX* const context = context_.get();
  const bool has_authorities = !options.ca_file.empty() || !options.ca_pem.empty();
  if (options.verify_peer) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    loaded = has_authorities ? LoadAuthorities(options, /*are_named=*/false, context)
                             : LoadSystemAuthorities(context);
    if (!loaded.ok()) return loaded;
  } else if (has_authorities) {
    throw ValueError("ca: there is nothing to be checked without verify_peer");
  }
  if (!alpn_.empty() &&
      SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(alpn_.data()),
                              static_cast<unsigned int>(alpn_.size())) != 0) {
    return OpenSslStatus(absl::StatusCode::kInternal, "alpn_protocols");
  }
  // Sessions come by a callback, whenever the server sends one.
  SSL_CTX_set_session_cache_mode(context, options.session_cache_size == 0
                                              ? SSL_SESS_CACHE_OFF
                                              : SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, &TlsFilter::OnNewSession);
  return absl::OkStatus();
}

absl::Status TlsContextState::LoadServer(const TlsServerOptions& options) {
  if (options.certificate_file.empty() && options.certificate_pem.empty()) {
    throw ValueError("certificate: a server needs one");
  }
  absl::Status loaded = Load(options);
  if (!loaded.ok()) return loaded;
  SSL_CTX* const context = context_.get();
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);

  using ClientCertificates = TlsServerOptions::ClientCertificates;
  const bool has_authorities = !options.ca_file.empty() || !options.ca_pem.empty();
  const bool wants_certificates = options.client_certificates != ClientCertificates::kNone;
  if (wants_certificates != has_authorities) {
    throw ValueError(wants_certificates
                         ? "client_certificates: ca has to say which are accepted"
                         : "ca: there is nothing to be checked without client_certificates");
  }
  if (wants_certificates) {
    SSL_CTX_set_verify(context,
                       options.client_certificates == ClientCertificates::kRequired
                           ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
                           : SSL_VERIFY_PEER,
                       nullptr);
    loaded = LoadAuthorities(options, /*are_named=*/true, context);
    if (!loaded.ok()) return loaded;
  }
  if (!alpn_.empty()) SSL_CTX_set_alpn_select_cb(context, &SelectAlpn, &alpn_);
  if (choose_context_) SSL_CTX_set_tlsext_servername_callback(context, &TlsFilter::OnServerName);

  // A ticket holds all there is to know of a session; the server keeps nothing.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context,
                                 reinterpret_cast<const unsigned char*>(kSessionIdContext.data()),
                                 static_cast<unsigned int>(kSessionIdContext.size()));
  if (!options.session_tickets) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
  }
  return absl::OkStatus();
}

void TlsContextState::Check(const StartTlsOptions& options) const {
  const std::string& name = options.server_hostname;
  if (is_server_) {
    if (!name.empty()) throw ValueError("server_hostname is only meaningful for a client");
    return;
  }
  if (name.empty()) {
    if (!checks_hostname_) return;
    throw ValueError("You must set server_hostname when using tls without a host");
  }
  const bool is_text =
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!is_text || name.front() == '.' || name.size() > kLongestHostname) {
    throw ValueError(absl::StrCat("server_hostname: \"", absl::CHexEscape(name),
                                  "\" is no host (other letters than ASCII's are written as IDNA "
                                  "has it: xn--...)"));
  }
}

std::unique_ptr<StreamFilter> TlsContextState::MakeFilter(
    const std::shared_ptr<const TlsFactory>& self, StreamState* stream,
    const StartTlsOptions& options) const {
  return std::make_unique<TlsFilter>(std::static_pointer_cast<const TlsContextState>(self), stream,
                                     options.server_hostname);
}

}  // namespace internal

absl::StatusOr<TlsContext> TlsContext::ForClient(const TlsClientOptions& options) {
  auto state = std::make_shared<internal::TlsContextState>(options);
  absl::Status loaded = state->LoadClient(options);
  if (!loaded.ok()) return loaded;
  return TlsContext(std::move(state));
}

absl::StatusOr<TlsContext> TlsContext::ForServer(const TlsServerOptions& options) {
  auto state = std::make_shared<internal::TlsContextState>(options);
  absl::Status loaded = state->LoadServer(options);
  if (!loaded.ok()) return loaded;
  return TlsContext(std::move(state));
}

}  // namespace weft
