// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ORACLE_PLAY_H_
#define WEFT_TESTING_ORACLE_PLAY_H_

#include <string>

#include "weft/testing/oracle/program.h"

namespace weft::oracle {

// Runs `program` on an EventLoop in virtual time and returns the trace: the same
// bytes that asyncio_oracle.py prints for it. See README.md.
std::string Play(const Program& program);

}  // namespace weft::oracle

#endif  // WEFT_TESTING_ORACLE_PLAY_H_
