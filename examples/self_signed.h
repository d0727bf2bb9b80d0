// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_EXAMPLES_SELF_SIGNED_H_
#define WEFT_EXAMPLES_SELF_SIGNED_H_

#include <string>
#include <vector>

namespace weft {

// A certificate and its private key, as PEM.
struct SelfSigned {
  std::string certificate;
  std::string private_key;
};

// A new one for `names`, DNS names and IP addresses, that is valid for a day. To try
// things out: nobody believes it who is not told to. Both are empty if OpenSSL cannot.
SelfSigned MakeSelfSigned(const std::vector<std::string>& names);

}  // namespace weft

#endif  // WEFT_EXAMPLES_SELF_SIGNED_H_
