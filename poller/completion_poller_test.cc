// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Over a kernel that the test plays: a test sees what is asked, and in which order, and
// says how it ends.

#include "weft/poller/completion_poller.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/socket_api.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Op final : Operation {
  Op() : Operation([](Runnable*) {}) {}
};

struct TestEntry : CompletionEntry {
  bool holds_lent() const { return is_here; }

  bool is_here = false;  // What was announced.
};

class PlayedPoller final : public CompletionPoller<TestEntry, CompletionNote> {
 public:
  ~PlayedPoller() override { Drain(); }

  std::string_view name() const override { return "played"; }
  std::shared_ptr<Waker> MakeWaker() override { return nullptr; }

  // Asks for what there is; the kernel does what it is told to.
  absl::Status Wait(TimePoint, ReadyQueue* done) override {
    Collect(done);
    while (TestEntry* entry = PopDirty()) AskFor(entry, done);
    // At the end: it lets go of all.
    if (ends_all) {
      while (!in_flight.empty()) Answer(in_flight.front(), -ECANCELED, done);
    }
    done->Splice(&late_);
    return absl::OkStatus();
  }

  // The kernel has done it.
  void Answer(Operation* op, int64_t result, ReadyQueue* done) {
    in_flight.erase(std::find(in_flight.begin(), in_flight.end(), op));
    LeaveKernel(op);
    if (IsWait(op)) return EndWaits(op, result, done);
    if (op->opcode == OpCode::kRecvLent && result == 0) Announce(EntryOf(op), op);
    End(op, result, done);
  }

  // Has not done it, for no reason.
  void PutOff(Operation* op) {
    in_flight.erase(std::find(in_flight.begin(), in_flight.end(), op));
    LeaveKernel(op);
    MarkDirty(EntryOf(op));
  }

  void HoldAnnounced(NativeHandle handle) { entries_.Find(handle)->is_here = true; }

  std::vector<Operation*> in_flight;  // In the order of asking.
  std::vector<std::string> calls;
  int64_t begin = kWouldBlock;
  int64_t ask = kAsked;
  int64_t fetch = 7;
  bool ends_all = false;

 private:
  int64_t Begin(TestEntry*, Operation*) override { return begin; }
  int64_t Ask(TestEntry*, Operation* op) override {
    if (ask != kAsked) return ask;
    in_flight.push_back(op);
    EnterKernel(op);
    return kAsked;
  }
  int64_t Fetch(TestEntry*, Operation*, SlabPool*, Slab*) override { return fetch; }
  void CancelInFlight(TestEntry*) override { calls.push_back("cancel"); }
  void TryWrites(TestEntry*) override { calls.push_back("try writes"); }
  int64_t Close(TestEntry* entry, NativeHandle, bool keeps) override {
    calls.push_back(std::string(keeps ? "keep" : "close") + (entry == nullptr ? " unknown" : ""));
    return 0;
  }
};

class CompletionPollerTest : public ::testing::Test {
 protected:
  CompletionPollerTest() : a_(Open()), b_(Open()) {}
  ~CompletionPollerTest() override {
    poller_->ends_all = true;
    poller_.reset();
    SystemSocketApi()->Close(a_);
    SystemSocketApi()->Close(b_);
  }

  static NativeHandle Open() {
    return SystemSocketApi()->Open(SocketDomain::kInet, SocketType::kStream);
  }

  // Lives as long as the poller.
  Op& NewOp() { return ops_.emplace_back(); }

  // What is given back by now, in order.
  std::vector<Operation*> GivenBack() {
    EXPECT_TRUE(poller_->Wait(TimePoint::InfinitePast(), &done_).ok());
    std::vector<Operation*> ops;
    while (Runnable* next = done_.PopFront()) ops.push_back(static_cast<Operation*>(next));
    return ops;
  }
  std::vector<Operation*> AnswerTo(Operation* op, int64_t result) {
    poller_->Answer(op, result, &done_);
    return GivenBack();
  }

  void StartAll(const std::vector<Operation*>& ops) {
    for (Operation* op : ops) EXPECT_EQ(poller_->Start(op), StartResult::kPending);
  }

  char buffer_[8];
  std::deque<Op> ops_;
  const NativeHandle a_;
  const NativeHandle b_;
  ReadyQueue done_;
  std::unique_ptr<PlayedPoller> poller_ = std::make_unique<PlayedPoller>();
};

TEST_F(CompletionPollerTest, AsksOnlyForTheFirstOfEachDirection) {
  Op &recv1 = NewOp(), &recv2 = NewOp(), &send = NewOp(), &other = NewOp();
  recv1.PrepareRecv(a_, buffer_, 1);
  recv2.PrepareRecv(a_, buffer_, 1);
  send.PrepareSend(a_, buffer_, 1);
  other.PrepareRecv(b_, buffer_, 1);
  StartAll({&recv1, &recv2, &send, &other});

  EXPECT_THAT(GivenBack(), IsEmpty());
  EXPECT_THAT(poller_->in_flight, ElementsAre(&recv1, &send, &other));

  EXPECT_THAT(AnswerTo(&recv1, 1), ElementsAre(&recv1));
  EXPECT_EQ(recv1.result, 1);
  EXPECT_THAT(poller_->in_flight, ElementsAre(&send, &other, &recv2));
}

TEST_F(CompletionPollerTest, WhatIsDoneAtOnceIsNotGivenBackAgain) {
  Op& recv = NewOp();
  recv.PrepareRecv(a_, buffer_, 1);
  poller_->begin = 5;

  EXPECT_EQ(poller_->Start(&recv), StartResult::kDone);

  EXPECT_EQ(recv.result, 5);
  EXPECT_EQ(poller_->pending(), 0u);
  EXPECT_THAT(GivenBack(), IsEmpty());
}

TEST_F(CompletionPollerTest, WhatIsDoneWhenAskedForLeavesTheTurnToTheNext) {
  Op &recv1 = NewOp(), &recv2 = NewOp();
  recv1.PrepareRecv(a_, buffer_, 1);
  recv2.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv1, &recv2});
  poller_->ask = -ENOMEM;

  EXPECT_THAT(GivenBack(), ElementsAre(&recv1, &recv2));
  EXPECT_EQ(recv2.result, -ENOMEM);
}

TEST_F(CompletionPollerTest, WhatMeantNothingIsAskedForOnceMoreAndKeepsItsPlace) {
  Op &recv1 = NewOp(), &recv2 = NewOp();
  recv1.PrepareRecv(a_, buffer_, 1);
  recv2.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv1, &recv2});
  GivenBack();

  poller_->PutOff(&recv1);

  EXPECT_THAT(GivenBack(), IsEmpty());
  EXPECT_THAT(poller_->in_flight, ElementsAre(&recv1));
}

TEST_F(CompletionPollerTest, OneWaitIsAskedForAndSaysItForAll) {
  Op &writable = NewOp(), &readable1 = NewOp(), &readable2 = NewOp();
  writable.PrepareWaitWritable(a_);
  readable1.PrepareWaitReadable(a_);
  readable2.PrepareWaitReadable(a_);
  StartAll({&writable, &readable1, &readable2});
  GivenBack();
  ASSERT_THAT(poller_->in_flight, ElementsAre(&readable1, &writable));

  poller_->Answer(&writable, 0, &done_);
  poller_->Answer(&readable1, 0, &done_);

  EXPECT_THAT(GivenBack(), ElementsAre(&readable1, &readable2, &writable));
}

TEST_F(CompletionPollerTest, WhenTheWaitThatIsAskedForIsCancelledTheNextIs) {
  Op &readable1 = NewOp(), &readable2 = NewOp();
  readable1.PrepareWaitReadable(a_);
  readable2.PrepareWaitReadable(a_);
  StartAll({&readable1, &readable2});
  GivenBack();

  poller_->Cancel(&readable1);

  EXPECT_THAT(AnswerTo(&readable1, -ECANCELED), ElementsAre(&readable1));
  EXPECT_THAT(poller_->in_flight, ElementsAre(&readable2));
}

TEST_F(CompletionPollerTest, WhatTheKernelHasNotSeenEndsAtOnce) {
  Op &recv1 = NewOp(), &recv2 = NewOp();
  recv1.PrepareRecv(a_, buffer_, 1);
  recv2.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv1, &recv2});
  GivenBack();

  poller_->Cancel(&recv2);

  EXPECT_THAT(poller_->calls, IsEmpty());
  EXPECT_THAT(GivenBack(), ElementsAre(&recv2));
  EXPECT_EQ(recv2.result, -ECANCELED);
}

TEST_F(CompletionPollerTest, WhatIsInFlightEndsWhenTheKernelSaysSo) {
  Op& recv = NewOp();
  recv.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv});
  GivenBack();

  poller_->Cancel(&recv);

  EXPECT_THAT(poller_->calls, ElementsAre("cancel"));
  EXPECT_THAT(GivenBack(), IsEmpty());
  EXPECT_EQ(recv.state, Operation::State::kPending);
  EXPECT_THAT(AnswerTo(&recv, 3), ElementsAre(&recv));  // It was faster.
  EXPECT_EQ(recv.result, 3);
}

TEST_F(CompletionPollerTest, WritesAreTriedBeforeTheyAreCancelled) {
  Op& send = NewOp();
  send.PrepareSend(a_, buffer_, 1);
  StartAll({&send});

  poller_->Cancel(&send);

  EXPECT_THAT(poller_->calls, ElementsAre("try writes"));
}

TEST_F(CompletionPollerTest, ClosesWhenNothingIsInFlightAndGivesBackInTheOrderOfStarting) {
  Op &send = NewOp(), &recv1 = NewOp(), &readable = NewOp(), &recv2 = NewOp(), &retire = NewOp();
  send.PrepareSend(a_, buffer_, 1);
  recv1.PrepareRecv(a_, buffer_, 1);
  readable.PrepareWaitReadable(a_);
  recv2.PrepareRecv(a_, buffer_, 1);
  StartAll({&send, &recv1, &readable, &recv2});
  GivenBack();

  retire.PrepareRetire(a_);
  StartAll({&retire});
  EXPECT_THAT(AnswerTo(&recv1, 4), IsEmpty());
  EXPECT_THAT(AnswerTo(&readable, -ECANCELED), IsEmpty());
  EXPECT_THAT(poller_->calls, ElementsAre("try writes", "cancel"));

  EXPECT_THAT(AnswerTo(&send, -ECANCELED), ElementsAre(&send, &recv1, &readable, &recv2, &retire));
  EXPECT_EQ(recv1.result, 4);
  EXPECT_EQ(recv2.result, -ECANCELED);
  EXPECT_THAT(poller_->calls, ElementsAre("try writes", "cancel", "close"));
  EXPECT_EQ(poller_->pending(), 0u);
}

TEST_F(CompletionPollerTest, NothingIsStartedOnWhatIsRetiring) {
  Op &recv = NewOp(), &retire = NewOp(), &late = NewOp(), &again = NewOp();
  recv.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv});
  GivenBack();
  retire.PrepareRetire(a_);
  StartAll({&retire});

  late.PrepareSend(a_, buffer_, 1);
  EXPECT_EQ(poller_->Start(&late), StartResult::kDone);
  EXPECT_EQ(late.result, -EBADF);
  again.PrepareRetire(a_);
  StartAll({&again});
  EXPECT_THAT(GivenBack(), ElementsAre(&again));
  EXPECT_EQ(again.result, -EBADF);

  poller_->Cancel(&retire);  // It is on its way.
  EXPECT_THAT(AnswerTo(&recv, -ECANCELED), ElementsAre(&recv, &retire));
}

TEST_F(CompletionPollerTest, WhatWasNeverUsedIsOnlyClosed) {
  Op &recv = NewOp(), &retire = NewOp(), &none = NewOp();
  recv.PrepareRecv(NativeHandle{1} << 40, buffer_, 1);
  EXPECT_EQ(poller_->Start(&recv), StartResult::kDone);
  EXPECT_EQ(recv.result, -EBADF);

  none.PrepareRetire(kInvalidHandle);
  retire.PrepareRetire(a_);
  StartAll({&none, &retire});

  EXPECT_THAT(GivenBack(), ElementsAre(&none, &retire));
  EXPECT_EQ(none.result, -EBADF);
  EXPECT_THAT(poller_->calls, ElementsAre("close unknown"));
}

TEST_F(CompletionPollerTest, LaterReadsWaitUntilWhatWasAnnouncedIsFetched) {
  Op &lent = NewOp(), &recv = NewOp();
  lent.PrepareRecvLent(a_);
  recv.PrepareRecv(a_, buffer_, 1);
  StartAll({&lent, &recv});
  GivenBack();
  EXPECT_THAT(AnswerTo(&lent, 0), ElementsAre(&lent));
  EXPECT_THAT(poller_->in_flight, IsEmpty());

  Slab slab;
  EXPECT_EQ(poller_->FetchLent(&lent, nullptr, &slab), StartResult::kDone);

  EXPECT_EQ(lent.result, 7);
  GivenBack();
  EXPECT_THAT(poller_->in_flight, ElementsAre(&recv));
}

TEST_F(CompletionPollerTest, AFalseAlarmWaitsAgainBeforeThoseBehindIt) {
  Op &lent = NewOp(), &recv = NewOp();
  lent.PrepareRecvLent(a_);
  recv.PrepareRecv(a_, buffer_, 1);
  StartAll({&lent, &recv});
  GivenBack();
  AnswerTo(&lent, 0);

  Slab slab;
  poller_->fetch = kWouldBlock;
  EXPECT_EQ(poller_->FetchLent(&lent, nullptr, &slab), StartResult::kPending);

  GivenBack();
  EXPECT_THAT(poller_->in_flight, ElementsAre(&lent));
}

TEST_F(CompletionPollerTest, WhoGivesUpItsTurnLeavesItToTheNext) {
  Op &lent = NewOp(), &recv = NewOp();
  lent.PrepareRecvLent(a_);
  recv.PrepareRecv(a_, buffer_, 1);
  StartAll({&lent, &recv});
  GivenBack();
  AnswerTo(&lent, 0);

  poller_->Cancel(&lent);

  EXPECT_EQ(lent.result, -ECANCELED);
  EXPECT_THAT(GivenBack(), IsEmpty());
  EXPECT_THAT(poller_->in_flight, ElementsAre(&recv));
}

TEST_F(CompletionPollerTest, WhatWasAnnouncedIsGoneWithTheHandleUnlessItIsHere) {
  for (const bool is_here : {false, true}) {
    Op &lent = NewOp(), &retire = NewOp();
    lent.PrepareRecvLent(a_);
    StartAll({&lent});
    GivenBack();
    AnswerTo(&lent, 0);
    if (is_here) poller_->HoldAnnounced(a_);

    retire.PrepareRetire(a_, kKeepOpen);
    StartAll({&retire});
    EXPECT_THAT(GivenBack(), ElementsAre(&retire));

    Slab slab;
    EXPECT_EQ(poller_->FetchLent(&lent, nullptr, &slab), StartResult::kDone);
    EXPECT_EQ(lent.result, is_here ? 7 : -ECANCELED);
  }
  EXPECT_THAT(poller_->calls, ElementsAre("try writes", "keep", "try writes", "keep"));
}

TEST_F(CompletionPollerTest, AtTheEndTheKernelLetsGoAndNobodyIsTold) {
  Op &recv1 = NewOp(), &recv2 = NewOp();
  recv1.PrepareRecv(a_, buffer_, 1);
  recv2.PrepareRecv(a_, buffer_, 1);
  StartAll({&recv1, &recv2});
  GivenBack();

  poller_->ends_all = true;
  poller_ = std::make_unique<PlayedPoller>();

  for (Op* op : {&recv1, &recv2}) {
    EXPECT_EQ(op->state, Operation::State::kDone);
    EXPECT_EQ(op->result, -ECANCELED);
    EXPECT_FALSE(op->is_linked());
  }
}

}  // namespace
}  // namespace weft::internal
