// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/examples/self_signed.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/net/socket_address.h"

namespace weft {
namespace {

struct Deleter {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};

template <class T>
using Owned = std::unique_ptr<T, Deleter>;

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

bool AddExtension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

}  // namespace

SelfSigned MakeSelfSigned(const std::vector<std::string>& names) {
  constexpr long kDay = 24 * 60 * 60;
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> made(X509_new());
  X509* const certificate = made.get();
  if (key == nullptr || certificate == nullptr) return SelfSigned();
  uint64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kDay);
  X509_set_pubkey(certificate, key.get());
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("weft example"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  const std::string for_names =
      absl::StrJoin(names, ",", [](std::string* out, const std::string& one) {
        const bool is_address = SocketAddress::FromHost(one, 0).ok();
        absl::StrAppend(out, is_address ? "IP:" : "DNS:", one);
      });
  const Owned<BIO> certificate_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (!AddExtension(certificate, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate, NID_subject_alt_name, for_names) ||
      X509_sign(certificate, key.get(), EVP_sha256()) == 0 ||
      PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return SelfSigned();
  }
  return {Written(certificate_text.get()), Written(key_text.get())};
}

}  // namespace weft
