// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What POSIX adds: descriptors that are not sockets, watching without taking,
// numbers that come back, signals.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

using ::testing::AnyOf;
using ::testing::ElementsAre;

namespace {

int Fd(NativeHandle handle) { return static_cast<int>(handle); }

// A pipe, non-blocking at both ends.
struct Pipe {
  Pipe() {
    EXPECT_EQ(::pipe(fds), 0);
    for (int fd : fds) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  int read_end() const { return fds[0]; }
  int write_end() const { return fds[1]; }
  int fds[2];
};

// A file of its own, that has no name.
int TemporaryFile() {
  char name[] = "/tmp/weft.XXXXXX";
  const int fd = ::mkstemp(name);
  EXPECT_GE(fd, 0);
  ::unlink(name);
  return fd;
}

// While it lives, the process can open `left` more descriptors.
class FewDescriptors {
 public:
  explicit FewDescriptors(int left) {
    ::getrlimit(RLIMIT_NOFILE, &old_limit_);
    rlimit limit = old_limit_;
    limit.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (int fd; (fd = ::dup(0)) >= 0;) fds_.push_back(fd);
    for (int i = 0; i < left; ++i) {
      ::close(fds_.back());
      fds_.pop_back();
    }
  }
  ~FewDescriptors() {
    for (int fd : fds_) ::close(fd);
    ::setrlimit(RLIMIT_NOFILE, &old_limit_);
  }

 private:
  rlimit old_limit_;
  std::vector<int> fds_;
};

// UBSan's checks of virtual calls open a pipe.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr bool kNeedsDescriptors = true;
#else
constexpr bool kNeedsDescriptors = false;
#endif

}  // namespace

int64_t PollerConformanceTest::SendNow(NativeHandle handle, std::string_view bytes) {
  return ::send(Fd(handle), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::string PollerConformanceTest::ReceiveNow(NativeHandle handle, size_t size) {
  std::string bytes(size, '\0');
  const ssize_t result = ::recv(Fd(handle), bytes.data(), size, MSG_DONTWAIT);
  bytes.resize(result > 0 ? static_cast<size_t>(result) : 0);
  return bytes;
}

void PollerConformanceTest::CloseNow(NativeHandle handle) { EXPECT_EQ(::close(Fd(handle)), 0); }

SockAddr PollerConformanceTest::Loopback() {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SockAddr address;
  std::memcpy(address.bytes, &in, sizeof(in));
  address.length = sizeof(in);
  return address;
}

int PollerConformanceTest::OpenHandleCount() {
  DIR* directory = ::opendir("/dev/fd");
  EXPECT_NE(directory, nullptr);
  int count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

absl::Duration PollerConformanceTest::CpuTime() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// --- Pipes and files ---

TEST_P(PollerConformanceTest, PipesCarryBytesAndTheEnd) {
  const Pipe pipe;
  Own(pipe.read_end());
  char buffer[8] = {};
  TestOperation read, write, end;
  read.PrepareRead(pipe.read_end(), buffer, sizeof(buffer));
  write.PrepareWrite(pipe.write_end(), "hello", 5);
  end.PrepareRead(pipe.read_end(), buffer, sizeof(buffer));
  Start(&read);

  EXPECT_EQ(Do(&write), 5);
  EXPECT_EQ(RunUntilDone(&read), 5);
  EXPECT_STREQ(buffer, "hello");
  Start(&end);
  Retire(pipe.write_end());

  EXPECT_EQ(RunUntilDone(&end), 0);
}

TEST_P(PollerConformanceTest, APipeThatNobodyReadsIsEpipeAndNoSignal) {
  const Pipe pipe;
  Own(pipe.write_end());
  Retire(pipe.read_end());
  TestOperation write;
  write.PrepareWrite(pipe.write_end(), "x", 1);

  EXPECT_EQ(Do(&write), -EPIPE);  // A SIGPIPE would have ended the test.
}

TEST_P(PollerConformanceTest, AFullPipeTakesMoreWhenItIsRead) {
  const Pipe pipe;
  Own(pipe.read_end());
  Own(pipe.write_end());
  const std::string filling(1 << 20, '.');
  TestOperation fill, more, read;
  fill.PrepareWrite(pipe.write_end(), filling.data(), filling.size());
  more.PrepareWrite(pipe.write_end(), "x", 1);
  const int64_t filled = Do(&fill);
  ASSERT_GT(filled, 0);
  Start(&more);
  EXPECT_EQ(Round(), 0);

  std::string got(static_cast<size_t>(filled), '\0');
  read.PrepareRead(pipe.read_end(), got.data(), got.size());
  EXPECT_EQ(Do(&read), filled);

  EXPECT_EQ(RunUntilDone(&more), 1);
}

TEST_P(PollerConformanceTest, APipeLendsWhatItHasAndTheEnd) {
  const Pipe pipe;
  Own(pipe.read_end());
  TestOperation recv;
  Slab slab;
  recv.PrepareRecvLent(pipe.read_end(), kAnyFile);
  if (poller().Start(&recv) == StartResult::kDone) {
    ASSERT_EQ(poller().FetchLent(&recv, &pool_, &slab), StartResult::kPending);
  }
  ASSERT_EQ(::write(pipe.write_end(), "hello", 5), 5);

  RunUntilDone(&recv);
  ASSERT_EQ(poller().FetchLent(&recv, &pool_, &slab), StartResult::kDone);
  ASSERT_EQ(recv.result, 5);
  EXPECT_EQ(std::string(slab.data(), 5), "hello");

  Retire(pipe.write_end());
  recv.PrepareRecvLent(pipe.read_end(), kAnyFile);
  recv.runs = 0;
  Do(&recv);
  while (poller().FetchLent(&recv, &pool_, &slab) == StartResult::kPending) {
    recv.runs = 0;
    RunUntilDone(&recv);
  }
  EXPECT_EQ(recv.result, 0);
}

// A regular file cannot be waited for, and need not be.
TEST_P(PollerConformanceTest, AFileLendsWhatItHasAndTheEnd) {
  const int fd = TemporaryFile();
  Own(fd);
  ASSERT_EQ(::write(fd, "hello", 5), 5);
  ASSERT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  TestOperation recv;
  Slab slab;

  for (const int64_t expected : {5, 0}) {
    recv.PrepareRecvLent(fd, kAnyFile);
    recv.runs = 0;
    Do(&recv);
    ASSERT_EQ(poller().FetchLent(&recv, &pool_, &slab), StartResult::kDone);
    EXPECT_EQ(recv.result, expected);
  }
}

// A pipe's write end can be watched for its reader to go: nothing is written.
TEST_P(PollerConformanceTest, AWaitForReadableAtAWriteEndEndsWithTheReader) {
  const Pipe pipe;
  Own(pipe.write_end());
  TestOperation gone;
  gone.PrepareWaitReadable(pipe.write_end());
  ASSERT_EQ(poller().Start(&gone), StartResult::kPending);
  EXPECT_EQ(Round(), 0);

  Retire(pipe.read_end());

  EXPECT_EQ(RunUntilDone(&gone), 0);
}

TEST_P(PollerConformanceTest, FilesAreReadAndWrittenWhereOneSays) {
  const int fd = TemporaryFile();
  Own(fd);
  char buffer[16] = {};
  TestOperation write, at, sync, data_sync, read, rest, end;
  write.PrepareWrite(fd, "hello world", 11);
  at.PrepareWrite(fd, "W", 1, /*at=*/6);
  sync.PrepareFsync(fd);
  data_sync.PrepareFsync(fd, kDataOnly);
  read.PrepareRead(fd, buffer, 5, /*at=*/6);
  rest.PrepareRead(fd, buffer, sizeof(buffer));
  end.PrepareRead(fd, buffer, sizeof(buffer), /*at=*/11);

  EXPECT_EQ(Do(&write), 11);
  EXPECT_EQ(Do(&at), 1);
  EXPECT_EQ(Do(&sync), 0);
  EXPECT_EQ(Do(&data_sync), 0);
  EXPECT_EQ(Do(&read), 5);
  EXPECT_STREQ(buffer, "World");
  EXPECT_EQ(Do(&rest), 0);  // The position is behind what was written.
  EXPECT_EQ(Do(&end), 0);
}

TEST_P(PollerConformanceTest, DevNullTakesEverythingAndHasNothing) {
  const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  Own(fd);
  char byte;
  TestOperation read, write;
  read.PrepareRead(fd, &byte, 1);
  write.PrepareWrite(fd, "x", 1);

  EXPECT_EQ(Do(&read), 0);
  EXPECT_EQ(Do(&write), 1);
}

TEST_P(PollerConformanceTest, DescriptorsArePassedAndNotInherited) {
  const Pair pair = StreamPair();
  const Pipe pipe;
  char byte = 'x';
  const Buffer piece = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  auto* header = reinterpret_cast<cmsghdr*>(control);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &pipe.fds[0], sizeof(int));
  TestOperation send, recv;
  send.PrepareSendMsg(pair.a, &piece, 1);
  send.control = control;
  send.control_size = sizeof(control);
  ASSERT_EQ(Do(&send), 1);

  std::memset(control, 0, sizeof(control));
  recv.PrepareRecvMsg(pair.b, &piece, 1);
  recv.control = control;
  recv.control_size = sizeof(control);
  ASSERT_EQ(Do(&recv), 1);

  EXPECT_GE(recv.control_size, CMSG_LEN(sizeof(int)));
  int passed = -1;
  std::memcpy(&passed, CMSG_DATA(header), sizeof(int));
  EXPECT_EQ(::fcntl(passed, F_GETFD), FD_CLOEXEC);
  for (int fd : {pipe.fds[0], pipe.fds[1], passed}) CloseNow(fd);
}

// Unix sockets say so at once.
TEST_P(PollerConformanceTest, APeerThatHasGoneIsEpipeAndNoSignal) {
  const Pair pair = StreamPair();
  Retire(pair.b);
  const Buffer pieces[2] = {{const_cast<char*>("x"), 1}, {const_cast<char*>("y"), 1}};
  TestOperation send, send_msg;
  send.PrepareSend(pair.a, "x", 1);
  send_msg.PrepareSendMsg(pair.a, pieces, 2);

  EXPECT_EQ(Do(&send), -EPIPE);
  EXPECT_EQ(Do(&send_msg), -EPIPE);
}

// A short read of a Unix socket ends where a descriptor was passed, not where the
// data ends.
TEST_P(PollerConformanceTest, AUnixStreamIsReadOnPastABoundary) {
  const Pair pair = StreamPair();
  const Pipe pipe;
  char buffer[64];
  TestOperation first, recv1, recv2;
  first.PrepareRecv(pair.b, buffer, sizeof(buffer));
  recv1.PrepareRecv(pair.b, buffer, sizeof(buffer));
  recv2.PrepareRecv(pair.b, buffer, sizeof(buffer));
  Start(&first);
  SendNow(pair.a, "0");
  RunUntilDone(&first);
  Start(&recv1);

  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  auto* header = reinterpret_cast<cmsghdr*>(control);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &pipe.fds[0], sizeof(int));
  iovec piece = {const_cast<char*>("fd"), 2};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ASSERT_EQ(::sendmsg(Fd(pair.a), &message, 0), 2);
  SendNow(pair.a, "plain");

  EXPECT_EQ(RunUntilDone(&recv1), 2);
  EXPECT_EQ(Do(&recv2), 5);
  for (int fd : pipe.fds) CloseNow(fd);
}

// A kernel that had to wait may have read the message, and forget that it did not send it.
TEST_P(PollerConformanceTest, ADatagramThatHasToWaitIsSentWhole) {
  for (const bool is_quiet : {false, true}) {
    for (const bool has_pieces : {false, true}) {
      int fds[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
      for (int fd : fds) ::fcntl(fd, F_SETFL, O_NONBLOCK);
      const NativeHandle from = Own(fds[0]), to = Own(fds[1]);
      int before = 0;
      while (SendNow(from, "before") == 6) ++before;
      const Buffer pieces[] = {{const_cast<char*>("wai"), 3}, {const_cast<char*>("ting"), 4}};
      TestOperation send;
      if (has_pieces) {
        send.PrepareSendMsg(from, pieces, 2);
      } else {
        send.PrepareSend(from, "waiting", 7);
      }
      send.is_quiet = is_quiet;
      Start(&send);
      Round(In(1));
      EXPECT_EQ(send.runs, 0);

      for (int i = 0; i < before; ++i) EXPECT_EQ(ReceiveNow(to, 16), "before");

      EXPECT_EQ(RunUntilDone(&send), 7);
      EXPECT_EQ(ReceiveNow(to, 16), "waiting");
    }
  }
}

TEST_P(PollerConformanceTest, UrgentDataDoesNotHideWhatFollows) {
  const Pair pair = TcpPair();
  char buffer[64];
  std::string got;
  TestOperation first;
  first.PrepareRecv(pair.b, buffer, sizeof(buffer));
  Start(&first);
  SendNow(pair.a, "0");
  RunUntilDone(&first);

  SendNow(pair.a, "before");
  ASSERT_EQ(::send(Fd(pair.a), "!", 1, MSG_OOB), 1);
  SendNow(pair.a, "after");

  EXPECT_EQ(ReceiveAll(pair.b, 11), "beforeafter");
}

TEST_P(PollerConformanceTest, AUnixSocketWithAFullBacklogIsEagain) {
  char directory[] = "/tmp/weft.XXXXXX";
  ASSERT_NE(::mkdtemp(directory), nullptr);
  const std::string path = std::string(directory) + "/s";
  sockaddr_un un = {};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.c_str(), path.size() + 1);
  SockAddr address;
  std::memcpy(address.bytes, &un, sizeof(un));
  address.length = sizeof(un);
  const NativeHandle listener = Own(sockets_->Open(SocketDomain::kUnix, SocketType::kStream));
  ASSERT_EQ(sockets_->Bind(listener, address), 0);
  ASSERT_EQ(sockets_->Listen(listener, 0), 0);

  int64_t result = 0;
  for (int i = 0; i < 5 && result == 0; ++i) {
    const NativeHandle client = Own(sockets_->Open(SocketDomain::kUnix, SocketType::kStream));
    TestOperation connect;
    connect.PrepareConnect(client, &address);
    result = Do(&connect);
  }

  EXPECT_EQ(result, -EAGAIN);
  ::unlink(path.c_str());
  ::rmdir(directory);
}

// --- Watching without taking ---

TEST_P(PollerConformanceTest, AWatchIsReadyAsLongAsNobodyReads) {
  const Pipe pipe;
  Own(pipe.read_end());
  Own(pipe.write_end());
  TestOperation wait;
  wait.PrepareWaitReadable(pipe.read_end());
  Start(&wait);
  EXPECT_EQ(Round(), 0);
  ASSERT_EQ(::write(pipe.write_end(), "x", 1), 1);

  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(RunUntilDone(&wait), 0);
    wait.runs = 0;
    wait.PrepareWaitReadable(pipe.read_end(), kWaitAgain);
    Start(&wait);
  }
  char byte;
  RunUntilDone(&wait);
  ASSERT_EQ(::read(pipe.read_end(), &byte, 1), 1);
  wait.runs = 0;
  wait.PrepareWaitReadable(pipe.read_end(), kWaitAgain);
  Start(&wait);

  EXPECT_EQ(Round(), 0);
  EXPECT_EQ(wait.runs, 0);
  ASSERT_EQ(::write(pipe.write_end(), "y", 1), 1);
  EXPECT_EQ(RunUntilDone(&wait), 0);
}

TEST_P(PollerConformanceTest, AWatchSeesWhatWasThereBefore) {
  const Pair pair = StreamPair();
  SendNow(pair.b, "x");
  TestOperation readable, writable;
  readable.PrepareWaitReadable(pair.a);
  writable.PrepareWaitWritable(pair.a);

  EXPECT_EQ(Do(&readable), 0);
  EXPECT_EQ(Do(&writable), 0);
}

TEST_P(PollerConformanceTest, OfOneDescriptorTheReaderIsBeforeTheWriter) {
  const Pair pair = StreamPair();
  TestOperation readable(&order_), writable(&order_);
  writable.PrepareWaitWritable(pair.a);
  readable.PrepareWaitReadable(pair.a);
  SendNow(pair.b, "x");

  Start(&writable);
  Start(&readable);
  RunUntilDone(&readable);
  RunUntilDone(&writable);

  EXPECT_THAT(order_, ElementsAre(&readable, &writable));
}

TEST_P(PollerConformanceTest, WhoWatchTheSameAreToldInTheOrderInWhichTheyCame) {
  const Pair pair = StreamPair();
  TestOperation first(&order_), second(&order_), third(&order_), fourth(&order_);
  for (TestOperation* watch : {&first, &second, &third, &fourth}) {
    watch->PrepareWaitReadable(pair.a);
    Start(watch);
    Round();
  }
  poller().Cancel(&first);
  RunUntilDone(&first);
  order_.clear();

  SendNow(pair.b, "x");
  RunUntilDone(&fourth);

  EXPECT_THAT(order_, ElementsAre(&second, &third, &fourth));
}

// Also if nobody else is told that the first has given up.
TEST_P(PollerConformanceTest, ACancelledWatchLeavesTheOthers) {
  const Pair pair = StreamPair();
  TestOperation first, second;
  for (TestOperation* watch : {&first, &second}) {
    watch->PrepareWaitReadable(pair.a);
    Start(watch);
  }
  Round();
  poller().Cancel(&first);

  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&second), 0);
}

TEST_P(PollerConformanceTest, ACancelledWatchLeavesTheOtherDirection) {
  const Pair pair = StreamPair();
  TestOperation readable, writable;
  readable.PrepareWaitReadable(pair.a);
  writable.PrepareWaitWritable(pair.a);
  Start(&readable);
  Start(&writable);

  poller().Cancel(&writable);
  RunUntilDone(&writable);
  EXPECT_EQ(Round(), 0);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&readable), 0);
}

TEST_P(PollerConformanceTest, WatchingWhatCannotBeWatchedIsAnError) {
  const int file = TemporaryFile();
  Own(file);
  TestOperation regular, negative, unopened;
  regular.PrepareWaitReadable(file);
  negative.PrepareWaitReadable(-1);
  unopened.PrepareWaitWritable(1'000'000'000);

  EXPECT_EQ(Do(&regular), -EPERM);
  EXPECT_EQ(Do(&negative), -EBADF);
  EXPECT_EQ(Do(&unopened), -EBADF);
}

TEST_P(PollerConformanceTest, AHangUpIsReadableAndThenSilent) {
  const Pipe pipe;
  Own(pipe.read_end());
  TestOperation wait;
  wait.PrepareWaitReadable(pipe.read_end());
  Start(&wait);
  CloseNow(pipe.write_end());

  EXPECT_EQ(RunUntilDone(&wait), 0);
  const absl::Duration before = CpuTime();
  EXPECT_EQ(Round(In(60)), 0);

  EXPECT_LT(CpuTime() - before, absl::Milliseconds(20));
}

TEST_P(PollerConformanceTest, ABrokenPipeIsWritable) {
  const Pipe pipe;
  Own(pipe.write_end());
  const std::string filling(1 << 20, '.');
  ASSERT_GT(::write(pipe.write_end(), filling.data(), filling.size()), 0);
  TestOperation wait, write;
  wait.PrepareWaitWritable(pipe.write_end());
  Start(&wait);
  EXPECT_EQ(Round(), 0);

  CloseNow(pipe.read_end());

  EXPECT_EQ(RunUntilDone(&wait), 0);
  write.PrepareWrite(pipe.write_end(), "x", 1);
  EXPECT_EQ(Do(&write), -EPIPE);
}

TEST_P(PollerConformanceTest, WatchingAndReceivingOnOneSocketGoTogether) {
  const Pair pair = TcpPair();
  char byte;
  TestOperation watch, recv;
  watch.PrepareWaitReadable(pair.a);
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&watch);
  Start(&recv);

  SendNow(pair.b, "xy");
  EXPECT_EQ(RunUntilDone(&recv), 1);
  EXPECT_EQ(RunUntilDone(&watch), 0);
  watch.runs = 0;
  watch.PrepareWaitReadable(pair.a, kWaitAgain);

  EXPECT_EQ(Do(&watch), 0);  // One byte is left.
  EXPECT_EQ(ReceiveAll(pair.a, 1), "y");
  watch.runs = 0;
  watch.PrepareWaitReadable(pair.a);
  Start(&watch);
  EXPECT_EQ(Round(), 0);
  SendNow(pair.b, "z");
  EXPECT_EQ(RunUntilDone(&watch), 0);
}

// --- Numbers that come back ---

TEST_P(PollerConformanceTest, EventsOfAnOldFileDoNotReachTheNewOneOfItsNumber) {
  Round(In(1));  // Opens what the poller has of its own: none of that takes the number.
  const Pair old = StreamPair();
  const Pair fresh = StreamPair();
  char byte = 0;
  TestOperation recv;
  recv.PrepareRecv(old.a, &byte, 1);
  Start(&recv);
  const int duplicate = ::dup(Fd(old.a));  // Keeps the old file open.
  Own(duplicate);
  Retire(old.a);

  ASSERT_EQ(::dup2(Fd(fresh.a), Fd(old.a)), Fd(old.a));
  Own(old.a);
  TestOperation again;
  again.PrepareRecv(old.a, &byte, 1);
  Start(&again);
  SendNow(old.b, "old");
  EXPECT_EQ(Round(In(5)), 0);
  SendNow(fresh.b, "f");

  EXPECT_EQ(RunUntilDone(&again), 1);
  EXPECT_EQ(byte, 'f');
  EXPECT_EQ(recv.result, -ECANCELED);
}

TEST_P(PollerConformanceTest, ADuplicateOfARetiredSocketCausesNoWork) {
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  Own(::dup(Fd(pair.a)));
  Retire(pair.a);
  SendNow(pair.b, "x");
  const absl::Duration before = CpuTime();

  EXPECT_EQ(Round(In(60)), 0);

  EXPECT_LT(CpuTime() - before, absl::Milliseconds(20));
}

// POLL 322: asyncio accepts the second watch and never calls it.
TEST_P(PollerConformanceTest, AWatchedNumberClosedWithoutOurKnowledgeCanBeWatchedAgain) {
  const Pipe old, fresh;
  Own(old.write_end());
  Own(fresh.write_end());
  Own(fresh.read_end());
  TestOperation lost, wait;
  lost.PrepareWaitReadable(old.read_end());
  Start(&lost);
  EXPECT_EQ(Round(), 0);

  ASSERT_EQ(::dup2(fresh.read_end(), old.read_end()), old.read_end());
  Own(old.read_end());
  wait.PrepareWaitReadable(old.read_end());
  Start(&wait);
  RunUntilQuiet();
  EXPECT_EQ(wait.runs, 0);
  ASSERT_EQ(::write(fresh.write_end(), "x", 1), 1);

  EXPECT_EQ(RunUntilDone(&wait), 0);
  poller().Cancel(&lost);
  EXPECT_THAT(RunUntilDone(&lost), AnyOf(-EBADF, -ECANCELED, 0));
}

// The same, while a duplicate keeps the old file open and readable: it can no
// longer be deregistered, and must not keep the loop awake all the same.
TEST_P(PollerConformanceTest, AFileThatCannotBeDeregisteredCausesBoundedWork) {
  const Pipe old, fresh;
  Own(old.write_end());
  Own(fresh.write_end());
  Own(fresh.read_end());
  Own(::dup(old.read_end()));
  TestOperation lost, wait;
  lost.PrepareWaitReadable(old.read_end());
  Start(&lost);
  EXPECT_EQ(Round(), 0);

  ASSERT_EQ(::dup2(fresh.read_end(), old.read_end()), old.read_end());
  Own(old.read_end());
  wait.PrepareWaitReadable(old.read_end());
  Start(&wait);
  RunUntilQuiet();
  ASSERT_EQ(::write(old.write_end(), "x", 1), 1);
  const absl::Duration before = CpuTime();
  EXPECT_EQ(Round(In(60)), 0);
  EXPECT_LT(CpuTime() - before, absl::Milliseconds(20));
  ASSERT_EQ(::write(fresh.write_end(), "x", 1), 1);

  EXPECT_EQ(RunUntilDone(&wait), 0);
  poller().Cancel(&lost);
  RunUntilDone(&lost);
}

TEST_P(PollerConformanceTest, AnAcceptedNumberThatWasClosedWithoutOurKnowledgeWorks) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation connect;
  connect.PrepareConnect(client, &address);
  ASSERT_EQ(Do(&connect), 0);
  const Pair old = StreamPair();
  char byte = 0;
  TestOperation lost, accept, recv;
  lost.PrepareRecv(old.a, &byte, 1);
  Start(&lost);
  CloseNow(old.a);
  Disown(old.a);

  accept.PrepareAccept(listener);
  const NativeHandle server = Own(Do(&accept));
  EXPECT_EQ(server, old.a);  // Else this tests nothing.
  recv.PrepareRecv(server, &byte, 1);
  Start(&recv);
  SendNow(client, "x");

  EXPECT_EQ(RunUntilDone(&recv), 1);
  EXPECT_EQ(byte, 'x');
  poller().Cancel(&lost);
  EXPECT_THAT(RunUntilDone(&lost), AnyOf(-EBADF, -ECANCELED, 0));
}

// --- Signals ---

TEST_P(PollerConformanceTest, ASignalDoesNotBreakASleep) {
  struct sigaction action = {}, before;
  action.sa_handler = [](int) {};  // Without SA_RESTART.
  ::sigaction(SIGUSR1, &action, &before);
  std::atomic<bool> stop{false};
  const pthread_t self = ::pthread_self();
  std::thread thread([&] {
    while (!stop.load()) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::yield();
    }
  });
  const TimePoint deadline = In(50);

  const Pair pair = TcpPair();
  while (Now() < deadline) {
    Round(deadline);
    SendAll(pair.a, "x");
    ASSERT_EQ(ReceiveAll(pair.b, 1), "x");
  }

  stop.store(true);
  thread.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(PollerConformanceTest, ASignalHandlerCanWake) {
  static Waker* waker = nullptr;
  const std::shared_ptr<Waker> owned = poller().MakeWaker();
  waker = owned.get();
  struct sigaction action = {}, before;
  action.sa_handler = [](int) { waker->Wake(); };
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, &before);

  errno = 77;
  ::raise(SIGUSR1);
  EXPECT_EQ(errno, 77);
  Round(TimePoint::InfiniteFuture());
  ::raise(SIGUSR1);
  Round(TimePoint::InfiniteFuture());

  ::sigaction(SIGUSR1, &before, nullptr);
}

// --- A foreign loop ---

// Whether it finds it readable.
bool IsReadable(NativeHandle handle, int timeout_ms = 0) {
  pollfd entry = {Fd(handle), POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) == 1;
}

TEST_P(PollerConformanceTest, BackendFdIsReadableWhenAnOperationCanEnd) {
  const NativeHandle fd = poller().BackendFd();
  if (fd == kInvalidHandle) GTEST_SKIP() << "this backend cannot live in a foreign loop";
  const Pair pair = StreamPair();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  Round();
  poller().ArmBackend(TimePoint::InfiniteFuture());
  EXPECT_FALSE(IsReadable(fd));

  SendNow(pair.b, "x");

  EXPECT_TRUE(IsReadable(fd, 1'000));
  EXPECT_EQ(RunUntilDone(&recv), 1);
  Round();
  poller().ArmBackend(TimePoint::InfiniteFuture());
  EXPECT_FALSE(IsReadable(fd));
  EXPECT_EQ(poller().BackendFd(), fd);
}

// The foreign loop sleeps next: there is no round before.
TEST_P(PollerConformanceTest, BackendFdKnowsOfWhatWasStartedSinceTheLastRound) {
  const NativeHandle fd = poller().BackendFd();
  if (fd == kInvalidHandle) GTEST_SKIP() << "this backend cannot live in a foreign loop";
  const Pair pair = StreamPair();
  Round();
  char byte;
  TestOperation recv;
  recv.PrepareRecv(pair.a, &byte, 1);
  Start(&recv);
  poller().ArmBackend(TimePoint::InfiniteFuture());

  SendNow(pair.b, "x");

  EXPECT_TRUE(IsReadable(fd, 1'000));
  EXPECT_EQ(RunUntilDone(&recv), 1);
}

TEST_P(PollerConformanceTest, BackendFdIsReadableWhenTheDeadlinePassesOrSomebodyWakes) {
  const NativeHandle fd = poller().BackendFd();
  if (fd == kInvalidHandle) GTEST_SKIP() << "this backend cannot live in a foreign loop";

  poller().ArmBackend(In(3));
  EXPECT_TRUE(IsReadable(fd, 10'000));
  Round();
  poller().ArmBackend(TimePoint::InfiniteFuture());
  EXPECT_FALSE(IsReadable(fd));

  poller().MakeWaker()->Wake();
  EXPECT_TRUE(IsReadable(fd, 1'000));
  Round();
  poller().ArmBackend(TimePoint::InfiniteFuture());
  EXPECT_FALSE(IsReadable(fd));
}

TEST_P(PollerConformanceTest, BackendFdIsReadableWhenSomethingWaitsToBeCollected) {
  const NativeHandle fd = poller().BackendFd();
  if (fd == kInvalidHandle) GTEST_SKIP() << "this backend cannot live in a foreign loop";
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

// A server that has used up its descriptors must not end because its poller has not
// opened all of its own yet; and one that has must not notice.
TEST_P(PollerConformanceTest, ShortOfDescriptorsItSleepsAndIsWokenAllTheSame) {
  if (kNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  for (int left = 0; left <= 6; ++left) {
    SCOPED_TRACE(left);
    const std::unique_ptr<Poller> tried = GetParam()();
    const Pair pair = StreamPair();
    char byte = 0;
    TestOperation receive;
    receive.PrepareRecv(pair.a, &byte, 1);
    auto few = std::make_unique<FewDescriptors>(left);
    bool is_pending = tried->Start(&receive) == StartResult::kPending;
    ReadyQueue done;
    const auto wait = [&](TimePoint deadline) {
      const absl::Status status = tried->Wait(deadline, &done);
      EXPECT_TRUE(status.ok()) << status;
      while (Runnable* next = done.PopFront()) next->Run();
      if (receive.runs > 0) is_pending = false;
      return status.ok();
    };

    const TimePoint deadline = In(35);
    int waits = 0;
    while (Now() < deadline && wait(deadline)) ++waits;
    EXPECT_LE(waits, 10);  // Naps, and not a busy loop.
    tried->MakeWaker()->Wake();
    const TimePoint woken_at = Now();
    wait(In(10'000));
    EXPECT_LT(Now() - woken_at, absl::Seconds(5));
    if (!is_pending) {  // It could not be watched, and says so.
      EXPECT_EQ(receive.result, -EMFILE);
    }

    few.reset();
    if (!is_pending) is_pending = tried->Start(&receive) == StartResult::kPending;
    EXPECT_TRUE(is_pending);
    SendNow(pair.b, "x");
    const TimePoint latest = In(10'000);
    while (is_pending && Now() < latest && wait(latest)) {
    }
    EXPECT_EQ(receive.result, 1);
  }
}

TEST_P(PollerConformanceTest, OneThatIsAtWorkNeedsNoMoreDescriptors) {
  if (kNeedsDescriptors) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  const Pair pair = StreamPair();
  char byte = 0;
  TestOperation receive;
  receive.PrepareRecv(pair.a, &byte, 1);
  Start(&receive);
  Round();
  const FewDescriptors none(0);

  const TimePoint deadline = In(25);
  Round(deadline);  // Which it has not waited for yet.
  EXPECT_GE(Now(), deadline);
  const TimePoint start = Now();
  std::thread other([waker = poller().MakeWaker()] { waker->Wake(); });
  Round(In(10'000));
  other.join();
  EXPECT_LT(Now() - start, absl::Seconds(5));
  SendNow(pair.b, "x");
  EXPECT_EQ(RunUntilDone(&receive), 1);
}

}  // namespace weft
