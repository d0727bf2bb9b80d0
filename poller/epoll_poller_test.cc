// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What every poller promises, and then what is epoll's own.

#include "weft/poller/epoll_poller.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Epoll, PollerConformanceTest, ::testing::Values(&MakeEpollPoller));

class EpollPollerTest : public PollerConformanceTest {};

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
