// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TEST_CERTIFICATES_H_
#define WEFT_NET_TEST_CERTIFICATES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace weft {

// A certificate for tests, and its key, as PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;
};

struct TestCertificateOptions {
  TestCertificateOptions() {}
  explicit TestCertificateOptions(std::vector<std::string> for_names)
      : names(std::move(for_names)) {}

  std::vector<std::string> names;  // DNS names and IP addresses.
  std::string common_name = "test";
  // From now.
  absl::Duration valid_from = -absl::Hours(1);
  absl::Duration valid_until = absl::Hours(1);
};

// Somebody who signs certificates, made for one test: so there is none in the
// repository that could expire.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& common_name = "test authority");
  TestAuthority(TestAuthority&&) noexcept;
  ~TestAuthority();

  // To be believed.
  const std::string& certificate() const { return certificate_; }

  TestCertificate Issue(const TestCertificateOptions& options) const;
  TestCertificate Issue(const std::string& name) const {
    return Issue(TestCertificateOptions({name}));
  }
  // One whose certificate is signed by this.
  TestAuthority IssueAuthority(const std::string& common_name) const;

 private:
  struct Signer;

  explicit TestAuthority(std::unique_ptr<Signer> signer);

  std::unique_ptr<Signer> signer_;
  std::string certificate_;
};

TestCertificate SelfSigned(const TestCertificateOptions& options);

// `key`, encrypted.
std::string EncryptKey(const std::string& key, const std::string& password);

}  // namespace weft

#endif  // WEFT_NET_TEST_CERTIFICATES_H_
