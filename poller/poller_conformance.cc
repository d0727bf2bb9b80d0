// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The fixture, and the contract of `Poller` itself: starting, cancelling,
// collecting, waking, sleeping, retiring, lending.

#include "weft/poller/poller_conformance.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/clock.h"

namespace weft {

using ::testing::AnyOf;
using ::testing::ElementsAre;

constexpr int kTooLongMs = 10'000;  // Past this a test has failed.

TestOperation::TestOperation()
    : Operation([](Runnable* self) {
        auto* op = static_cast<TestOperation*>(self);
        ++op->runs;
        if (op->order != nullptr) op->order->push_back(op);
      }) {}

TestOperation::~TestOperation() {
  if (state != State::kPending || poller == nullptr) return;
  poller->Cancel(this);
  ReadyQueue done;
  while (state == State::kPending) {
    if (!poller->Wait(TimePoint::InfiniteFuture(), &done).ok()) break;
  }
  // Others that ended meanwhile are run: their tests count on it.
  Unlink();
  while (Runnable* next = done.PopFront()) next->Run();
}

PollerConformanceTest::PollerConformanceTest()
    : poller_(GetParam()()), handles_before_(OpenHandleCount()) {}

PollerConformanceTest::~PollerConformanceTest() = default;

void PollerConformanceTest::SetUp() {
  if (poller_ == nullptr) GTEST_SKIP() << "this system has not what the backend needs";
}

void PollerConformanceTest::TearDown() {
  if (poller_ != nullptr) {
    poller_->CancelAll();
    while (poller_->HasPending()) Round(In(kTooLongMs));
    while (!owned_.empty()) Retire(owned_.back());
    EXPECT_EQ(poller_->pending(), 0u);
    poller_.reset();
  }
  EXPECT_EQ(OpenHandleCount(), handles_before_) << "descriptors leak";
}

void PollerConformanceTest::Start(TestOperation* op) {
  op->poller = poller_.get();
  if (poller_->Start(op) == StartResult::kDone) op->Run();
}

int PollerConformanceTest::Round(TimePoint deadline) {
  ReadyQueue done;
  poller_->Collect(&done);
  const absl::Status status = poller_->Wait(deadline, &done);
  EXPECT_TRUE(status.ok()) << status;
  int count = 0;
  while (Runnable* next = done.PopFront()) {
    next->Run();
    ++count;
  }
  return count;
}

int64_t PollerConformanceTest::RunUntilDone(TestOperation* op) {
  const TimePoint limit = In(kTooLongMs);
  while (op->runs == 0) {
    if (Now() > limit) {
      ADD_FAILURE() << "operation " << static_cast<int>(op->opcode) << " does not end";
      return INT64_MIN;
    }
    Round(limit);
  }
  return op->result;
}

int64_t PollerConformanceTest::Do(TestOperation* op) {
  Start(op);
  return RunUntilDone(op);
}

void PollerConformanceTest::RunUntilQuiet() {
  while (Round(In(10)) > 0) {
  }
}

std::string PollerConformanceTest::ReceiveAll(NativeHandle handle, size_t size) {
  std::string bytes(size, '\0');
  size_t have = 0;
  while (have < size) {
    TestOperation recv;
    recv.PrepareRecv(handle, bytes.data() + have, size - have);
    const int64_t result = Do(&recv);
    EXPECT_GE(result, 0);
    if (result <= 0) break;
    have += static_cast<size_t>(result);
  }
  bytes.resize(have);
  return bytes;
}

void PollerConformanceTest::SendAll(NativeHandle handle, std::string_view bytes) {
  while (!bytes.empty()) {
    TestOperation send;
    send.PrepareSend(handle, bytes.data(), bytes.size());
    const int64_t result = Do(&send);
    ASSERT_GT(result, 0);
    bytes.remove_prefix(static_cast<size_t>(result));
  }
}

int64_t PollerConformanceTest::Retire(NativeHandle handle) {
  Disown(handle);
  TestOperation retire;
  retire.PrepareRetire(handle);
  return Do(&retire);
}

NativeHandle PollerConformanceTest::Own(NativeHandle handle) {
  EXPECT_GE(handle, 0);
  owned_.push_back(handle);
  return handle;
}

void PollerConformanceTest::Disown(NativeHandle handle) {
  owned_.erase(std::remove(owned_.begin(), owned_.end(), handle), owned_.end());
}

PollerConformanceTest::Pair PollerConformanceTest::StreamPair() {
  NativeHandle pair[2] = {kInvalidHandle, kInvalidHandle};
  EXPECT_EQ(sockets_->OpenPair(SocketType::kStream, pair), 0);
  return {Own(pair[0]), Own(pair[1])};
}

NativeHandle PollerConformanceTest::Listener(SockAddr* address) {
  const NativeHandle listener = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  EXPECT_EQ(sockets_->Bind(listener, Loopback()), 0);
  EXPECT_EQ(sockets_->Listen(listener, 1024), 0);
  EXPECT_EQ(sockets_->GetSockName(listener, address), 0);
  return listener;
}

NativeHandle PollerConformanceTest::Datagram(SockAddr* address) {
  const NativeHandle socket = Own(sockets_->Open(SocketDomain::kInet, SocketType::kDatagram));
  EXPECT_EQ(sockets_->Bind(socket, Loopback()), 0);
  EXPECT_EQ(sockets_->GetSockName(socket, address), 0);
  return socket;
}

PollerConformanceTest::Pair PollerConformanceTest::TcpPair() {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation connect, accept;
  accept.PrepareAccept(listener);
  connect.PrepareConnect(client, &address);
  Start(&accept);
  Start(&connect);
  EXPECT_EQ(RunUntilDone(&connect), 0);
  const NativeHandle server = Own(RunUntilDone(&accept));
  EXPECT_EQ(Retire(listener), 0);
  return {client, server};
}

TimePoint PollerConformanceTest::Now() { return SteadyClock::Read(); }

TimePoint PollerConformanceTest::In(int milliseconds) {
  return Now() + absl::Milliseconds(milliseconds);
}

// --- Starting and finishing ---

TEST_P(PollerConformanceTest, HasAName) { EXPECT_NE(poller().name(), ""); }

TEST_P(PollerConformanceTest, ReceivesWhatIsThere) {
  const Pair pair = StreamPair();
  char buffer[8] = {};
  TestOperation recv;
  recv.PrepareRecv(pair.a, buffer, sizeof(buffer));
  SendNow(pair.b, "hello");

  EXPECT_EQ(Do(&recv), 5);
  EXPECT_STREQ(buffer, "hello");
  EXPECT_EQ(poller().pending(), 0u);
}

TEST_P(PollerConformanceTest, ReceivesWhatComesLater) {
  const Pair pair = StreamPair();
  char buffer[8] = {};
  TestOperation recv;
  recv.PrepareRecv(pair.a, buffer, sizeof(buffer));

  ASSERT_EQ(poller().Start(&recv), StartResult::kPending);
  EXPECT_EQ(recv.runs, 0);
  EXPECT_EQ(Round(), 0);
  EXPECT_EQ(poller().pending(), 1u);
  SendNow(pair.b, "hello");

  EXPECT_EQ(RunUntilDone(&recv), 5);
  EXPECT_STREQ(buffer, "hello");
  EXPECT_EQ(recv.runs, 1);
  EXPECT_EQ(poller().pending(), 0u);
}

TEST_P(PollerConformanceTest, NothingRunsInsideStartCancelOrWait) {
  const Pair pair = StreamPair();
  char buffer[8];
  TestOperation recv, other;
  recv.PrepareRecv(pair.a, buffer, sizeof(buffer));
  other.PrepareRecv(pair.b, buffer, sizeof(buffer));
  ReadyQueue done;

  poller().Start(&recv);
  poller().Start(&other);
  SendNow(pair.b, "x");
  poller().Cancel(&other);
  while (done.CountSlowly() < 2) ASSERT_TRUE(poller().Wait(In(kTooLongMs), &done).ok());

  EXPECT_EQ(recv.runs + other.runs, 0);
  while (Runnable* next = done.PopFront()) next->Run();
  EXPECT_EQ(recv.runs + other.runs, 2);
}

TEST_P(PollerConformanceTest, AnOperationCanBeStartedAgainWhenItRuns) {
  const Pair pair = StreamPair();
  std::string got;
  char byte;

  for (int i = 0; i < 100; ++i) {
    TestOperation recv;
    recv.PrepareRecv(pair.a, &byte, 1);
    Start(&recv);
    SendNow(pair.b, std::string(1, static_cast<char>('a' + i % 26)));
    ASSERT_EQ(RunUntilDone(&recv), 1);
    got += byte;
  }

  EXPECT_EQ(got.substr(0, 28), "abcdefghijklmnopqrstuvwxyzab");
}

TEST_P(PollerConformanceTest, AHandleThatIsNotOpenIsEbadf) {
  char byte;
  for (const NativeHandle handle : {NativeHandle{-1}, NativeHandle{19'999}}) {
    TestOperation recv, send, accept, retire;
    recv.PrepareRecv(handle, &byte, 1);
    send.PrepareSend(handle, "x", 1);
    accept.PrepareAccept(handle);
    retire.PrepareRetire(handle);

    EXPECT_EQ(Do(&recv), -EBADF);
    EXPECT_EQ(Do(&send), -EBADF);
    EXPECT_EQ(Do(&accept), -EBADF);
    EXPECT_EQ(Do(&retire), -EBADF);
  }
}

// --- Order ---

TEST_P(PollerConformanceTest, LaterRecvDoesNotOvertakeAnEarlierOne) {
  const Pair pair = StreamPair();
  std::string first(1, '\0'), second(1, '\0');
  TestOperation recv1, recv2;
  recv1.PrepareRecv(pair.a, first.data(), 1);
  recv2.PrepareRecv(pair.a, second.data(), 1);

  Start(&recv1);
  SendNow(pair.b, "xy");
  Start(&recv2);

  RunUntilDone(&recv2);
  EXPECT_EQ(first + second, "xy");
}

// More than a readiness backend serves in one go.
TEST_P(PollerConformanceTest, ManyReadersOfOneHandleEndInTheirOrder) {
  constexpr int kReaders = 300;
  const Pair pair = StreamPair();
  std::string sent, got(kReaders, '\0');
  std::vector<std::unique_ptr<TestOperation>> ops;
  std::vector<Operation*> started;
  for (int i = 0; i < kReaders; ++i) {
    sent += static_cast<char>('a' + i % 26);
    ops.push_back(std::make_unique<TestOperation>(&order_));
    ops.back()->PrepareRecv(pair.a, &got[i], 1);
    started.push_back(ops.back().get());
    Start(ops.back().get());
  }

  SendNow(pair.b, sent);
  RunUntilDone(ops.back().get());

  EXPECT_EQ(got, sent);
  EXPECT_EQ(order_, started);
}

TEST_P(PollerConformanceTest, ReaderAndWriterOfOneHandleDoNotWaitForEachOther) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv, send;
  recv.PrepareRecv(pair.a, &byte, 1);
  send.PrepareSend(pair.a, "x", 1);

  Start(&recv);

  EXPECT_EQ(Do(&send), 1);
  EXPECT_EQ(recv.runs, 0);
}

TEST_P(PollerConformanceTest, FullSocketTakesWritesInTheirOrderWhenItEmpties) {
  const Pair pair = StreamPair();
  const std::string filling(1 << 20, '.');
  size_t filled = 0;
  while (true) {
    const int64_t result = SendNow(pair.a, filling);
    if (result < 0) break;
    filled += static_cast<size_t>(result);
  }
  TestOperation send1(&order_), send2(&order_);
  send1.PrepareSend(pair.a, "1", 1);
  send2.PrepareSend(pair.a, "2", 1);
  Start(&send1);
  Start(&send2);
  EXPECT_EQ(Round(), 0);

  EXPECT_EQ(ReceiveAll(pair.b, filled).size(), filled);

  EXPECT_EQ(ReceiveAll(pair.b, 2), "12");
  EXPECT_EQ(RunUntilDone(&send2), 1);
  EXPECT_THAT(order_, ElementsAre(&send1, &send2));
}

// --- Cancelling ---

TEST_P(PollerConformanceTest, ACancelledOperationIsGivenBackOnce) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);

  poller().Cancel(&recv);
  poller().Cancel(&recv);

  EXPECT_EQ(RunUntilDone(&recv), -ECANCELED);
  RunUntilQuiet();
  EXPECT_EQ(recv.runs, 1);
  EXPECT_EQ(poller().pending(), 0u);
}

TEST_P(PollerConformanceTest, CancelDoesNothingToWhatIsNotPending) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation fresh, recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  SendNow(pair.b, "x");
  Do(&recv);

  poller().Cancel(&fresh);
  poller().Cancel(&recv);
  RunUntilQuiet();

  EXPECT_EQ(recv.result, 1);
  EXPECT_EQ(recv.runs + fresh.runs, 1);
}

TEST_P(PollerConformanceTest, CancelAgainstCompletionLosesNoByte) {
  const Pair pair = StreamPair();
  for (int i = 0; i < 50; ++i) {
    char byte = 0;
    TestOperation recv;
    recv.PrepareRecv(pair.a, &byte, 1);
    Start(&recv);
    SendNow(pair.b, "x");

    poller().Cancel(&recv);

    const int64_t result = RunUntilDone(&recv);
    ASSERT_THAT(result, AnyOf(1, -ECANCELED));
    if (result == -ECANCELED) {
      ASSERT_EQ(ReceiveAll(pair.a, 1), "x");
    }
  }
}

TEST_P(PollerConformanceTest, CancellingTheFirstOfTwoReadersLeavesTheSecond) {
  const Pair pair = StreamPair();
  char byte1 = 0, byte2 = 0;
  TestOperation recv1, recv2;
  recv1.PrepareRecv(pair.a, &byte1, 1);
  recv2.PrepareRecv(pair.a, &byte2, 1);
  Start(&recv1);
  Start(&recv2);

  poller().Cancel(&recv1);
  EXPECT_EQ(RunUntilDone(&recv1), -ECANCELED);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&recv2), 1);
  EXPECT_EQ(byte2, 'x');
}

TEST_P(PollerConformanceTest, CancelAllEndsEverythingAndLeavesHandlesOpen) {
  const Pair one = StreamPair(), two = StreamPair();
  char bytes[3];
  TestOperation ops[3];
  ops[0].PrepareRecv(one.a, &bytes[0], 1);
  ops[1].PrepareRecv(one.a, &bytes[1], 1);
  ops[2].PrepareRecv(two.a, &bytes[2], 1);
  for (TestOperation& op : ops) Start(&op);

  poller().CancelAll();

  for (TestOperation& op : ops) EXPECT_EQ(RunUntilDone(&op), -ECANCELED);
  EXPECT_EQ(poller().pending(), 0u);
  SendNow(one.b, "y");
  EXPECT_EQ(ReceiveAll(one.a, 1), "y");
}

TEST_P(PollerConformanceTest, DestroyedWithOperationsPendingItEndsThem) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);

  poller_.reset();

  EXPECT_EQ(recv.state, Operation::State::kDone);
  EXPECT_EQ(recv.result, -ECANCELED);
  EXPECT_EQ(recv.runs, 0);
  poller_ = GetParam()();
}

TEST_P(PollerConformanceTest, CollectGivesBackOnlyWhatHasEnded) {
  ReadyQueue done;
  EXPECT_FALSE(poller().Collect(&done));
  EXPECT_TRUE(done.empty());
}

// --- Waking ---

TEST_P(PollerConformanceTest, WakeBeforeWaitIsNotLost) {
  poller().MakeWaker()->Wake();

  EXPECT_EQ(Round(TimePoint::InfiniteFuture()), 0);
}

TEST_P(PollerConformanceTest, WakeBetweenWaitsIsNotLost) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  for (int i = 0; i < 100; ++i) {
    waker->Wake();
    if (i % 3 == 0) waker->Wake();
    Round(TimePoint::InfiniteFuture());
  }
}

TEST_P(PollerConformanceTest, WakeFromAnotherThreadEndsASleep) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  constexpr int kRounds = 1'000;
  std::atomic<int> asked{0}, answered{0};
  std::thread thread([&] {
    for (int i = 1; i <= kRounds; ++i) {
      asked.store(i, std::memory_order_relaxed);
      waker->Wake();
      while (answered.load(std::memory_order_acquire) < i) std::this_thread::yield();
    }
  });

  for (int i = 1; i <= kRounds; ++i) {
    while (asked.load(std::memory_order_relaxed) < i) Round(TimePoint::InfiniteFuture());
    answered.store(i, std::memory_order_release);
  }

  thread.join();
}

TEST_P(PollerConformanceTest, WakesFromManyThreadsAllCount) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  constexpr int kThreads = 4, kWakes = 5'000;
  std::atomic<int> posted{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kWakes; ++j) {
        posted.fetch_add(1, std::memory_order_relaxed);
        waker->Wake();
      }
    });
  }

  while (posted.load(std::memory_order_relaxed) < kThreads * kWakes) {
    Round(TimePoint::InfiniteFuture());
  }

  for (std::thread& thread : threads) thread.join();
}

// What a thread wrote before the wake is seen after it, without more ado.
TEST_P(PollerConformanceTest, WakeCarriesWhatWasWrittenBefore) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  int plain = 0;
  std::thread thread([&] {
    plain = 42;
    waker->Wake();
  });

  Round(TimePoint::InfiniteFuture());

  EXPECT_EQ(plain, 42);
  thread.join();
}

TEST_P(PollerConformanceTest, WakerOutlivesThePoller) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  waker->Wake();
  Round(TimePoint::InfiniteFuture());
  poller_.reset();

  waker->Wake();

  poller_ = GetParam()();
  EXPECT_EQ(Round(In(1)), 0);
}

// --- Sleeping ---

TEST_P(PollerConformanceTest, WithAPassedDeadlineItOnlyLooks) {
  EXPECT_EQ(Round(TimePoint::InfinitePast()), 0);
  EXPECT_EQ(Round(Now()), 0);
  EXPECT_EQ(Round(TimePoint()), 0);
  EXPECT_EQ(Round(TimePoint::FromNanoseconds(1)), 0);
}

TEST_P(PollerConformanceTest, NeverReturnsBeforeTheDeadline) {
  for (const absl::Duration delay : {absl::Nanoseconds(1), absl::Microseconds(100),
                                     absl::Microseconds(1'999), absl::Milliseconds(5)}) {
    const TimePoint deadline = Now() + delay;

    Round(deadline);

    EXPECT_GE(Now(), deadline);
  }
}

TEST_P(PollerConformanceTest, AnEarlierDeadlineTakesThePlaceOfALaterOne) {
  poller().MakeWaker()->Wake();
  Round(In(3'600'000));
  const TimePoint deadline = In(2);

  Round(deadline);

  EXPECT_GE(Now(), deadline);
}

TEST_P(PollerConformanceTest, ALaterDeadlineIsNotCutShortByAnEarlierOne) {
  const std::shared_ptr<Waker> waker = poller().MakeWaker();
  waker->Wake();
  Round(In(3));  // Woken before; the deadline is dropped.
  const TimePoint deadline = In(12);

  while (Now() < deadline) Round(deadline);

  EXPECT_GE(Now(), deadline);
}

TEST_P(PollerConformanceTest, SleepingCostsNoTime) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  const absl::Duration before = CpuTime();

  const TimePoint deadline = In(100);
  while (Now() < deadline) Round(deadline);

  EXPECT_LT(CpuTime() - before, absl::Milliseconds(20));
}

TEST_P(PollerConformanceTest, DoesNotSleepWhenSomethingIsFinished) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  poller().Cancel(&recv);
  ReadyQueue done;

  while (done.empty()) ASSERT_TRUE(poller().Wait(TimePoint::InfiniteFuture(), &done).ok());

  EXPECT_EQ(done.PopFront(), &recv);
}

TEST_P(PollerConformanceTest, AThousandPollersLeaveNoHandles) {
  const int before = OpenHandleCount();

  for (int i = 0; i < 1'000; ++i) {
    const std::unique_ptr<Poller> one = GetParam()();
    ReadyQueue done;
    one->MakeWaker()->Wake();
    if (i % 2 == 1) continue;  // Not every poller is used.
    EXPECT_EQ(one->Wait(TimePoint::InfiniteFuture(), &done), absl::OkStatus());
    EXPECT_EQ(one->Wait(TimePoint::FromNanoseconds(1), &done), absl::OkStatus());
  }

  EXPECT_EQ(OpenHandleCount(), before);
}

// --- Retiring ---

TEST_P(PollerConformanceTest, RetireIsGivenBackAfterAllThatItEnds) {
  const Pair pair = StreamPair();
  char bytes[3];
  TestOperation recv1(&order_), recv2(&order_), retire(&order_);
  recv1.PrepareRecv(pair.a, &bytes[0], 1);
  recv2.PrepareRecv(pair.a, &bytes[1], 1);
  retire.PrepareRetire(pair.a);
  Start(&recv1);
  Start(&recv2);
  Disown(pair.a);

  EXPECT_EQ(poller().Start(&retire), StartResult::kPending);

  EXPECT_EQ(RunUntilDone(&retire), 0);
  EXPECT_EQ(recv1.result, -ECANCELED);
  EXPECT_EQ(recv2.result, -ECANCELED);
  EXPECT_THAT(order_, ElementsAre(&recv1, &recv2, &retire));
  EXPECT_EQ(poller().pending(), 0u);
}

TEST_P(PollerConformanceTest, RetireEndsReadersAndWritersInTheOrderOfTheirStart) {
  const Pair pair = StreamPair();
  const std::string filling(1 << 20, '.');
  while (SendNow(pair.a, filling) > 0) {
  }
  char bytes[2];
  TestOperation recv1(&order_), send1(&order_), recv2(&order_), send2(&order_), retire(&order_);
  recv1.PrepareRecv(pair.a, &bytes[0], 1);
  send1.PrepareSend(pair.a, "1", 1);
  recv2.PrepareRecv(pair.a, &bytes[1], 1);
  send2.PrepareSend(pair.a, "2", 1);
  retire.PrepareRetire(pair.a);
  for (TestOperation* op : {&recv1, &send1, &recv2, &send2}) Start(op);
  Disown(pair.a);

  EXPECT_EQ(Do(&retire), 0);

  EXPECT_THAT(order_, ElementsAre(&recv1, &send1, &recv2, &send2, &retire));
}

// What had ended before, but had not run yet, runs before the retire does.
TEST_P(PollerConformanceTest, RetireRunsAfterWhatWasAlreadyFinished) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv(&order_), retire(&order_);
  recv.PrepareRecv(pair.a, &byte, 1);
  retire.PrepareRetire(pair.a);
  Start(&recv);
  SendNow(pair.b, "x");
  ReadyQueue done;
  while (done.empty()) ASSERT_TRUE(poller().Wait(In(kTooLongMs), &done).ok());
  Disown(pair.a);

  EXPECT_EQ(poller().Start(&retire), StartResult::kPending);
  while (Runnable* next = done.PopFront()) next->Run();
  RunUntilDone(&retire);

  EXPECT_EQ(recv.result, 1);
  EXPECT_THAT(order_, ElementsAre(&recv, &retire));
}

TEST_P(PollerConformanceTest, RetireTellsThePeer) {
  const Pair pair = TcpPair();
  char byte;
  TestOperation recv, peer;
  recv.PrepareRecv(pair.a, &byte, 1);
  peer.PrepareRecv(pair.b, &byte, 1);
  Start(&recv);
  Start(&peer);

  EXPECT_EQ(Retire(pair.a), 0);

  EXPECT_EQ(RunUntilDone(&peer), 0);
}

TEST_P(PollerConformanceTest, RetireWithKeepOpenGivesTheHandleBack) {
  const Pair pair = StreamPair();
  char byte = 0;
  TestOperation recv, retire;
  recv.PrepareRecv(pair.a, &byte, 1);
  retire.PrepareRetire(pair.a, kKeepOpen);
  Start(&recv);

  EXPECT_EQ(Do(&retire), 0);

  EXPECT_EQ(recv.result, -ECANCELED);
  SendNow(pair.b, "x");
  EXPECT_EQ(Round(In(1)), 0);
  EXPECT_EQ(ReceiveNow(pair.a, 1), "x");
  SendNow(pair.b, "y");  // And it may be used again.
  EXPECT_EQ(ReceiveAll(pair.a, 1), "y");
}

// Bytes that were announced, or come while it is retired: whoever has the handle then
// finds those that were not fetched.
TEST_P(PollerConformanceTest, RetireWithKeepOpenLosesNothing) {
  enum Moment {
    kBefore,
    kAfter,
    kAnnounced,
    kCancelledBefore,
    kCancelledAfter,
    kGivenUp,
    kEnd,
  };
  for (int moment = kBefore; moment < kEnd; ++moment) {
    for (const bool by_poller : {false, true}) {
      if (moment == kGivenUp && !by_poller) continue;  // See operation.h.
      SCOPED_TRACE(testing::Message() << moment << by_poller);
      const Pair pair = moment % 2 == 0 ? StreamPair() : TcpPair();
      TestOperation lent, retire;
      lent.PrepareRecvLent(pair.a);
      retire.PrepareRetire(pair.a, kKeepOpen);
      Start(&lent);
      Round();
      if (moment == kCancelledAfter) poller().Cancel(&lent);
      if (moment != kAfter) SendNow(pair.b, "abc");
      if (moment == kAnnounced || moment == kGivenUp) RunUntilDone(&lent);
      if (moment == kCancelledBefore || moment == kGivenUp) poller().Cancel(&lent);
      Start(&retire);
      if (moment == kAfter) SendNow(pair.b, "abc");

      EXPECT_EQ(RunUntilDone(&retire), 0);

      EXPECT_EQ(lent.runs, 1);
      std::string received;
      if (lent.result >= 0) {
        Slab slab;
        EXPECT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
        if (lent.result > 0) received.assign(slab.data(), static_cast<size_t>(lent.result));
      }
      const size_t left = 3 - received.size();
      if (left > 0) received += by_poller ? ReceiveAll(pair.a, left) : ReceiveNow(pair.a, left);
      EXPECT_EQ(received, "abc");
      SendNow(pair.b, "d");
      EXPECT_EQ(ReceiveAll(pair.a, 1), "d");
    }
  }
}

TEST_P(PollerConformanceTest, WhatWasLeftWhenAHandleWasKeptOpenIsNoOtherFiles) {
  for (const bool gives_up : {false, true}) {
    const Pair pair = StreamPair();
    TestOperation lent, retire;
    lent.PrepareRecvLent(pair.a);
    retire.PrepareRetire(pair.a, kKeepOpen);
    Start(&lent);
    SendNow(pair.b, "old");
    RunUntilDone(&lent);
    if (gives_up) poller().Cancel(&lent);
    EXPECT_EQ(Do(&retire), 0);
    Disown(pair.a);
    CloseNow(pair.a);

    const Pair next = StreamPair();  // Gets the number.
    SendNow(next.b, "new");
    EXPECT_EQ(ReceiveAll(next.a, 3), "new");
    if (!gives_up) {
      Slab slab;
      EXPECT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
      EXPECT_EQ(lent.result, -ECANCELED);
    }
  }
}

TEST_P(PollerConformanceTest, AHandleThatComesBackStartsAfresh) {
  for (int i = 0; i < 20; ++i) {
    const Pair old = StreamPair();
    char byte = 0;
    TestOperation recv;
    recv.PrepareRecv(old.a, &byte, 1);
    Start(&recv);
    SendNow(old.b, "old");
    Retire(old.a);
    EXPECT_THAT(recv.result, AnyOf(1, -ECANCELED));

    const Pair fresh = StreamPair();  // Gets the number on POSIX.
    TestOperation again;
    again.PrepareRecv(fresh.a, &byte, 1);
    Start(&again);
    RunUntilQuiet();
    ASSERT_EQ(again.runs, 0);
    SendNow(fresh.b, "n");

    ASSERT_EQ(RunUntilDone(&again), 1);
    ASSERT_EQ(byte, 'n');
    Retire(old.b);
    Retire(fresh.a);
    Retire(fresh.b);
  }
}

// --- Lending ---

TEST_P(PollerConformanceTest, LentReceiveNeedsNoBufferUntilThereIsSomething) {
  const Pair pair = TcpPair();
  TestOperation recv;
  recv.PrepareRecvLent(pair.a);
  Slab slab;

  if (poller().Start(&recv) == StartResult::kDone) {
    ASSERT_EQ(poller().FetchLent(&recv, &pool_, &slab), StartResult::kPending);
  }
  EXPECT_FALSE(slab);
  EXPECT_EQ(pool_.outstanding_count(), 0u);
  SendNow(pair.b, "hello");
  RunUntilDone(&recv);

  ASSERT_EQ(poller().FetchLent(&recv, &pool_, &slab), StartResult::kDone);
  ASSERT_EQ(recv.result, 5);
  EXPECT_EQ(std::string(slab.data(), 5), "hello");
}

TEST_P(PollerConformanceTest, LentReceiveTellsTheEndWithoutASlab) {
  const Pair pair = TcpPair();
  TestOperation recv;
  recv.PrepareRecvLent(pair.a);
  Slab slab;
  Retire(pair.b);

  Do(&recv);
  while (poller().FetchLent(&recv, &pool_, &slab) == StartResult::kPending) {
    recv.runs = 0;
    RunUntilDone(&recv);
  }

  EXPECT_EQ(recv.result, 0);
  EXPECT_FALSE(slab);
}

TEST_P(PollerConformanceTest, LentReceiveDeliversAStreamInOrder) {
  const Pair pair = TcpPair();
  std::string sent, got;
  TestOperation recv;

  for (int i = 0; i < 500; ++i) {
    std::string piece(static_cast<size_t>(i * 97 % 300 + 1), static_cast<char>('a' + i % 26));
    SendNow(pair.b, piece);
    sent += piece;
    if (i % 3 != 0) continue;
    recv.PrepareRecvLent(pair.a);
    recv.runs = 0;
    Do(&recv);
    Slab slab;
    while (poller().FetchLent(&recv, &pool_, &slab) == StartResult::kPending) {
      recv.runs = 0;
      RunUntilDone(&recv);
    }
    ASSERT_GT(recv.result, 0);
    got.append(slab.data(), static_cast<size_t>(recv.result));
  }
  got += ReceiveAll(pair.a, sent.size() - got.size());

  EXPECT_EQ(got, sent);
}

TEST_P(PollerConformanceTest, OthersWaitWhileALentReceiveIsNotFetched) {
  const Pair pair = TcpPair();
  char rest[16] = {};
  TestOperation lent, recv;
  lent.PrepareRecvLent(pair.a);
  recv.PrepareRecv(pair.a, rest, sizeof(rest));
  Slab slab;
  SendNow(pair.b, "first");
  Do(&lent);

  ASSERT_EQ(poller().Start(&recv), StartResult::kPending);
  RunUntilQuiet();
  EXPECT_EQ(recv.runs, 0);
  while (poller().FetchLent(&lent, &pool_, &slab) == StartResult::kPending) {
    lent.runs = 0;
    RunUntilDone(&lent);
  }
  EXPECT_EQ(std::string(slab.data(), 5), "first");
  SendNow(pair.b, "then");

  EXPECT_EQ(RunUntilDone(&recv), 4);
  EXPECT_STREQ(rest, "then");
}

TEST_P(PollerConformanceTest, AnAnnouncedLentReceiveCanGiveUpItsTurn) {
  const Pair pair = TcpPair();
  char buffer[16] = {};
  TestOperation lent, recv;
  lent.PrepareRecvLent(pair.a);
  recv.PrepareRecv(pair.a, buffer, sizeof(buffer));
  Slab slab;
  if (poller().Start(&lent) == StartResult::kDone) {
    ASSERT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kPending);
  }
  SendNow(pair.b, "bytes");
  RunUntilDone(&lent);
  Start(&recv);
  EXPECT_EQ(recv.runs, 0);

  poller().Cancel(&lent);

  EXPECT_EQ(RunUntilDone(&recv), 5);
  EXPECT_STREQ(buffer, "bytes");
  EXPECT_EQ(lent.runs, 1);
}

TEST_P(PollerConformanceTest, AFalseAlarmDoesNotLoseTheTurn) {
  const Pair pair = TcpPair();
  TestOperation lent(&order_), recv(&order_);
  char byte;
  lent.PrepareRecvLent(pair.a);
  recv.PrepareRecv(pair.a, &byte, 1);
  Slab slab;

  const bool announced = poller().Start(&lent) == StartResult::kDone;
  ASSERT_EQ(poller().Start(&recv), StartResult::kPending);
  if (announced) {
    ASSERT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kPending);
  }
  SendNow(pair.b, "x");
  RunUntilDone(&lent);
  EXPECT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
  SendNow(pair.b, "y");

  EXPECT_EQ(RunUntilDone(&recv), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_EQ(std::string(slab.data(), 1), "x");
  EXPECT_THAT(order_, ElementsAre(&lent, &recv));
}

TEST_P(PollerConformanceTest, ALentReceiveThatIsRetiredIsCancelled) {
  const Pair pair = TcpPair();
  TestOperation waiting, announced;
  waiting.PrepareRecvLent(pair.b);
  announced.PrepareRecvLent(pair.a);
  Slab slab;
  if (poller().Start(&waiting) == StartResult::kDone) {
    ASSERT_EQ(poller().FetchLent(&waiting, &pool_, &slab), StartResult::kPending);
  }
  SendNow(pair.b, "bytes");
  Do(&announced);

  Retire(pair.a);
  Retire(pair.b);

  EXPECT_EQ(poller().FetchLent(&announced, &pool_, &slab), StartResult::kDone);
  EXPECT_EQ(announced.result, -ECANCELED);
  RunUntilDone(&waiting);
  EXPECT_EQ(poller().FetchLent(&waiting, &pool_, &slab), StartResult::kDone);
  EXPECT_THAT(waiting.result, AnyOf(0, -ECANCELED, -ECONNRESET));
  EXPECT_FALSE(slab);
}

}  // namespace weft
