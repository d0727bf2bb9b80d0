// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/fake_poller.h"

#include <cerrno>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Op final : Operation {
  Op() : Operation([](Runnable*) {}) {}
};

class FakePollerTest : public ::testing::Test {
 protected:
  FakePoller poller_;
  ReadyQueue done_;
};

TEST_F(FakePollerTest, KeepsWhatIsStartedUntilTheTestFinishesIt) {
  Op op;
  op.PrepareRecv(3, nullptr, 0);

  EXPECT_EQ(poller_.Start(&op), StartResult::kPending);
  EXPECT_THAT(poller_.started(), ElementsAre(&op));
  EXPECT_EQ(poller_.pending(), 1u);
  poller_.Finish(&op, 5);
  EXPECT_TRUE(poller_.Wait(TimePoint::InfiniteFuture(), &done_).ok());

  EXPECT_EQ(done_.PopFront(), &op);
  EXPECT_EQ(op.result, 5);
  EXPECT_THAT(poller_.started(), IsEmpty());
  EXPECT_THAT(poller_.deadlines(), ElementsAre(TimePoint::InfiniteFuture()));
}

TEST_F(FakePollerTest, FinishesInlineWhenTold) {
  Op op;
  op.PrepareSend(3, "x", 1);
  poller_.FinishNextInline(1);

  EXPECT_EQ(poller_.Start(&op), StartResult::kDone);
  EXPECT_EQ(op.result, 1);
}

TEST_F(FakePollerTest, CancelAndRetireEndWhatIsPending) {
  Op one, two, other, retire;
  one.PrepareRecv(3, nullptr, 0);
  two.PrepareRecv(3, nullptr, 0);
  other.PrepareRecv(4, nullptr, 0);
  retire.PrepareRetire(3);
  for (Op* op : {&one, &two, &other}) poller_.Start(op);

  poller_.Cancel(&two);
  EXPECT_EQ(poller_.Start(&retire), StartResult::kPending);

  EXPECT_TRUE(poller_.Collect(&done_));
  EXPECT_EQ(done_.PopFront(), &two);
  EXPECT_EQ(done_.PopFront(), &one);
  EXPECT_EQ(done_.PopFront(), &retire);
  EXPECT_EQ(one.result, -ECANCELED);
  EXPECT_THAT(poller_.retired(), ElementsAre(3));
  EXPECT_EQ(poller_.pending(), 1u);
  poller_.CancelAll();
  EXPECT_EQ(poller_.pending(), 0u);
  EXPECT_EQ(other.result, -ECANCELED);
}

TEST_F(FakePollerTest, LendsWhatItWasFed) {
  Op op;
  op.PrepareRecvLent(3);
  SlabPool pool;
  Slab slab;
  poller_.Start(&op);
  poller_.Finish(&op, 0);
  poller_.Wait(TimePoint::InfinitePast(), &done_).IgnoreError();
  done_.Clear();

  EXPECT_EQ(poller_.FetchLent(&op, &pool, &slab), StartResult::kPending);
  poller_.FeedLent(3, "bytes");
  poller_.Finish(&op, 0);
  poller_.Wait(TimePoint::InfinitePast(), &done_).IgnoreError();
  done_.Clear();

  EXPECT_EQ(poller_.FetchLent(&op, &pool, &slab), StartResult::kDone);
  EXPECT_EQ(std::string(slab.data(), 5), "bytes");
}

TEST_F(FakePollerTest, CountsWakesAlsoWhenItHasGone) {
  std::shared_ptr<Waker> waker;
  {
    FakePoller poller;
    waker = poller.MakeWaker();
    waker->Wake();
    EXPECT_EQ(poller.wake_count(), 1);
  }
  waker->Wake();
}

TEST_F(FakePollerTest, FailsAWaitWhenTold) {
  poller_.FailNextWait(absl::InternalError("broken"));

  EXPECT_FALSE(poller_.Wait(TimePoint::InfinitePast(), &done_).ok());
  EXPECT_TRUE(poller_.Wait(TimePoint::InfinitePast(), &done_).ok());
}

}  // namespace
}  // namespace weft
