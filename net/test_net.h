// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_TEST_NET_H_
#define WEFT_NET_TEST_NET_H_

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weft/core/coro.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/socket.h"
#include "weft/net/stream.h"

namespace weft {

// How many descriptors this process has open.
inline int CountDescriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  int count = -3;  // ".", "..", and the one that reads.
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

// Runs `main` on a loop of its own, and checks that no descriptor is left. The real
// clock: a test that hangs is ended by the test's timeout.
inline void RunTest(const std::function<Coro<void>()>& main) {
  const int before = CountDescriptors();
  Run(main());
  EXPECT_EQ(CountDescriptors(), before) << "descriptors are leaked";
}

// Two ends of a connection, as streams.
struct StreamPair {
  StreamPair() {
    auto sockets = Socket::Pair();
    a = ToConnection(std::move(sockets->first));
    b = ToConnection(std::move(sockets->second));
  }

  Connection a;
  Connection b;
};

// A short path: that of a Unix socket may have no more than 107 characters.
class ShortDirectory {
 public:
  ShortDirectory() { EXPECT_NE(::mkdtemp(path_), nullptr); }
  ~ShortDirectory() { ::rmdir(path_); }
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  char path_[32] = "/tmp/weft.XXXXXX";
};

// Lets the loop run `count` rounds.
inline Coro<void> Rounds(int count) {
  for (int i = 0; i < count; ++i) co_await Yield();
}

}  // namespace weft

#endif  // WEFT_NET_TEST_NET_H_
