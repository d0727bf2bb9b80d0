// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/eventfd_waker_linux.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdint>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(EventfdWakerTest, RemembersAWakeFromBeforeItWasOpened) {
  EventfdWaker waker;
  waker.Wake();
  waker.Wake();

  EXPECT_TRUE(IsReadable(waker.Open()));
}

TEST(EventfdWakerTest, IsQuietUntilSomebodyWakes) {
  EventfdWaker waker;
  const int fd = waker.Open();
  EXPECT_FALSE(IsReadable(fd));
  EXPECT_EQ(waker.Open(), fd);

  waker.Wake();

  EXPECT_TRUE(IsReadable(fd));
}

// The counter says "already signalled", but an edge may have been reported since:
// the wake has to make a new one.
TEST(EventfdWakerTest, WakesAlsoWhenTheCounterIsFull) {
  EventfdWaker waker;
  const int fd = waker.Open();
  const uint64_t full = UINT64_MAX - 1;
  ASSERT_EQ(::write(fd, &full, sizeof(full)), static_cast<ssize_t>(sizeof(full)));
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  ASSERT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
  ASSERT_EQ(::epoll_wait(epoll, &event, 1, 0), 1);
  ASSERT_EQ(::epoll_wait(epoll, &event, 1, 0), 0);

  waker.Wake();

  EXPECT_EQ(::epoll_wait(epoll, &event, 1, 0), 1);
  ::close(epoll);
}

TEST(EventfdWakerDeathTest, ABrokenChannelIsLoud) {
  EventfdWaker waker;
  const int fd = waker.Open();

  EXPECT_DEATH(
      {
        ::close(fd);
        waker.Wake();
      },
      "could never be woken");
}

}  // namespace
}  // namespace weft::internal
