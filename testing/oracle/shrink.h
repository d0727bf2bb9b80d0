// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ORACLE_SHRINK_H_
#define WEFT_TESTING_ORACLE_SHRINK_H_

#include <functional>
#include <string>

namespace weft::oracle {

// The smallest program that is found by taking statements, blocks and procs out
// of `program` for which `still_fails` holds. That is asked only for programs
// that parse. REQUIRES: it holds for `program`, of one statement a line.
std::string Shrink(std::string program, const std::function<bool(const std::string&)>& still_fails);

}  // namespace weft::oracle

#endif  // WEFT_TESTING_ORACLE_SHRINK_H_
