// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_certificate.h"

#include <openssl/asn1.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "weft/net/socket_address.h"

namespace weft::internal {
namespace {

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

std::string_view BytesOf(const ASN1_STRING* text) {
  return std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<size_t>(ASN1_STRING_length(text)));
}

std::string AddressText(std::string_view bytes) {
  std::array<uint8_t, 4> v4;
  std::array<uint8_t, 16> v6;
  if (bytes.size() == v4.size()) {
    std::copy(bytes.begin(), bytes.end(), v4.begin());
    return SocketAddress::Ipv4(v4, 0).host();
  }
  if (bytes.size() == v6.size()) {
    std::copy(bytes.begin(), bytes.end(), v6.begin());
    return SocketAddress::Ipv6(v6, 0).host();
  }
  return std::string();
}

}  // namespace

std::vector<std::string> CertificateNames(const X509* certificate) {
  std::vector<std::string> names;
  if (certificate == nullptr) return names;
  auto* const found = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(found); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found, i);
    if (name->type == GEN_DNS) names.emplace_back(BytesOf(name->d.dNSName));
    if (name->type == GEN_IPADD) names.push_back(AddressText(BytesOf(name->d.iPAddress)));
  }
  GENERAL_NAMES_free(found);
  return names;
}

std::string NameText(const X509_NAME* name) {
  const OpenSslPtr<BIO> bio(BIO_new(BIO_s_mem()));
  if (name == nullptr || bio == nullptr) return std::string();
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  return Written(bio.get());
}

std::string CertificatePem(const X509* certificate) {
  const OpenSslPtr<BIO> bio(BIO_new(BIO_s_mem()));
  if (certificate == nullptr || bio == nullptr) return std::string();
  PEM_write_bio_X509(bio.get(), const_cast<X509*>(certificate));
  return Written(bio.get());
}

}  // namespace weft::internal
