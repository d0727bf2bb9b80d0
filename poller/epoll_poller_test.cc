// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What every poller promises, and then what epoll adds: a descriptor to embed it
// by.

#include "weft/poller/epoll_poller.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Epoll, PollerConformanceTest, ::testing::Values(&MakeEpollPoller));

class EpollPollerTest : public PollerConformanceTest {
 protected:
  // Whether a foreign loop would find it readable now.
  static bool IsReadable(NativeHandle handle, int timeout_ms = 0) {
    pollfd entry = {static_cast<int>(handle), POLLIN, 0};
    return ::poll(&entry, 1, timeout_ms) == 1;
  }
};

INSTANTIATE_TEST_SUITE_P(Epoll, EpollPollerTest, ::testing::Values(&MakeEpollPoller));

TEST_P(EpollPollerTest, Works) { EXPECT_TRUE(ProbeEpoll().ok()); }

TEST_P(EpollPollerTest, OpensNoDescriptorBeforeItIsNeeded) {
  const int before = OpenHandleCount();
  const std::unique_ptr<Poller> lazy = MakeEpollPoller();
  ReadyQueue done;

  lazy->MakeWaker()->Wake();
  EXPECT_TRUE(lazy->Wait(TimePoint::InfinitePast(), &done).ok());

  EXPECT_EQ(OpenHandleCount(), before);
}

TEST_P(EpollPollerTest, BackendFdIsReadableWhenAnOperationCanEnd) {
  const NativeHandle fd = poller().BackendFd();
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  Round();
  EXPECT_FALSE(IsReadable(fd));

  SendNow(pair.b, "x");

  EXPECT_TRUE(IsReadable(fd, 1'000));
  EXPECT_EQ(RunUntilDone(&recv), 1);
  Round();
  EXPECT_FALSE(IsReadable(fd));
  EXPECT_EQ(poller().BackendFd(), fd);
}

TEST_P(EpollPollerTest, BackendFdIsReadableWhenTheDeadlinePassesOrSomebodyWakes) {
  const NativeHandle fd = poller().BackendFd();

  poller().ArmBackend(In(3));
  EXPECT_TRUE(IsReadable(fd, 10'000));
  Round();
  EXPECT_FALSE(IsReadable(fd));

  poller().MakeWaker()->Wake();
  EXPECT_TRUE(IsReadable(fd));
  Round();
  EXPECT_FALSE(IsReadable(fd));
}

TEST_P(EpollPollerTest, BackendFdIsReadableWhenSomethingWaitsToBeCollected) {
  const NativeHandle fd = poller().BackendFd();
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  Round();
  poller().Cancel(&recv);

  poller().ArmBackend(TimePoint::InfiniteFuture());

  EXPECT_TRUE(IsReadable(fd, 1'000));
  EXPECT_EQ(RunUntilDone(&recv), -ECANCELED);
}

// The timer is not set again for a later deadline, so it expires for nobody.
TEST_P(EpollPollerTest, TheExpiryForADroppedDeadlineEndsNoSleep) {
  poller().MakeWaker()->Wake();
  Round(In(3));
  const TimePoint deadline = In(12);

  Round(deadline);

  EXPECT_GE(Now(), deadline);
}

// POLL 328
TEST_P(EpollPollerTest, AnEpollDescriptorCanBeWatched) {
  const int inner = ::epoll_create1(EPOLL_CLOEXEC);
  Own(inner);
  const Pair pair = StreamPair();
  epoll_event event = {};
  event.events = EPOLLIN;
  ASSERT_EQ(::epoll_ctl(inner, EPOLL_CTL_ADD, static_cast<int>(pair.a), &event), 0);
  TestOperation wait;
  wait.PrepareWaitReadable(inner);
  Start(&wait);
  EXPECT_EQ(Round(), 0);

  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&wait), 0);
}

}  // namespace weft
