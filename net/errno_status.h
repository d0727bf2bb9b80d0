// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_ERRNO_STATUS_H_
#define WEFT_NET_ERRNO_STATUS_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace weft {

// What the operating system said about I/O, as a status that tells what was
// tried, on what, what the answer means and what it is called:
//
//   ErrnoStatus(-ECONNREFUSED, "connect to 127.0.0.1:1")
//   UNAVAILABLE: connect to 127.0.0.1:1: Connection refused [ECONNREFUSED]
//
// `result` is a negated errno, as `Operation::result` and `SocketApi` have it.
// The code is absl::ErrnoToStatusCode()'s.
absl::Status ErrnoStatus(int64_t result, std::string_view tried);

// The errno that such a status was made of; 0 for any other.
int ErrnoOf(const absl::Status& status);

// "ECONNREFUSED"; empty for a number that has no name here.
std::string_view ErrnoName(int error);

namespace internal {

// The same without the name, by what the platform has for it.
absl::Status NamelessErrnoStatus(int error, std::string_view tried);

}  // namespace internal

}  // namespace weft

#endif  // WEFT_NET_ERRNO_STATUS_H_
