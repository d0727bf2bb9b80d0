// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Everything is read into memory first and parsed there, so that files and text take one
// way, and errors name what they are about.
//
// Nothing is left for OpenSSL to read later: a directory of authorities, as it knows
// them, is looked into whenever a certificate is checked, on the loop's thread. So the
// files of SSL_CERT_DIR are all read at once. And it never asks the terminal for a
// password, which is what its default does.

#include "weft/net/tls_credentials.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/errors.h"
#include "weft/net/errno_status.h"
#include "weft/net/tls_error.h"

namespace weft::internal {
namespace {

// PEM, and how messages call it.
struct Text {
  std::string what;
  std::string pem;
};

absl::StatusOr<std::string> ReadFile(const std::string& path, std::string_view tried) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return ErrnoStatus(-errno, tried);
  std::string content;
  char block[8192];
  size_t count;
  while ((count = std::fread(block, 1, sizeof(block), file)) > 0) content.append(block, count);
  const int error = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  if (error != 0) return ErrnoStatus(-error, tried);
  return content;
}

// What the options `NAME_file` and `NAME_pem` give, one of which is empty.
absl::StatusOr<Text> ReadOption(std::string_view name, const std::string& file,
                                const std::string& pem) {
  Text text;
  if (file.empty()) {
    text.what = absl::StrCat(name, "_pem");
    text.pem = pem;
    return text;
  }
  if (!pem.empty()) {
    throw ValueError(absl::StrCat(name, "_file and ", name, "_pem: there can only be one of them"));
  }
  text.what = absl::StrCat(name, "_file \"", file, "\"");
  absl::StatusOr<std::string> content = ReadFile(file, text.what);
  if (!content.ok()) return content.status();
  text.pem = *std::move(content);
  return text;
}

absl::Status Invalid(const std::string& what, std::string_view detail = "") {
  return OpenSslStatus(absl::StatusCode::kInvalidArgument, what, detail);
}

OpenSslPtr<BIO> Open(const std::string& text) {
  return OpenSslPtr<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Appends the certificates in `text`. What else is in it is passed over.
absl::Status ReadCertificates(const Text& text, std::vector<OpenSslPtr<X509>>* certificates) {
  const OpenSslPtr<BIO> bio = Open(text.pem);
  ERR_clear_error();
  while (bio != nullptr) {
    OpenSslPtr<X509> certificate(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    certificates->push_back(std::move(certificate));
  }
  const bool is_end = ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_PEM &&
                      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  if (!is_end) return Invalid(text.what);
  ERR_clear_error();
  return absl::OkStatus();
}

// OpenSSL's callback for the password.
int GivePassword(char* buffer, int size, int, void* argument) {
  const std::string& password = *static_cast<const std::string*>(argument);
  if (password.empty() || password.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(buffer, password.data(), password.size());
  return static_cast<int>(password.size());
}

absl::Status UseKey(const Text& text, std::string password, SSL_CTX* context) {
  const OpenSslPtr<BIO> bio = Open(text.pem);
  ERR_clear_error();
  const OpenSslPtr<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, &GivePassword, &password));
  if (key == nullptr) {
    const bool is_encrypted = text.pem.find("ENCRYPTED") != std::string::npos;
    if (!is_encrypted) return Invalid(text.what, "no private key that could be read");
    return Invalid(text.what, password.empty()
                                  ? "the key is encrypted, and there is no private_key_password"
                                  : "the key is encrypted, by another password");
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Invalid(text.what, "the key is not the certificate's");
  }
  return absl::OkStatus();
}

absl::Status Believe(const std::vector<OpenSslPtr<X509>>& certificates, SSL_CTX* context) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  for (const OpenSslPtr<X509>& certificate : certificates) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1) return Invalid("authorities");
  }
  return absl::OkStatus();
}

// The certificates of a file of the system's. One that cannot be read has none.
void AppendCertificates(const std::string& path, std::vector<OpenSslPtr<X509>>* certificates) {
  absl::StatusOr<std::string> content = ReadFile(path, path);
  if (!content.ok()) return;
  Text text;
  text.what = path;
  text.pem = *std::move(content);
  ReadCertificates(text, certificates).IgnoreError();
}

void AppendDirectory(const std::string& path, std::vector<OpenSslPtr<X509>>* certificates) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) AppendCertificates(file, certificates);
}

}  // namespace

absl::Status LoadCertificate(const TlsOptions& options, SSL_CTX* context) {
  const bool has_key = !options.private_key_file.empty() || !options.private_key_pem.empty();
  if (options.certificate_file.empty() && options.certificate_pem.empty()) {
    if (has_key) throw ValueError("private_key: there is no certificate");
    return absl::OkStatus();
  }
  absl::StatusOr<Text> text =
      ReadOption("certificate", options.certificate_file, options.certificate_pem);
  if (!text.ok()) return text.status();
  std::vector<OpenSslPtr<X509>> certificates;
  absl::Status read = ReadCertificates(*text, &certificates);
  if (!read.ok()) return read;
  if (certificates.empty()) return Invalid(text->what, "there is no certificate in it");
  if (SSL_CTX_use_certificate(context, certificates.front().get()) != 1) return Invalid(text->what);
  for (size_t i = 1; i < certificates.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, certificates[i].get()) != 1) return Invalid(text->what);
  }
  if (has_key) {
    text = ReadOption("private_key", options.private_key_file, options.private_key_pem);
    if (!text.ok()) return text.status();
  }
  return UseKey(*text, options.private_key_password, context);
}

absl::Status LoadAuthorities(const TlsOptions& options, bool are_named, SSL_CTX* context) {
  absl::StatusOr<Text> text = ReadOption("ca", options.ca_file, options.ca_pem);
  if (!text.ok()) return text.status();
  std::vector<OpenSslPtr<X509>> certificates;
  absl::Status read = ReadCertificates(*text, &certificates);
  if (!read.ok()) return read;
  if (certificates.empty()) return Invalid(text->what, "there is no certificate in it");
  if (are_named) {
    for (const OpenSslPtr<X509>& certificate : certificates) {
      if (SSL_CTX_add_client_CA(context, certificate.get()) != 1) return Invalid(text->what);
    }
  }
  return Believe(certificates, context);
}

absl::Status LoadSystemAuthorities(SSL_CTX* context) {
  std::vector<OpenSslPtr<X509>> certificates;
  const char* const file = std::getenv(X509_get_default_cert_file_env());
  const char* const directories = std::getenv(X509_get_default_cert_dir_env());
  if (file != nullptr) AppendCertificates(file, &certificates);
  if (directories != nullptr) {
    for (const std::string_view path : absl::StrSplit(directories, ':')) {
      AppendDirectory(std::string(path), &certificates);
    }
  }
  const bool is_told = file != nullptr || directories != nullptr;
  for (const char* path : {
           X509_get_default_cert_file(),
           "/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch.
           "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora.
           "/etc/ssl/ca-bundle.pem",              // SUSE.
           "/etc/ssl/cert.pem",                   // Alpine, BSD, macOS.
       }) {
    if (is_told || !certificates.empty()) break;
    AppendCertificates(path, &certificates);
  }
  if (!is_told && certificates.empty()) {
    AppendDirectory(X509_get_default_cert_dir(), &certificates);
  }
  if (certificates.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("authorities of the system: none found",
                     is_told ? absl::StrCat(" where ", X509_get_default_cert_file_env(), " and ",
                                            X509_get_default_cert_dir_env(), " say")
                             : absl::StrCat(" in ", X509_get_default_cert_file(), " and the like"),
                     "; install them (Debian: ca-certificates), or set ca_file"));
  }
  return Believe(certificates, context);
}

}  // namespace weft::internal
