// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// How OpenSSL is asked, and what it answers.
//
//   * Its errors are in a queue of the thread. What one connection leaves there is taken
//     for the next one's error, so the queue is emptied before every call.
//   * SSL_read() returns one record at a time. It is called until what has come is used
//     up; then the rest of a record, if there is one, lies within OpenSSL.
//   * The callbacks are called from C: no exception may leave them.
//   * After the handshake SSL_write() takes all that it is given: the BIO takes all, and
//     renegotiation, in which it would have to read first, is off. Only in the middle of
//     a message of the handshake in several records does it want to read all the same;
//     then what was written waits for that. Nobody sends tickets and updates of keys like
//     that.
//   * A truncated stream is not shown to it: it would forget the session.

#include "weft/net/tls_filter.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/socket_address.h"
#include "weft/net/tls_certificate.h"
#include "weft/net/tls_error.h"

namespace weft::internal {
namespace {

// As much as is encrypted at once; and as much as OpenSSL is given in one call.
constexpr size_t kBatch = 64 * 1024;

// A peer that makes us answer more than this without reading the answers, by updates of
// keys, say, wants our memory.
constexpr size_t kMostAnswers = 1024 * 1024;

long Control(BIO*, int command, long, void*) {
  // Nothing is kept back, so there is nothing to be done for it.
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft stream");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_read(made, &TlsFilter::OnRead);
    BIO_meth_set_write(made, &TlsFilter::OnWrite);
    BIO_meth_set_ctrl(made, &Control);
    return made;
  }();
  return method;
}

// The address in it, if `host` is one, as a certificate has it: without its interface.
std::string AddressIn(const std::string& host) {
  absl::StatusOr<SocketAddress> address = SocketAddress::FromHost(host, 0);
  if (!address.ok()) return std::string();
  const std::string text = address->host();
  return text.substr(0, text.find('%'));
}

TlsFilter* FilterOf(const SSL* ssl) { return static_cast<TlsFilter*>(SSL_get_app_data(ssl)); }

}  // namespace

TlsFilter::TlsFilter(std::shared_ptr<const TlsContextState> context, StreamState* stream,
                     const std::string& server_hostname)
    : context_(std::move(context)), stream_(stream) {
  ERR_clear_error();
  ssl_.reset(SSL_new(context_->context()));
  OpenSslPtr<BIO> bio(BIO_new(Method()));
  if (ssl_ == nullptr || bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio.get(), this);
  BIO_set_init(bio.get(), 1);
  BIO* const both = bio.release();
  SSL_set_bio(ssl_.get(), both, both);
  SSL_set_app_data(ssl_.get(), this);
  if (context_->is_server()) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
    ConnectTo(server_hostname);
  }
}

void TlsFilter::ConnectTo(const std::string& server_hostname) {
  // "example.org." is example.org, written out.
  const std::string name(absl::StripSuffix(server_hostname, "."));
  const std::string address = AddressIn(name);
  X509_VERIFY_PARAM* const verify = SSL_get0_param(ssl_.get());
  bool is_set = true;
  if (context_->checks_hostname()) {
    X509_VERIFY_PARAM_set_hostflags(
        verify, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    is_set = address.empty() ? X509_VERIFY_PARAM_set1_host(verify, name.c_str(), 0) == 1
                             : X509_VERIFY_PARAM_set1_ip_asc(verify, address.c_str()) == 1;
  }
  // Addresses are not told: RFC 6066, section 3.
  if (is_set && !name.empty() && address.empty()) {
    is_set = SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1;
  }
  if (!is_set) throw RuntimeError(absl::StrCat("server_hostname \"", name, "\" cannot be used"));

  const SocketAddress& peer = stream_->socket().state()->peer();
  host_ = name;
  server_ = name.empty() ? peer.ToString() : absl::StrCat(name, ":", peer.port());
  const OpenSslPtr<SSL_SESSION> session = context_->sessions()->Take(server_);
  if (session != nullptr) SSL_set_session(ssl_.get(), session.get());
}

// -- The handshake.

void TlsFilter::Start() { Handshake(); }

void TlsFilter::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return HandleResult(result);
  is_ready_ = true;
  stream_->OnFilterReady();
}

int TlsFilter::OnServerName(SSL* ssl, int* alert, void*) {
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  return FilterOf(ssl)->ChooseContext(name == nullptr ? "" : name, alert);
}

int TlsFilter::ChooseContext(std::string_view server_name, int* alert) {
  try {
    absl::StatusOr<const TlsContext*> chosen = context_->choose_context()(server_name);
    if (!chosen.ok()) {
      detail_ = absl::StrCat("\"", server_name, "\": ", chosen.status().message());
      *alert = SSL_AD_UNRECOGNIZED_NAME;
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    }
    if (*chosen == nullptr || (*chosen)->factory() == context_) return SSL_TLSEXT_ERR_OK;
    if ((*chosen)->factory() == nullptr || !(*chosen)->factory()->is_server()) {
      throw ValueError("choose_context: it did not return a server's context");
    }
    chosen_ = std::static_pointer_cast<const TlsContextState>((*chosen)->factory());
  } catch (const std::exception& error) {
    detail_ = error.what();
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  } catch (...) {
    detail_ = "choose_context threw";
    *alert = SSL_AD_INTERNAL_ERROR;
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  // This changes the certificate, whom to believe and what to speak, but not whether
  // clients have to show a certificate.
  SSL_CTX* const context = chosen_->context();
  SSL_set_SSL_CTX(ssl_.get(), context);
  SSL_set_verify(ssl_.get(), SSL_CTX_get_verify_mode(context), nullptr);
  return SSL_TLSEXT_ERR_OK;
}

int TlsFilter::OnNewSession(SSL* ssl, SSL_SESSION* session) {
  const TlsFilter* const filter = FilterOf(ssl);
  try {
    SSL_SESSION_up_ref(session);
    filter->context_->sessions()->Put(filter->server_, OpenSslPtr<SSL_SESSION>(session));
  } catch (const std::bad_alloc&) {
    // Then the next connection does without.
  }
  return 0;  // OpenSSL keeps its own reference.
}

TlsInfo TlsFilter::Info() const {
  const SSL* const ssl = ssl_.get();
  TlsInfo info;
  info.version = SSL_get_version(ssl);
  info.cipher = SSL_get_cipher_name(ssl);
  info.is_resumed = SSL_session_reused(ssl) == 1;
  const unsigned char* protocol = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  if (size > 0) info.alpn_protocol.assign(reinterpret_cast<const char*>(protocol), size);
  const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name != nullptr) info.server_name = name;
  const OpenSslPtr<X509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr) return info;
  info.peer_certificate_pem = CertificatePem(certificate.get());
  info.peer_subject = NameText(X509_get_subject_name(certificate.get()));
  info.peer_issuer = NameText(X509_get_issuer_name(certificate.get()));
  info.peer_names = CertificateNames(certificate.get());
  return info;
}

// -- What comes.

int TlsFilter::OnRead(BIO* bio, char* data, int size) {
  auto* const filter = static_cast<TlsFilter*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const size_t count = filter->incoming_.copy(data, static_cast<size_t>(size));
  if (count == 0) {
    BIO_set_retry_read(bio);
    return -1;
  }
  filter->incoming_.remove_prefix(count);
  return static_cast<int>(count);
}

void TlsFilter::Receive(Slab slab, size_t count) {
  if (is_failed_) return;
  if (count == 0) return ReceiveEnd();
  incoming_ = std::string_view(slab.data(), count);
  if (!is_ready_) Handshake();
  if (is_ready_ && !has_ended_) Decrypt();
  incoming_ = std::string_view();
  if (is_failed_) return;
  if (stream_->queue().size() > kMostAnswers) {
    return Fail(absl::ResourceExhaustedError(absl::StrCat(
        stream_->Describe("receive", "from"), ": the peer asks for more than it reads")));
  }
  if (!stream_->queue().empty() || !written_.empty()) stream_->Flush();
}

void TlsFilter::Decrypt() {
  SlabPool& pool = stream_->loop().slab_pool();
  Slab slab;
  size_t used = 0;
  int result = 1;
  while (!is_failed_ && (!incoming_.empty() || SSL_has_pending(ssl_.get()) == 1)) {
    // NOLINTNEXTLINE(bugprone-use-after-move): one that was given away is empty.
    if (!slab) slab = pool.Take();
    if (!slab) {
      is_out_of_memory_ = true;
      result = -1;
      break;
    }
    ERR_clear_error();
    result = SSL_read(ssl_.get(), slab.data() + used, static_cast<int>(slab.size() - used));
    if (result <= 0) break;
    used += static_cast<size_t>(result);
    if (used == slab.size()) Deliver(std::move(slab), std::exchange(used, 0));
  }
  // Before the slab is given away: it is the queue of errors of this call.
  if (result <= 0) HandleResult(result);
  if (used > 0) Deliver(std::move(slab), used);
}

void TlsFilter::Deliver(Slab slab, size_t count) {
  if (stream_->is_lingering()) return;
  try {
    stream_->buffer().Append(std::move(slab), count);
  } catch (const std::bad_alloc&) {
    is_out_of_memory_ = true;
    HandleResult(-1);
  }
}

void TlsFilter::ReceiveEnd() {
  if (!is_ready_) {
    return Fail(absl::UnavailableError(absl::StrCat(stream_->DescribeHandshake(),
                                                    ": the peer has closed the connection "
                                                    "[SSL: UNEXPECTED_EOF_WHILE_READING]")));
  }
  if (has_ended_ || context_->allows_truncation()) {
    has_ended_ = true;
    return stream_->OnFilterEnded();
  }
  Fail(absl::DataLossError(
      absl::StrCat(stream_->Describe("receive", "from"),
                   ": the connection ended without a close_notify, something may be missing "
                   "[SSL: UNEXPECTED_EOF_WHILE_READING]")));
}

// -- What is sent.

int TlsFilter::OnWrite(BIO* bio, const char* data, int size) {
  auto* const filter = static_cast<TlsFilter*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  StreamState* const stream = filter->stream_;
  try {
    const std::string_view record(data, static_cast<size_t>(size));
    if (!stream->is_down() && !stream->queue().Append(record, &stream->loop().slab_pool())) {
      filter->is_out_of_memory_ = true;
      return -1;
    }
  } catch (const std::bad_alloc&) {
    filter->is_out_of_memory_ = true;
    return -1;
  }
  return size;
}

void TlsFilter::Produce(bool ends) {
  if (!is_ready_ || is_failed_) return;
  WriteQueue& queue = stream_->queue();
  const bool was_empty = queue.empty();
  bool has_data = false;
  while (!written_.empty() && queue.size() < kBatch) {
    Buffer piece;
    written_.Pieces(&piece, 1);
    ERR_clear_error();
    const int result =
        SSL_write(ssl_.get(), piece.data, static_cast<int>(std::min(piece.size, kBatch)));
    if (result <= 0) return HandleResult(result);
    written_.Consume(static_cast<size_t>(result));
    has_data = true;
  }
  if (!ends || !written_.empty() || std::exchange(has_said_end_, true)) return;
  is_end_alone_ = was_empty && !has_data;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  // It cannot be said in the middle of a message of the handshake; then it is not.
  if (result < 0 && SSL_in_init(ssl_.get()) == 0) HandleResult(result);
}

bool TlsFilter::CanWriteEof() const {
  return is_ready_ && SSL_version(ssl_.get()) >= TLS1_3_VERSION;
}

// -- What OpenSSL says.

void TlsFilter::HandleResult(int result) {
  if (is_out_of_memory_) {
    ERR_clear_error();
    return Fail(ErrnoStatus(-ENOMEM, stream_->Describe("TLS", "with")));
  }
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
      return;
    case SSL_ERROR_ZERO_RETURN:
      has_ended_ = true;
      return stream_->OnFilterEnded();
    default:
      break;
  }
  std::string tried = is_ready_ ? stream_->Describe("TLS", "with") : stream_->DescribeHandshake();
  if (!is_ready_ && !host_.empty()) absl::StrAppend(&tried, " (", host_, ")");
  Fail(TlsStatus(ssl_.get(), !is_ready_, tried, detail_));
}

void TlsFilter::Fail(absl::Status error) {
  is_failed_ = true;
  stream_->OnFilterFailed(std::move(error));
}

}  // namespace weft::internal
