// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "weft/net/socket_address.h"
#include "weft/net/tls_openssl.h"

namespace weft {

using internal::OpenSslPtr;

struct TestAuthority::Signer {
  OpenSslPtr<X509> certificate;
  OpenSslPtr<EVP_PKEY> key;
};

namespace {

void Check(bool is_done) {
  if (!is_done) std::abort();
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string Pem(X509* certificate) {
  const OpenSslPtr<BIO> bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_X509(bio.get(), certificate) == 1);
  return Written(bio.get());
}

std::string Pem(EVP_PKEY* key) {
  const OpenSslPtr<BIO> bio(BIO_new(BIO_s_mem()));
  Check(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Written(bio.get());
}

OpenSslPtr<EVP_PKEY> MakeKey() { return OpenSslPtr<EVP_PKEY>(EVP_EC_gen("P-256")); }

void AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  Check(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Signed by `signer_key`, or by `key` itself if `issuer` is null.
OpenSslPtr<X509> MakeCertificate(const TestCertificateOptions& options, bool is_authority,
                                 EVP_PKEY* key, X509* issuer, EVP_PKEY* signer_key) {
  OpenSslPtr<X509> made(X509_new());
  X509* const certificate = made.get();
  X509_set_version(certificate, X509_VERSION_3);
  uint32_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial));
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), absl::ToInt64Seconds(options.valid_from));
  X509_gmtime_adj(X509_getm_notAfter(certificate), absl::ToInt64Seconds(options.valid_until));
  X509_set_pubkey(certificate, key);
  X509_NAME* const name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(options.common_name.c_str()),
                             -1, -1, 0);
  X509_set_issuer_name(certificate, issuer == nullptr ? name : X509_get_subject_name(issuer));
  X509* const above = issuer == nullptr ? certificate : issuer;
  AddExtension(certificate, above, NID_basic_constraints,
               is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (is_authority) AddExtension(certificate, above, NID_key_usage, "critical,keyCertSign,cRLSign");
  AddExtension(certificate, above, NID_subject_key_identifier, "hash");
  AddExtension(certificate, above, NID_authority_key_identifier, "keyid:always");
  if (!options.names.empty()) {
    const std::string names =
        absl::StrJoin(options.names, ",", [](std::string* out, const std::string& one) {
          const bool is_address = SocketAddress::FromHost(one, 0).ok();
          absl::StrAppend(out, is_address ? "IP:" : "DNS:", one);
        });
    AddExtension(certificate, above, NID_subject_alt_name, names);
  }
  Check(X509_sign(certificate, issuer == nullptr ? key : signer_key, EVP_sha256()) != 0);
  return made;
}

TestCertificateOptions Named(const std::string& common_name) {
  TestCertificateOptions options;
  options.common_name = common_name;
  return options;
}

}  // namespace

TestAuthority::TestAuthority(const std::string& common_name) : signer_(std::make_unique<Signer>()) {
  signer_->key = MakeKey();
  signer_->certificate = MakeCertificate(Named(common_name), /*is_authority=*/true,
                                         signer_->key.get(), nullptr, nullptr);
  certificate_ = Pem(signer_->certificate.get());
}

TestAuthority::TestAuthority(std::unique_ptr<Signer> signer)
    : signer_(std::move(signer)), certificate_(Pem(signer_->certificate.get())) {}

TestAuthority::TestAuthority(TestAuthority&&) noexcept = default;
TestAuthority::~TestAuthority() = default;

TestCertificate TestAuthority::Issue(const TestCertificateOptions& options) const {
  const OpenSslPtr<EVP_PKEY> key = MakeKey();
  const OpenSslPtr<X509> certificate = MakeCertificate(
      options, /*is_authority=*/false, key.get(), signer_->certificate.get(), signer_->key.get());
  return {Pem(certificate.get()), Pem(key.get())};
}

TestAuthority TestAuthority::IssueAuthority(const std::string& common_name) const {
  auto signer = std::make_unique<Signer>();
  signer->key = MakeKey();
  signer->certificate =
      MakeCertificate(Named(common_name), /*is_authority=*/true, signer->key.get(),
                      signer_->certificate.get(), signer_->key.get());
  return TestAuthority(std::move(signer));
}

TestCertificate SelfSigned(const TestCertificateOptions& options) {
  const OpenSslPtr<EVP_PKEY> key = MakeKey();
  const OpenSslPtr<X509> certificate =
      MakeCertificate(options, /*is_authority=*/false, key.get(), nullptr, nullptr);
  return {Pem(certificate.get()), Pem(key.get())};
}

std::string EncryptKey(const std::string& key, const std::string& password) {
  const OpenSslPtr<BIO> in(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  const OpenSslPtr<EVP_PKEY> read(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  const OpenSslPtr<BIO> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PKCS8PrivateKey(out.get(), read.get(), EVP_aes_256_cbc(), password.data(),
                                static_cast<int>(password.size()), nullptr, nullptr);
  return Written(out.get());
}

}  // namespace weft
