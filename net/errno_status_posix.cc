// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/errno_status.h"

namespace weft::internal {

absl::Status NamelessErrnoStatus(int error, std::string_view tried) {
  return absl::ErrnoToStatus(error, tried);
}

}  // namespace weft::internal
