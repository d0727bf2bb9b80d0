// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TLS_CERTIFICATE_H_
#define WEFT_NET_TLS_CERTIFICATE_H_

#include <string>
#include <vector>

#include "weft/net/tls_openssl.h"

namespace weft::internal {

// What a certificate says, for people. All are empty for null.

// The DNS names and IP addresses that it is for.
std::vector<std::string> CertificateNames(const X509* certificate);
// As RFC 2253 writes it: "CN=example.org,O=Example".
std::string NameText(const X509_NAME* name);
std::string CertificatePem(const X509* certificate);

}  // namespace weft::internal

#endif  // WEFT_NET_TLS_CERTIFICATE_H_
