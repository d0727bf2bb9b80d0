// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs a program of the oracle's language under weft and prints its trace.
//
//   tools/bazel run //testing/oracle:player -- $PWD/testing/oracle/programs/ring.weft
//   python3 testing/oracle/asyncio_oracle.py generate 7 | .../player -
//
// Exit code 2: the program cannot be read, or is not in order.

#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "weft/testing/oracle/play.h"
#include "weft/testing/oracle/program.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: player FILE    (-: standard input)\n");
    return 2;
  }
  const std::string path = argv[1];
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  } else {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "player: cannot read %s\n", path.c_str());
      return 2;
    }
    text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  absl::StatusOr<weft::oracle::Program> program = weft::oracle::ParseProgram(text);
  if (!program.ok()) {
    std::fprintf(stderr, "player: %s: %s\n", path.c_str(),
                 std::string(program.status().message()).c_str());
    return 2;
  }
  const std::string trace = weft::oracle::Play(*program);
  std::fwrite(trace.data(), 1, trace.size(), stdout);
  return 0;
}
