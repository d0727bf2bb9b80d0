// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Where nobody has tried yet to run CPython: what it said once, of the programs of
// programs/, is compared all the same.

#include "absl/status/status.h"
#include "weft/testing/oracle/oracle.h"

namespace weft::oracle {

absl::StatusOr<std::unique_ptr<Oracle>> Oracle::Start() {
  return absl::NotFoundError("CPython is not run on Windows");
}

Oracle::~Oracle() = default;

void Oracle::Write(std::string_view) {}

bool Oracle::Read(size_t, std::string*) { return false; }

}  // namespace weft::oracle
