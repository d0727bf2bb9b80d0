// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_CREDENTIALS_H_
#define WEFT_NET_TLS_CREDENTIALS_H_

#include "absl/status/status.h"
#include "weft/net/tls_context.h"
#include "weft/net/tls_openssl.h"

namespace weft::internal {

// Reads what the options name, and gives it to a context. They read files, and wait for
// the disk.

// The certificate and its private key; nothing if there are none.
absl::Status LoadCertificate(const TlsOptions& options, SSL_CTX* context);

// The certificates to be believed. `are_named`: clients are told which those are.
absl::Status LoadAuthorities(const TlsOptions& options, bool are_named, SSL_CTX* context);

// Those of the system: SSL_CERT_FILE and SSL_CERT_DIR if they are set, else OpenSSL's
// default file, else where the systems that we know have theirs.
absl::Status LoadSystemAuthorities(SSL_CTX* context);

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_CREDENTIALS_H_
