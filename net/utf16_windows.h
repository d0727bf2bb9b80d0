// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_UTF16_WINDOWS_H_
#define WEFT_NET_UTF16_WINDOWS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::internal {

// Names of files, hosts and programs are UTF-8 in weft, and UTF-16 in Windows.

// Errors: INVALID_ARGUMENT [EILSEQ] if `text` is no UTF-8; `what` says what it is.
absl::StatusOr<std::wstring> ToUtf16(std::string_view text, std::string_view what);

// What is no UTF-16, as names of files may be, becomes U+FFFD.
std::string FromUtf16(std::wstring_view text);

}  // namespace weft::internal

#endif  // WEFT_NET_UTF16_WINDOWS_H_
