// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What every poller promises, also with small rings and on an older kernel; and then
// what io_uring adds.

#include "weft/poller/io_uring_poller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Its checks of virtual calls open a pipe.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr bool kNeedsDescriptors = true;
#else
constexpr bool kNeedsDescriptors = false;
#endif

std::unique_ptr<Poller> MakeWith(const internal::IoUringPollerOptions& options) {
  static const bool works = ProbeIoUring().ok();
  return works ? internal::MakeIoUringPollerWith(options) : nullptr;
}

std::unique_ptr<Poller> MakeUsualPoller() { return MakeWith(internal::IoUringPollerOptions()); }

// Rings so small that they overflow, and buffers so few that they run out.
std::unique_ptr<Poller> MakeTinyPoller() {
  internal::IoUringPollerOptions options;
  options.ring.sq_entries = 2;
  options.ring.cq_entries = 4;
  options.buffers.size = 512;
  options.buffers.first = 1;
  options.buffers.most = 2;
  return MakeWith(options);
}

// Without what came after 6.1.
std::unique_ptr<Poller> MakeOldPoller() {
  internal::IoUringPollerOptions options;
  options.ring.use_newer = false;
  return MakeWith(options);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(IoUring, PollerConformanceTest, ::testing::Values(&MakeUsualPoller));
INSTANTIATE_TEST_SUITE_P(TinyIoUring, PollerConformanceTest, ::testing::Values(&MakeTinyPoller));
INSTANTIATE_TEST_SUITE_P(OldIoUring, PollerConformanceTest, ::testing::Values(&MakeOldPoller));

class IoUringPollerTest : public PollerConformanceTest {
 protected:
  void Fill(NativeHandle handle) {
    const std::string filling(1 << 20, '.');
    while (SendNow(handle, filling) > 0) {
    }
  }
};

INSTANTIATE_TEST_SUITE_P(IoUring, IoUringPollerTest, ::testing::Values(&MakeUsualPoller));
INSTANTIATE_TEST_SUITE_P(TinyIoUring, IoUringPollerTest, ::testing::Values(&MakeTinyPoller));
INSTANTIATE_TEST_SUITE_P(OldIoUring, IoUringPollerTest, ::testing::Values(&MakeOldPoller));

TEST_P(IoUringPollerTest, OpensNoDescriptorBeforeItIsNeeded) {
  const int before = OpenHandleCount();
  const std::unique_ptr<Poller> lazy = MakeIoUringPoller();
  ReadyQueue done;

  lazy->MakeWaker()->Wake();
  EXPECT_TRUE(lazy->Wait(TimePoint::InfinitePast(), &done).ok());

  EXPECT_EQ(OpenHandleCount(), before);
}

// --- Sending ---

TEST_P(IoUringPollerTest, AQuietSendDoesNotEndASleep) {
  const Pair pair = TcpPair();
  TestOperation send;
  send.PrepareSend(pair.a, "x", 1);
  send.is_quiet = true;
  const TimePoint deadline = In(30);

  Start(&send);
  Round(deadline);

  EXPECT_GE(Now(), deadline);
  EXPECT_EQ(send.runs, 1);
  EXPECT_EQ(send.result, 1);
  EXPECT_EQ(ReceiveNow(pair.b, 1), "x");
}

TEST_P(IoUringPollerTest, AQuietSendThatFailsEndsASleep) {
  const Pair pair = StreamPair();
  Retire(pair.b);
  TestOperation send;
  send.PrepareSend(pair.a, "x", 1);
  send.is_quiet = true;

  EXPECT_EQ(Do(&send), -EPIPE);
}

TEST_P(IoUringPollerTest, AQuietSendThatHasToWaitIsSentLater) {
  const Pair pair = StreamPair();
  Fill(pair.a);
  TestOperation send(&order_), next(&order_);
  send.PrepareSend(pair.a, "1", 1);
  next.PrepareSend(pair.a, "2", 1);
  send.is_quiet = next.is_quiet = true;
  Start(&send);
  Start(&next);
  Round(In(1));
  EXPECT_EQ(send.runs, 0);

  std::string all;
  while (send.runs + next.runs < 2) {
    all += ReceiveNow(pair.b, 1 << 20);
    Round(In(1));
  }
  all += ReceiveNow(pair.b, 1 << 20);

  EXPECT_EQ(all.substr(all.size() - 2), "12");
  EXPECT_EQ(send.result + next.result, 2);
}

TEST_P(IoUringPollerTest, AQuietSendOfManyPiecesIsWhole) {
  const Pair pair = TcpPair();
  const Buffer pieces[] = {{const_cast<char*>("one "), 4}, {const_cast<char*>("two"), 3}};
  TestOperation send;
  send.PrepareSendMsg(pair.a, pieces, 2);
  send.is_quiet = true;
  Start(&send);
  Round();

  EXPECT_EQ(send.result, 7);
  EXPECT_EQ(ReceiveNow(pair.b, 16), "one two");
}

// What is kept over a sleep is memory that nobody uses.
TEST_P(IoUringPollerTest, ASleepIsNotBegunWithMuchThatWasSentQuietly) {
  const std::string data(60'000, 'x');
  std::vector<std::unique_ptr<TestOperation>> sends;
  for (int i = 0; i < 20; ++i) {
    sends.push_back(std::make_unique<TestOperation>());
    sends.back()->PrepareSend(StreamPair().a, data.data(), data.size());
    sends.back()->is_quiet = true;
    Start(sends.back().get());
  }
  const TimePoint deadline = In(1'000);

  Round(deadline);

  EXPECT_LT(Now(), deadline);
  for (const auto& send : sends) {
    EXPECT_EQ(send->runs, 1);
    EXPECT_EQ(send->result, 60'000);
  }
}

// Whoever has written does not expect that cancelling what comes after takes it back.
TEST_P(IoUringPollerTest, WhatWasWrittenIsSentThoughTheHandleIsRetiredAtOnce) {
  const Pair pair = TcpPair();
  TestOperation send(&order_), retire(&order_);
  send.PrepareSend(pair.a, "last words", 10);
  retire.PrepareRetire(pair.a);
  Start(&send);
  Disown(pair.a);

  EXPECT_EQ(Do(&retire), 0);

  EXPECT_EQ(send.result, 10);
  EXPECT_THAT(order_, ElementsAre(&send, &retire));
  EXPECT_EQ(ReceiveAll(pair.b, 11), "last words");
}

TEST_P(IoUringPollerTest, WhatWasWrittenIsSentThoughAllIsCancelled) {
  const Pair pair = TcpPair();
  TestOperation send;
  send.PrepareSend(pair.a, "last words", 10);
  Start(&send);

  poller().CancelAll();

  EXPECT_EQ(ReceiveNow(pair.b, 16), "last words");
  EXPECT_EQ(RunUntilDone(&send), 10);
}

// --- Accepting ---

TEST_P(IoUringPollerTest, ARetiredListenerGivesItsPortBackAtOnce) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  TestOperation accept, retire;
  accept.PrepareAccept(listener);
  Start(&accept);
  Round();
  retire.PrepareRetire(listener);
  Disown(listener);

  Start(&retire);

  const NativeHandle next = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  EXPECT_EQ(sockets_->Bind(next, address), 0);
  EXPECT_EQ(RunUntilDone(&retire), 0);
  EXPECT_EQ(accept.result, -ECANCELED);
}

TEST_P(IoUringPollerTest, NobodyIsAcceptedForNobody) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  TestOperation accept;
  accept.PrepareAccept(listener);
  Start(&accept);
  Round();
  poller().Cancel(&accept);
  RunUntilDone(&accept);
  Round(In(1));  // Opens what it needs to sleep.
  const int before = OpenHandleCount();

  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation connect;
  connect.PrepareConnect(client, &address);
  ASSERT_EQ(Do(&connect), 0);
  RunUntilQuiet();

  EXPECT_EQ(OpenHandleCount(), before + 1);  // The client.
  TestOperation again;
  again.PrepareAccept(listener);
  Own(Do(&again));
}

// --- Lending ---

TEST_P(IoUringPollerTest, ACancelledLentReceiveLeavesWhatHasComeToTheNext) {
  for (int i = 0; i < 100; ++i) {
    const Pair pair = TcpPair();
    TestOperation lent, next;
    char buffer[4] = {};
    lent.PrepareRecvLent(pair.a);
    Start(&lent);
    Round();
    SendNow(pair.b, "abc");
    poller().Cancel(&lent);
    next.PrepareRecv(pair.a, buffer, 2);
    Start(&next);
    if (i % 2 == 1) poller().Cancel(&lent);
    RunUntilDone(&lent);
    if (lent.result >= 0) poller().Cancel(&lent);  // Given back with something: gives up.

    ASSERT_EQ(RunUntilDone(&next), 2);
    ASSERT_EQ(std::string(buffer), "ab");
    ASSERT_EQ(ReceiveAll(pair.a, 1), "c");
    Retire(pair.a);
    Retire(pair.b);
  }
}

TEST_P(IoUringPollerTest, ConnectionsThatDoNotReadStarveNobody) {
  constexpr int kPairs = 300;
  std::vector<Pair> pairs;
  std::vector<std::unique_ptr<TestOperation>> ops;
  std::vector<Slab> slabs(kPairs);
  for (int i = 0; i < kPairs; ++i) {
    pairs.push_back(StreamPair());
    ops.push_back(std::make_unique<TestOperation>());
    ops.back()->PrepareRecvLent(pairs.back().a);
    Start(ops.back().get());
    SendNow(pairs.back().b, "kept");
  }

  for (int i = 0; i < kPairs; ++i) {
    ASSERT_EQ(RunUntilDone(ops[i].get()), 0);
    ASSERT_EQ(poller().FetchLent(ops[i].get(), &pool_, &slabs[i]), StartResult::kDone);
  }

  for (const Slab& slab : slabs) EXPECT_EQ(std::string_view(slab.data(), 4), "kept");
}

TEST_P(IoUringPollerTest, SlabsOutliveThePoller) {
  const Pair pair = StreamPair();
  TestOperation lent;
  lent.PrepareRecvLent(pair.a);
  SendNow(pair.b, "hello");
  Do(&lent);
  Slab slab;
  ASSERT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
  Retire(pair.a);
  Retire(pair.b);

  poller_.reset();

  EXPECT_EQ(std::string_view(slab.data(), 5), "hello");
}

// --- Threads and processes ---

// Requests end with the thread that made them, which is not what anybody wants.
TEST_P(IoUringPollerTest, GoesOnOnAnotherThreadWithAllThatIsInFlight) {
  for (const bool old_thread_lives : {false, true}) {
    SockAddr address;
    const NativeHandle listener = Listener(&address);
    const Pair pair = TcpPair(), lending = TcpPair(), full = StreamPair();
    Fill(full.a);
    char byte = 0;
    TestOperation recv, lent, send, accept, wait;
    recv.PrepareRecv(pair.a, &byte, 1);
    lent.PrepareRecvLent(lending.a);
    send.PrepareSend(full.a, "x", 1);
    accept.PrepareAccept(listener);
    wait.PrepareWaitReadable(pair.b);
    std::atomic<bool> is_started{false}, may_end{!old_thread_lives};
    std::thread other([&] {
      for (TestOperation* op : {&recv, &lent, &send, &accept, &wait}) Start(op);
      Round(In(1));
      Round(In(1));
      is_started = true;
      is_started.notify_one();
      may_end.wait(false);
    });
    is_started.wait(false);
    if (!old_thread_lives) other.join();

    SendNow(pair.b, "r");
    SendNow(pair.a, "w");
    SendNow(lending.b, "lent");
    const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
    TestOperation connect;
    connect.PrepareConnect(client, &address);
    EXPECT_EQ(Do(&connect), 0);
    EXPECT_EQ(RunUntilDone(&recv), 1);
    EXPECT_EQ(RunUntilDone(&wait), 0);
    EXPECT_EQ(RunUntilDone(&lent), 0);
    Slab slab;
    EXPECT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
    EXPECT_EQ(lent.result, 4);
    Own(RunUntilDone(&accept));
    while (send.runs == 0) {
      ReceiveNow(full.b, 1 << 20);
      Round(In(1));
    }
    EXPECT_EQ(send.result, 1);
    may_end = true;
    may_end.notify_one();
    if (old_thread_lives) other.join();
  }
}

// A file of its own, that has no name.
int TemporaryFile(int flags) {
  char name[] = "/tmp/weft.XXXXXX";
  const int fd = ::mkostemp(name, flags);
  ::unlink(name);
  return fd;
}

// What a worker is at lives on when the ring is closed, and nobody may have its memory
// before that is over.
TEST_P(IoUringPollerTest, GoesOnOnAnotherThreadWhileAWorkerIsAtAFile) {
  const int file = TemporaryFile(0), appended = TemporaryFile(O_APPEND);
  ASSERT_GE(file, 0);
  ASSERT_GE(appended, 0);
  const std::string much(8 << 20, 'm');
  ASSERT_EQ(::pwrite(file, much.data(), much.size(), 0), static_cast<ssize_t>(much.size()));
  for (const bool old_thread_lives : {false, true}) {
    for (int i = 0; i < 4; ++i) {
      // It is in flight for as long as we want, and looks like the others.
      int pipe[2];
      ASSERT_EQ(::pipe(pipe), 0);
      char byte = 0;
      const auto parked = std::make_unique<TestOperation>();
      parked->PrepareRead(pipe[0], &byte, 1, 0);
      std::string read(much.size(), '.');
      TestOperation write, append, fsync, fetch;
      write.PrepareWrite(file, much.data(), much.size(), 0);
      append.PrepareWrite(appended, much.data(), much.size(), 0);
      fsync.PrepareFsync(file);
      fetch.PrepareRead(file, read.data(), read.size(), 0);
      std::atomic<bool> is_started{false}, may_end{!old_thread_lives};
      std::thread other([&] {
        for (TestOperation* op : {parked.get(), &write, &append, &fsync, &fetch}) Start(op);
        Round();
        is_started = true;
        is_started.notify_one();
        may_end.wait(false);
      });
      is_started.wait(false);
      if (!old_thread_lives) other.join();

      EXPECT_EQ(RunUntilDone(&write), static_cast<int64_t>(much.size()));
      EXPECT_THAT(RunUntilDone(&append), AnyOf(static_cast<int64_t>(much.size()), -EIO));
      EXPECT_EQ(RunUntilDone(&fsync), 0);
      EXPECT_EQ(RunUntilDone(&fetch), static_cast<int64_t>(much.size()));
      EXPECT_EQ(read, much);
      ASSERT_EQ(::write(pipe[1], "p", 1), 1);
      EXPECT_EQ(RunUntilDone(parked.get()), 1);
      EXPECT_EQ(byte, 'p');
      may_end = true;
      may_end.notify_one();
      if (old_thread_lives) other.join();
      EXPECT_EQ(Retire(pipe[0]), 0);
      ::close(pipe[1]);
    }
  }
  Retire(file);
  Retire(appended);
}

TEST_P(IoUringPollerTest, AChildProcessDoesNotDisturbIt) {
  const Pair pair = StreamPair();
  char byte = 0;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  Round();

  const pid_t child = ::fork();
  if (child == 0) {
    poller_.reset();  // Nothing but what is the child's.
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&recv), 1);
  EXPECT_EQ(byte, 'x');
}

TEST_P(IoUringPollerTest, BackendFdIsNotReadableForWhatHasOnlyBegun) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  pollfd backend = {static_cast<int>(poller().BackendFd()), POLLIN, 0};
  Start(&recv);

  poller().ArmBackend(TimePoint::InfiniteFuture());

  EXPECT_EQ(::poll(&backend, 1, /*timeout=*/0), 0);
}

// --- Whether it is to be had ---

TEST(IoUringProbeTest, ItWorksHereOrSaysWhyNot) {
  const absl::Status status = ProbeIoUring();
  if (!status.ok()) {
    EXPECT_THAT(std::string(status.message()), HasSubstr("io_uring"));
    GTEST_SKIP() << status;
  }
}

TEST(IoUringProbeTest, WithoutDescriptorsItSaysSo) {
  if (kNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  if (const absl::Status works = ProbeIoUring(); !works.ok()) GTEST_SKIP() << works;
  rlimit limit, none = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  none.rlim_max = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);

  const absl::Status status = ProbeIoUring();

  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr("io_uring"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("descriptor"));
}

// As a container's seccomp filter has it.
[[noreturn]] void ProbeWhereItIsForbidden() {
  constexpr unsigned kIoUringSetup = 425;
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIoUringSetup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {4, filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(1);
  }
  std::fprintf(stderr, "%s", ProbeIoUring().ToString().c_str());
  ::_exit(0);
}

TEST(IoUringProbeTest, ForbiddenByASandboxItSaysSo) {
  EXPECT_EXIT(ProbeWhereItIsForbidden(), ::testing::ExitedWithCode(0), "seccomp|io_uring_disabled");
}

}  // namespace weft
