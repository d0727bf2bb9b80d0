// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_OPENSSL_H_
#define WEFT_NET_TLS_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>

#if OPENSSL_VERSION_MAJOR < 3
#error "weft's TLS needs OpenSSL 3"
#endif

namespace weft::internal {

// OpenSSL's objects, owned.
struct OpenSslDeleter {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

template <class T>
using OpenSslPtr = std::unique_ptr<T, OpenSslDeleter>;

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_OPENSSL_H_
