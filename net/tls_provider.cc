// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/tls_provider.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft::internal {
namespace {

void CheckTimeout(std::string_view name, absl::Duration timeout) {
  if (timeout > absl::ZeroDuration()) return;
  throw ValueError(
      absl::StrCat(name, " should be a positive number, got ", absl::FormatDuration(timeout)));
}

}  // namespace

void CheckTls(const TlsProvider& tls, bool is_server, const StartTlsOptions& options) {
  if (tls.factory() == nullptr) throw ValueError("tls: the context is empty");
  if (tls.factory()->is_server() != is_server) {
    throw ValueError(is_server ? "tls: a server cannot use a client's context"
                               : "tls: a client cannot use a server's context");
  }
  CheckTimeout("tls_handshake_timeout", options.handshake_timeout);
  CheckTimeout("tls_shutdown_timeout", options.shutdown_timeout);
  tls.factory()->Check(options);
}

}  // namespace weft::internal
