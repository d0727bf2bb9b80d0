// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <pthread.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "weft/executor/thread_name.h"

namespace weft::internal {

void SetThreadName(const std::string& prefix, int number) {
  // pthread_setname_np(3): 16 bytes with the final null, else ERANGE.
  constexpr size_t kLongest = 15;
  const std::string suffix = absl::StrCat("_", number);
  const std::string name = absl::StrCat(prefix.substr(0, kLongest - suffix.size()), suffix);
  ::pthread_setname_np(::pthread_self(), name.c_str());
}

}  // namespace weft::internal
