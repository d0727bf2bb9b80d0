// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/pipe_waker_posix.h"

#include <poll.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(PipeWakerTest, RemembersAWakeFromBeforeItWasOpened) {
  PipeWaker waker;
  waker.Wake();
  waker.Wake();

  EXPECT_TRUE(IsReadable(waker.Open()));
}

TEST(PipeWakerTest, IsQuietUntilSomebodyWakes) {
  PipeWaker waker;
  const int fd = waker.Open();
  EXPECT_FALSE(IsReadable(fd));
  EXPECT_EQ(waker.Open(), fd);

  waker.Wake();

  EXPECT_TRUE(IsReadable(fd));
}

TEST(PipeWakerTest, AFullPipeIsReadableUntilItIsDrained) {
  PipeWaker waker;
  const int fd = waker.Open();

  for (int i = 0; i < 200'000; ++i) waker.Wake();

  EXPECT_TRUE(IsReadable(fd));
  waker.Drain();
  EXPECT_FALSE(IsReadable(fd));
  waker.Wake();
  EXPECT_TRUE(IsReadable(fd));
}

}  // namespace
}  // namespace weft::internal
