// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_TESTING_ORACLE_ORACLE_H_
#define WEFT_TESTING_ORACLE_ORACLE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace weft::oracle {

// Oracle
//
// CPython, running oracle_server.py: gives random programs and the traces that
// programs have under asyncio. Questions are answered in their order, and may be
// asked ahead, so that both sides work at the same time.
//
//   oracle->AskRandom(/*seed=*/7, /*size=*/3);
//   absl::StatusOr<Oracle::Answer> answer = oracle->Read();
//
// Threads: one.
class Oracle {
 public:
  struct Answer {
    Answer() {}

    std::string program;
    std::string trace;
    bool is_valid = false;  // False: CPython has no answer, `trace` is empty.
  };

  // Errors: NOT_FOUND if there is no python3 of version 3.11 or later.
  static absl::StatusOr<std::unique_ptr<Oracle>> Start();
  Oracle(const Oracle&) = delete;
  ~Oracle();

  void AskRandom(int64_t seed, int size);
  void AskTrace(std::string_view program);
  absl::StatusOr<Answer> Read();

 private:
  Oracle(pid_t process, int to, int from) : process_(process), to_(to), from_(from) {}

  void Write(std::string_view text);
  bool Read(size_t count, std::string* text);
  absl::StatusOr<std::string> ReadLine();

  pid_t process_;
  int to_;
  int from_;
  std::string buffer_;  // Read, and not asked for yet.
};

// The size of the program with that seed, when sizes are mixed: 1 to 5.
inline int MixedSize(int64_t seed) { return static_cast<int>(1 + seed % 5); }

// The first line in which two traces differ, of both, for people.
std::string DescribeDifference(std::string_view expected, std::string_view actual);

}  // namespace weft::oracle

#endif  // WEFT_TESTING_ORACLE_ORACLE_H_
