// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_ERROR_H_
#define WEFT_NET_TLS_ERROR_H_

#include <string_view>

#include "absl/status/status.h"
#include "weft/net/tls_openssl.h"

namespace weft::internal {

// What OpenSSL last put into this thread's queue of errors, as a status; the queue is
// empty then. What was tried, OpenSSL's reason, what more is known of it (`detail`,
// may be empty), and the reason as Python writes it:
//
//   INVALID_ARGUMENT: private_key_file "a.pem": key values mismatch [SSL: KEY_VALUES_MISMATCH]
absl::Status OpenSslStatus(absl::StatusCode code, std::string_view tried,
                           std::string_view detail = "");

// The same for what `ssl` said, in the handshake or after it: with the code that fits,
// and with why a certificate was not accepted.
absl::Status TlsStatus(const SSL* ssl, bool is_handshake, std::string_view tried,
                       std::string_view detail = "");

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_ERROR_H_
