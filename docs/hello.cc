// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The first program of the README.

// [snippet hello]
#include <cstdio>
#include <string>

#include "weft/weft.h"

weft::Coro<std::string> Fetch(std::string name) {
  co_await weft::Sleep(absl::Milliseconds(100));
  co_return "<" + name + ">";
}

weft::Coro<int> Main() {
  weft::Task<std::string> a = weft::CreateTask(Fetch("a"));  // Runs beside this task.
  std::string b = co_await Fetch("b");                       // A call, in this task.
  std::printf("%s %s after 0.1 s\n", (co_await a).c_str(), b.c_str());
  co_return 0;
}

int main() { return weft::Run(Main()); }
// [end]
