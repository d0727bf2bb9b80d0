// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ORACLE_PROGRAM_H_
#define WEFT_TESTING_ORACLE_PROGRAM_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace weft::oracle {

// The statements of the oracle's language; README.md says what each does.
// clang-format off
enum class Op {
  kYield, kSleep, kRepeat, kRaise, kReturn, kSpawn, kCall, kAwait, kCancelSelf, kUncancel,
  kCancelling, kSoon, kLater, kOnDone, kGather, kGatherThese, kWait, kWaitFor, kWaitForThis,
  kShield, kTimeout, kGroup, kStart, kTry, kWaitEvent, kLock, kSem, kCondWait, kNotify, kPut,
  kGet, kJoin, kArrive, kAbort, kReset,
  // Those that wait for nothing.
  kLog, kCancel, kDone, kDrop, kResolve, kFail, kSet, kClear, kTryPut, kTryGet, kTaskDone,
  kRelease,
};
// clang-format on

struct Statement;
using Block = std::vector<Statement>;

// One statement. Its arguments are sorted by kind, each kind in the order of the
// text: `later h1 3 set e1` has the word h1, the number 3, and a block of one.
struct Statement {
  Statement() {}

  Op op = Op::kYield;
  int line = 0;
  std::vector<std::string> words;
  std::vector<int64_t> numbers;
  std::vector<Block> blocks;
};

// A declaration: `queue q1 2`.
struct Object {
  Object() {}

  std::string kind;
  std::string name;
  int64_t number = 0;
};

// Program
//
// A program of the oracle's language that was found to be in order: every
// statement is known and has the arguments it takes, every proc it names exists.
struct Program {
  Program() {}

  std::vector<Object> objects;
  std::map<std::string, Block> procs;
};

// Errors: INVALID_ARGUMENT "line 7: ..." for the first thing that is wrong.
absl::StatusOr<Program> ParseProgram(std::string_view text);

}  // namespace weft::oracle

#endif  // WEFT_TESTING_ORACLE_PROGRAM_H_
