// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_error.h"

#include <openssl/err.h>
#include <openssl/tls1.h>
#include <openssl/x509_vfy.h>

#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/net/tls_certificate.h"

namespace weft::internal {
namespace {

// An alert of the peer is a reason of this number, plus the alert's.
constexpr int kFirstAlert = 1000;

std::string ReasonOf(unsigned long error) {
  if (ERR_SYSTEM_ERROR(error)) return "system error";
  const char* const reason = ERR_reason_error_string(error);
  return reason != nullptr ? reason : absl::StrCat("reason ", ERR_GET_REASON(error));
}

// "CERTIFICATE_VERIFY_FAILED".
std::string TokenOf(std::string_view reason) {
  std::string token = absl::AsciiStrToUpper(reason);
  for (char& c : token) {
    if (!absl::ascii_isalnum(c)) c = '_';
  }
  return token;
}

absl::Status MakeStatus(absl::StatusCode code, std::string_view tried, unsigned long error,
                        std::string_view detail) {
  ERR_clear_error();
  if (error == 0) {
    return absl::Status(code, absl::StrCat(tried, ": ", detail.empty() ? "failed" : detail));
  }
  const std::string reason = ReasonOf(error);
  return absl::Status(code, absl::StrCat(tried, ": ", reason, detail.empty() ? "" : ": ", detail,
                                         " [SSL: ", TokenOf(reason), "]"));
}

// Whether the peer says by it that it does not like our certificate, or wants one.
bool IsAboutCertificate(int alert) {
  switch (alert) {
    case SSL3_AD_NO_CERTIFICATE:
    case SSL3_AD_BAD_CERTIFICATE:
    case SSL3_AD_UNSUPPORTED_CERTIFICATE:
    case SSL3_AD_CERTIFICATE_REVOKED:
    case SSL3_AD_CERTIFICATE_EXPIRED:
    case SSL3_AD_CERTIFICATE_UNKNOWN:
    case TLS1_AD_UNKNOWN_CA:
    case TLS1_AD_ACCESS_DENIED:
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return true;
    default:
      return false;
  }
}

absl::StatusCode CodeOf(unsigned long error, bool is_handshake) {
  if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
    const int reason = ERR_GET_REASON(error);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED ||
        reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      return absl::StatusCode::kUnauthenticated;
    }
    if (reason >= kFirstAlert) {
      if (IsAboutCertificate(reason - kFirstAlert)) return absl::StatusCode::kPermissionDenied;
      if (!is_handshake) return absl::StatusCode::kUnavailable;
    }
  }
  return is_handshake ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kDataLoss;
}

// Why the peer's certificate was not accepted.
std::string WhyNotVerified(const SSL* ssl) {
  const long result = SSL_get_verify_result(ssl);
  if (result == X509_V_OK) return std::string();
  std::string why = X509_verify_cert_error_string(result);
  if (result == X509_V_ERR_HOSTNAME_MISMATCH || result == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    const STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl);
    const std::vector<std::string> names = sk_X509_num(chain) > 0
                                               ? CertificateNames(sk_X509_value(chain, 0))
                                               : std::vector<std::string>();
    absl::StrAppend(&why, ", the certificate is for ",
                    names.empty() ? "no host" : absl::StrJoin(names, ", "));
  }
  return why;
}

}  // namespace

absl::Status OpenSslStatus(absl::StatusCode code, std::string_view tried, std::string_view detail) {
  return MakeStatus(code, tried, ERR_peek_last_error(), detail);
}

absl::Status TlsStatus(const SSL* ssl, bool is_handshake, std::string_view tried,
                       std::string_view detail) {
  const unsigned long error = ERR_peek_last_error();
  if (detail.empty() && ERR_GET_LIB(error) == ERR_LIB_SSL &&
      ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return MakeStatus(CodeOf(error, is_handshake), tried, error, WhyNotVerified(ssl));
  }
  return MakeStatus(CodeOf(error, is_handshake), tried, error, detail);
}

}  // namespace weft::internal
