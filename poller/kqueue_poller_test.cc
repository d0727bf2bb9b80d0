// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What every poller promises, and then what is kqueue's own. On Linux this runs over a
// stand-in, see testing/kqueue_stand_in.

#include "weft/poller/kqueue_poller.h"

#include <fcntl.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

INSTANTIATE_TEST_SUITE_P(Kqueue, PollerConformanceTest, ::testing::Values(&MakeKqueuePoller));

class KqueuePollerTest : public PollerConformanceTest {
 protected:
  // A pipe that nobody reads.
  NativeHandle BrokenPipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    CloseNow(fds[0]);
    return Own(fds[1]);
  }
};

INSTANTIATE_TEST_SUITE_P(Kqueue, KqueuePollerTest, ::testing::Values(&MakeKqueuePoller));

TEST_P(KqueuePollerTest, OpensNoDescriptorBeforeItIsNeeded) {
  const int before = OpenHandleCount();
  const std::unique_ptr<Poller> lazy = MakeKqueuePoller();
  ReadyQueue done;

  lazy->MakeWaker()->Wake();
  EXPECT_TRUE(lazy->Wait(TimePoint::InfinitePast(), &done).ok());

  EXPECT_EQ(OpenHandleCount(), before);
}

// The filter is refused, so no event will ever come.
TEST_P(KqueuePollerTest, ARefusedFilterIsReadyEachTimeSomebodyWaits) {
  const NativeHandle pipe = BrokenPipe();
  TestOperation wait;
  wait.PrepareWaitWritable(pipe);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Do(&wait), 0);
    wait.runs = 0;
    if (i == 0) wait.flags |= kWaitAgain;
  }
  // And silent when nobody does.
  const TimePoint deadline = In(5);
  EXPECT_EQ(Round(deadline), 0);
  EXPECT_GE(Now(), deadline);
}

TEST_P(KqueuePollerTest, AHandleWithARefusedFilterCanBeRetiredWhileSomebodyWaits) {
  const NativeHandle pipe = BrokenPipe();
  TestOperation wait;
  wait.PrepareWaitWritable(pipe);
  Start(&wait);

  EXPECT_EQ(Retire(pipe), 0);

  EXPECT_EQ(RunUntilDone(&wait), -ECANCELED);
}

TEST_P(KqueuePollerTest, TheTimerForAForeignLoopEndsNoSleep) {
  ASSERT_NE(poller().BackendFd(), kInvalidHandle);
  poller().ArmBackend(In(2));
  const TimePoint deadline = In(10);

  Round(deadline);

  EXPECT_GE(Now(), deadline);
}

}  // namespace weft
