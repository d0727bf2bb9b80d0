// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The table over a kernel that the test plays: sockets are real, what is reported
// about them is not. So a test can see what is tried, and what is only parked.

#include "weft/poller/readiness_table.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReadinessTable* table_under_test = nullptr;

// Cancelled when it goes out of scope.
struct Op final : Operation {
  Op() : Operation([](Runnable*) {}) {}
  ~Op() { table_under_test->Cancel(this); }
};

// Remembers what it was asked, and answers what it is told to.
struct FakeSource final : ReadinessSource {
  int Watch(NativeHandle handle, uint32_t generation, Interest interest, bool is_known) override {
    std::string line = is_known ? "change" : "add";
    line += interest.edge ? " edge" : "";
    line += interest.read ? " read" : "";
    line += interest.write ? " write" : "";
    calls.push_back(line);
    last_generation = generation;
    last_handle = handle;
    const int answer = next_answer;
    next_answer = 0;
    return answer;
  }
  bool Forget(NativeHandle) override {
    calls.push_back("forget");
    return true;
  }

  std::vector<std::string> calls;
  uint32_t last_generation = 0;
  NativeHandle last_handle = kInvalidHandle;
  int next_answer = 0;
};

class ReadinessTableTest : public ::testing::Test {
 protected:
  ReadinessTableTest() {
    table_under_test = &table_;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, unix_), 0);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* native = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener, native, size), 0);
    EXPECT_EQ(::listen(listener, 1), 0);
    EXPECT_EQ(::getsockname(listener, native, &size), 0);
    tcp_[0] = ::socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(tcp_[0], native, size), 0);
    tcp_[1] = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    for (int fd : {unix_[0], unix_[1], tcp_[1]}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }

  ~ReadinessTableTest() override {
    for (int fd : {unix_[0], unix_[1], tcp_[0], tcp_[1]}) ::close(fd);
  }

  // Starts a receive of up to eight bytes.
  StartResult StartRecv(Op* op, int fd) {
    op->PrepareRecv(fd, buffer_, sizeof(buffer_));
    return table_.Start(op);
  }

  // Reports `fd` in the name of its current registration; what ended.
  std::vector<Runnable*> Report(int fd, Readiness readiness) {
    EXPECT_TRUE(table_.Report(fd, source_.last_generation, readiness, &done_));
    return Drain();
  }

  std::vector<Runnable*> Drain() {
    std::vector<Runnable*> ended;
    while (Runnable* next = done_.PopFront()) ended.push_back(next);
    return ended;
  }

  static void Send(int fd, std::string_view bytes) {
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }

  static constexpr Readiness kReadable = {.readable = true};
  static constexpr Readiness kHangUp = {.readable = true, .is_exceptional = true};

  int unix_[2];
  int tcp_[2];
  char buffer_[8];
  FakeSource source_;
  ReadyQueue ended_;
  ReadyQueue done_;
  size_t pending_ = 0;
  ReadinessTable table_{&source_, &ended_, &pending_};
};

TEST_F(ReadinessTableTest, WatchesAHandleOnceAndOnlyWhenItHasToWait) {
  Op recv, send;
  Send(unix_[1], "x");
  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kDone);
  EXPECT_THAT(source_.calls, IsEmpty());

  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kPending);
  send.PrepareSend(unix_[0], "y", 1);
  EXPECT_EQ(table_.Start(&send), StartResult::kDone);
  Send(unix_[1], "x");
  EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&recv));
  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kPending);

  EXPECT_THAT(source_.calls, ElementsAre("add edge"));
}

TEST_F(ReadinessTableTest, AfterAShortReadOfTcpNothingIsTried) {
  Op recv;
  StartRecv(&recv, tcp_[1]);
  Send(tcp_[0], "short");
  EXPECT_THAT(Report(tcp_[1], kReadable), ElementsAre(&recv));
  Send(tcp_[0], "more");

  EXPECT_EQ(StartRecv(&recv, tcp_[1]), StartResult::kPending);
  EXPECT_THAT(Report(tcp_[1], kReadable), ElementsAre(&recv));
  EXPECT_EQ(recv.result, 4);
}

TEST_F(ReadinessTableTest, AfterAFullReadOfTcpItIsTried) {
  Op recv;
  StartRecv(&recv, tcp_[1]);
  Send(tcp_[0], "12345678");
  Report(tcp_[1], kReadable);
  Send(tcp_[0], "more");

  EXPECT_EQ(StartRecv(&recv, tcp_[1]), StartResult::kDone);
}

TEST_F(ReadinessTableTest, AfterAPeekItIsTried) {
  Op peek, recv;
  peek.PrepareRecv(tcp_[1], buffer_, sizeof(buffer_), MSG_PEEK);
  table_.Start(&peek);
  Send(tcp_[0], "short");
  EXPECT_THAT(Report(tcp_[1], kReadable), ElementsAre(&peek));

  EXPECT_EQ(StartRecv(&recv, tcp_[1]), StartResult::kDone);
}

TEST_F(ReadinessTableTest, AfterAHangUpShortSaysNothing) {
  Op recv;
  StartRecv(&recv, tcp_[1]);
  Send(tcp_[0], "last");
  ::shutdown(tcp_[0], SHUT_WR);
  EXPECT_THAT(Report(tcp_[1], kHangUp), ElementsAre(&recv));

  EXPECT_EQ(StartRecv(&recv, tcp_[1]), StartResult::kDone);
  EXPECT_EQ(recv.result, 0);
}

TEST_F(ReadinessTableTest, AShortReadOfAUnixSocketSaysNothing) {
  Op recv;
  StartRecv(&recv, unix_[0]);
  Send(unix_[1], "short");
  Report(unix_[0], kReadable);
  Send(unix_[1], "more");

  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kDone);
}

TEST_F(ReadinessTableTest, AFalseReportParksAgain) {
  Op recv;
  StartRecv(&recv, unix_[0]);

  EXPECT_THAT(Report(unix_[0], kReadable), IsEmpty());
  EXPECT_EQ(pending_, 1u);
}

TEST_F(ReadinessTableTest, OneHandleIsServedOnlySoMuchAtATime) {
  constexpr int kReaders = 2 * ReadinessTable::kMaxServed + 5;
  Op recvs[kReaders];
  char byte;
  for (Op& recv : recvs) {
    recv.PrepareRecv(unix_[0], &byte, 1);
    table_.Start(&recv);
  }
  Send(unix_[1], std::string(kReaders, 'x'));

  EXPECT_EQ(Report(unix_[0], kReadable).size(), size_t{ReadinessTable::kMaxServed});
  EXPECT_TRUE(table_.has_kicked());
  table_.ServeKicked(&done_);
  EXPECT_EQ(Drain().size(), size_t{ReadinessTable::kMaxServed});
  EXPECT_TRUE(table_.has_kicked());
  table_.ServeKicked(&done_);
  EXPECT_EQ(Drain().size(), 5u);

  EXPECT_FALSE(table_.has_kicked());
}

TEST_F(ReadinessTableTest, AStaleReportReachesNobody) {
  Op recv, retire;
  StartRecv(&recv, unix_[0]);
  const uint32_t old = source_.last_generation;
  retire.PrepareRetire(unix_[0], kKeepOpen);
  table_.Start(&retire);
  ended_.Clear();
  StartRecv(&recv, unix_[0]);
  Send(unix_[1], "x");

  EXPECT_FALSE(table_.Report(unix_[0], old, kReadable, &done_));
  EXPECT_FALSE(table_.Report(12'345, 1, kReadable, &done_));

  EXPECT_THAT(Drain(), IsEmpty());
  EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&recv));
}

TEST_F(ReadinessTableTest, AWatchGoesOnWithoutAskingTheKernel) {
  Op wait;
  wait.PrepareWaitReadable(unix_[0]);
  table_.Start(&wait);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&wait));
    wait.PrepareWaitReadable(unix_[0], kWaitAgain);
    EXPECT_EQ(table_.Start(&wait), StartResult::kPending);
  }

  EXPECT_THAT(source_.calls, ElementsAre("add read"));
}

TEST_F(ReadinessTableTest, AReportThatFindsNobodyNarrowsTheWatch) {
  Op readable, writable;
  readable.PrepareWaitReadable(unix_[0]);
  writable.PrepareWaitWritable(unix_[0]);
  table_.Start(&readable);
  table_.Start(&writable);

  EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&readable));
  Report(unix_[0], kReadable);  // Not started again.
  EXPECT_THAT(Report(unix_[0], {.writable = true}), ElementsAre(&writable));
  Report(unix_[0], {.writable = true});

  EXPECT_THAT(source_.calls,
              ElementsAre("add read", "change read write", "change write", "forget"));
}

TEST_F(ReadinessTableTest, CancellingTheLastWatchForgetsTheHandle) {
  Op wait;
  wait.PrepareWaitReadable(unix_[0]);
  table_.Start(&wait);

  table_.Cancel(&wait);

  EXPECT_THAT(source_.calls, ElementsAre("add read", "forget"));
  EXPECT_EQ(ended_.PopFront(), &wait);
  EXPECT_EQ(wait.result, -ECANCELED);
}

TEST_F(ReadinessTableTest, AReceiveOnAWatchedHandleChangesTheWay) {
  Op wait, recv;
  wait.PrepareWaitReadable(unix_[0]);
  table_.Start(&wait);

  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kPending);
  Send(unix_[1], "x");

  EXPECT_THAT(source_.calls, ElementsAre("add read", "change edge"));
  EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&wait, &recv));
}

TEST_F(ReadinessTableTest, ANumberThatCameBackIsWatchedAnewAndItsOldWaitsEnd) {
  Op lost, wait;
  lost.PrepareWaitReadable(unix_[0]);
  wait.PrepareWaitReadable(unix_[0]);
  table_.Start(&lost);
  const uint32_t old = source_.last_generation;
  source_.next_answer = -ENOENT;

  EXPECT_EQ(table_.Start(&wait), StartResult::kPending);

  EXPECT_THAT(source_.calls, ElementsAre("add read", "change read", "add read"));
  EXPECT_NE(source_.last_generation, old);
  EXPECT_EQ(ended_.PopFront(), &lost);
  EXPECT_EQ(lost.result, -EBADF);
  EXPECT_THAT(Report(unix_[0], kReadable), ElementsAre(&wait));
}

TEST_F(ReadinessTableTest, AHandleThatCannotBeWatchedFailsTheOperation) {
  Op recv, wait, lent;
  SlabPool pool;
  Slab slab;
  source_.next_answer = -ENOSPC;
  EXPECT_EQ(StartRecv(&recv, unix_[0]), StartResult::kDone);
  EXPECT_EQ(recv.result, -ENOSPC);

  source_.next_answer = -EPERM;
  wait.PrepareWaitReadable(unix_[0]);
  EXPECT_EQ(table_.Start(&wait), StartResult::kDone);
  EXPECT_EQ(wait.result, -EPERM);

  source_.next_answer = -ENOSPC;
  lent.PrepareRecvLent(unix_[0]);
  ASSERT_EQ(table_.Start(&lent), StartResult::kDone);
  EXPECT_EQ(table_.FetchLent(&lent, &pool, &slab), StartResult::kDone);
  EXPECT_EQ(lent.result, -ENOSPC);
  EXPECT_EQ(pending_, 0u);
}

TEST_F(ReadinessTableTest, ALentReceiveTakesNoSlabForAFalseAlarm) {
  Op lent;
  SlabPool pool;
  Slab slab;
  lent.PrepareRecvLent(tcp_[1]);
  ASSERT_EQ(table_.Start(&lent), StartResult::kDone);
  ASSERT_EQ(table_.FetchLent(&lent, &pool, &slab), StartResult::kPending);
  ASSERT_THAT(Report(tcp_[1], kReadable), ElementsAre(&lent));

  EXPECT_EQ(table_.FetchLent(&lent, &pool, &slab), StartResult::kPending);
  EXPECT_EQ(pool.outstanding_count(), 0u);
  Send(tcp_[0], "now");
  ASSERT_THAT(Report(tcp_[1], kReadable), ElementsAre(&lent));
  EXPECT_EQ(table_.FetchLent(&lent, &pool, &slab), StartResult::kDone);

  EXPECT_EQ(lent.result, 3);
  EXPECT_EQ(pool.outstanding_count(), 1u);
  lent.PrepareRecvLent(tcp_[1]);  // Short: known to be empty.
  EXPECT_EQ(table_.Start(&lent), StartResult::kPending);
}

TEST_F(ReadinessTableTest, WhoWaitsBehindALentReceiveIsServedAfterIt) {
  Op lent, recv;
  SlabPool small(8);  // So small that something is left.
  Slab slab;
  Send(tcp_[0], "12345678");
  lent.PrepareRecvLent(tcp_[1]);
  ASSERT_EQ(table_.Start(&lent), StartResult::kDone);
  ASSERT_EQ(StartRecv(&recv, tcp_[1]), StartResult::kPending);
  Send(tcp_[0], "rest");

  ASSERT_EQ(table_.FetchLent(&lent, &small, &slab), StartResult::kDone);
  EXPECT_TRUE(table_.has_kicked());
  table_.ServeKicked(&done_);

  EXPECT_THAT(Drain(), ElementsAre(&recv));
  EXPECT_EQ(recv.result, 4);
}

TEST_F(ReadinessTableTest, AfterTheKernelObjectIsMadeAnewEverythingIsWatched) {
  Op recv, wait;
  StartRecv(&recv, unix_[0]);
  wait.PrepareWaitWritable(unix_[1]);
  table_.Start(&wait);
  source_.calls.clear();

  table_.WatchAgain();

  EXPECT_EQ(source_.calls.size(), 2u);
  EXPECT_THAT(source_.calls, ::testing::UnorderedElementsAre("add edge", "add write"));
}

TEST_F(ReadinessTableTest, ANumberOutOfTheBlueCostsNoMemory) {
  Op wait, lent;
  wait.PrepareWaitReadable(2'000'000'000);
  lent.PrepareRecvLent(2'000'000'000);

  EXPECT_EQ(table_.Start(&wait), StartResult::kDone);
  EXPECT_EQ(table_.Start(&lent), StartResult::kDone);

  EXPECT_EQ(wait.result, -EBADF);
  EXPECT_EQ(lent.result, -EBADF);
}

}  // namespace
}  // namespace weft::internal
