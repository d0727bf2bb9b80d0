// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What Windows has in place of descriptors, and what it adds: pipes and files that were
// opened for overlapped I/O, watching sockets.

#include <winsock2.h>
// Behind it.
#include <windows.h>
#include <winternl.h>
#include <ws2tcpip.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/poller/poller_conformance.h"

namespace weft {

using ::testing::AnyOf;
using ::testing::ElementsAre;

namespace {

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }

// Both ends of a pipe, opened for overlapped I/O.
struct OverlappedPipe {
  OverlappedPipe() {
    static int number = 0;
    const std::string name = "\\\\.\\pipe\\weft." + std::to_string(::GetCurrentProcessId()) + "." +
                             std::to_string(++number);
    const HANDLE reads = ::CreateNamedPipeA(
        name.c_str(), PIPE_ACCESS_INBOUND | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
        PIPE_TYPE_BYTE | PIPE_READMODE_BYTE, /*nMaxInstances=*/1, 4'096, 4'096, 0, nullptr);
    const HANDLE writes = ::CreateFileA(name.c_str(), GENERIC_WRITE, 0, nullptr, OPEN_EXISTING,
                                        FILE_FLAG_OVERLAPPED, nullptr);
    EXPECT_NE(reads, INVALID_HANDLE_VALUE);
    EXPECT_NE(writes, INVALID_HANDLE_VALUE);
    read_end = reinterpret_cast<NativeHandle>(reads);
    write_end = reinterpret_cast<NativeHandle>(writes);
  }
  NativeHandle read_end;
  NativeHandle write_end;
};

// A file that goes when it is closed, opened for overlapped I/O.
NativeHandle TemporaryFile() {
  char folder[MAX_PATH], name[MAX_PATH];
  ::GetTempPathA(MAX_PATH, folder);
  ::GetTempFileNameA(folder, "wft", 0, name);
  const HANDLE file = ::CreateFileA(name, GENERIC_READ | GENERIC_WRITE, 0, nullptr, CREATE_ALWAYS,
                                    FILE_FLAG_OVERLAPPED | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  EXPECT_NE(file, INVALID_HANDLE_VALUE);
  return reinterpret_cast<NativeHandle>(file);
}

}  // namespace

int64_t PollerConformanceTest::SendNow(NativeHandle handle, std::string_view bytes) {
  return ::send(Socket(handle), bytes.data(), static_cast<int>(bytes.size()), 0);
}

std::string PollerConformanceTest::ReceiveNow(NativeHandle handle, size_t size) {
  std::string bytes(size, '\0');
  const int result = ::recv(Socket(handle), bytes.data(), static_cast<int>(size), 0);
  bytes.resize(result > 0 ? static_cast<size_t>(result) : 0);
  return bytes;
}

void PollerConformanceTest::CloseNow(NativeHandle handle) {
  EXPECT_EQ(::closesocket(Socket(handle)), 0);
}

SockAddr PollerConformanceTest::Loopback() {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  SockAddr address;
  std::memcpy(address.bytes, &in, sizeof(in));
  address.length = sizeof(in);
  return address;
}

// Files, which sockets and pipes are, and completion ports: what a poller has to do with.
// The system opens events and the like for itself, at times of its own. Handles are
// multiples of four, and the lowest that is free is taken.
int PollerConformanceTest::OpenHandleCount() {
  using QueryObject = LONG(NTAPI*)(HANDLE, int, void*, ULONG, ULONG*);
  static const auto query = reinterpret_cast<QueryObject>(
      reinterpret_cast<void*>(::GetProcAddress(::GetModuleHandleW(L"ntdll.dll"), "NtQueryObject")));
  constexpr uintptr_t kFarBeyond = 1'000;
  constexpr int kObjectTypeInformation = 2;
  int count = 0;
  for (uintptr_t number = 1, last = 0; number < last + kFarBeyond; ++number) {
    const HANDLE handle = reinterpret_cast<HANDLE>(number * 4);
    DWORD flags;
    if (!::GetHandleInformation(handle, &flags)) continue;
    last = number;
    alignas(8) char answer[1'024];
    ULONG size;
    if (query(handle, kObjectTypeInformation, answer, sizeof(answer), &size) < 0) continue;
    const auto* name = reinterpret_cast<const UNICODE_STRING*>(answer);
    const std::wstring_view type(name->Buffer, name->Length / sizeof(wchar_t));
    if (type == L"File" || type == L"IoCompletion") ++count;
  }
  return count;
}

absl::Duration PollerConformanceTest::CpuTime() {
  FILETIME created, ended, kernel, user;
  ::GetThreadTimes(::GetCurrentThread(), &created, &ended, &kernel, &user);
  const auto ticks = [](const FILETIME& time) {
    return static_cast<int64_t>(time.dwHighDateTime) << 32 | time.dwLowDateTime;
  };
  return absl::Nanoseconds(100) * (ticks(kernel) + ticks(user));
}

// --- Pipes and files ---

TEST_P(PollerConformanceTest, PipesCarryBytesAndTheEnd) {
  const OverlappedPipe pipe;
  char buffer[8] = {};
  TestOperation read, write, end;
  read.PrepareRead(pipe.read_end, buffer, sizeof(buffer));
  write.PrepareWrite(pipe.write_end, "hello", 5);
  end.PrepareRead(pipe.read_end, buffer, sizeof(buffer));

  Start(&read);
  EXPECT_EQ(Round(), 0);
  EXPECT_EQ(Do(&write), 5);
  EXPECT_EQ(RunUntilDone(&read), 5);
  EXPECT_STREQ(buffer, "hello");
  Start(&end);
  EXPECT_EQ(Retire(pipe.write_end), 0);
  EXPECT_EQ(RunUntilDone(&end), 0);

  EXPECT_EQ(Retire(pipe.read_end), 0);
}

TEST_P(PollerConformanceTest, APipeThatNobodyReadsIsEpipe) {
  const OverlappedPipe pipe;
  TestOperation write;
  write.PrepareWrite(pipe.write_end, "x", 1);
  Retire(pipe.read_end);

  EXPECT_EQ(Do(&write), -EPIPE);

  Retire(pipe.write_end);
}

TEST_P(PollerConformanceTest, APipeLendsWhatItHasAndTheEnd) {
  const OverlappedPipe pipe;
  TestOperation lent, write, end;
  lent.PrepareRecvLent(pipe.read_end, kAnyFile);
  write.PrepareWrite(pipe.write_end, "hello", 5);
  end.PrepareRecvLent(pipe.read_end, kAnyFile);
  Slab slab;
  Start(&lent);
  EXPECT_EQ(Round(), 0);
  EXPECT_EQ(pool_.outstanding_count(), 0u);

  EXPECT_EQ(Do(&write), 5);
  RunUntilDone(&lent);
  ASSERT_EQ(poller().FetchLent(&lent, &pool_, &slab), StartResult::kDone);
  EXPECT_EQ(lent.result, 5);
  EXPECT_EQ(std::string(slab.data(), 5), "hello");
  Retire(pipe.write_end);
  Do(&end);
  ASSERT_EQ(poller().FetchLent(&end, &pool_, &slab), StartResult::kDone);
  EXPECT_EQ(end.result, 0);

  Retire(pipe.read_end);
}

TEST_P(PollerConformanceTest, AReadOfAPipeCanBeCancelledAndLosesNothing) {
  const OverlappedPipe pipe;
  char buffer[8] = {};
  TestOperation read, again, write;
  read.PrepareRead(pipe.read_end, buffer, sizeof(buffer));
  again.PrepareRead(pipe.read_end, buffer, sizeof(buffer));
  write.PrepareWrite(pipe.write_end, "hello", 5);
  Start(&read);
  Round();
  poller().Cancel(&read);
  Do(&write);

  const int64_t result = RunUntilDone(&read);

  ASSERT_THAT(result, AnyOf(5, -ECANCELED));
  if (result < 0) {
    EXPECT_EQ(Do(&again), 5);
  }
  EXPECT_STREQ(buffer, "hello");
  Retire(pipe.read_end);
  Retire(pipe.write_end);
}

TEST_P(PollerConformanceTest, FilesAreReadAndWrittenWhereOneSays) {
  const NativeHandle file = TemporaryFile();
  char buffer[8] = {};
  TestOperation write, sync, read, end, nowhere;
  write.PrepareWrite(file, "0123456789", 10, 0);
  sync.PrepareFsync(file);
  read.PrepareRead(file, buffer, 4, 3);
  end.PrepareRead(file, buffer + 4, 4, 10);
  nowhere.PrepareRead(file, buffer, 4);

  EXPECT_EQ(Do(&write), 10);
  EXPECT_EQ(Do(&sync), 0);
  EXPECT_EQ(Do(&read), 4);
  EXPECT_STREQ(buffer, "3456");
  EXPECT_EQ(Do(&end), 0);
  EXPECT_EQ(Do(&nowhere), -ESPIPE);

  EXPECT_EQ(Retire(file), 0);
}

// --- The end of a stream ---

// TCP notices when the other side has answered.
TEST_P(PollerConformanceTest, APeerThatHasGoneIsEpipeOrAReset) {
  const Pair pair = StreamPair();
  Retire(pair.b);
  int64_t result = 0;

  for (const TimePoint limit = In(10'000); result >= 0 && Now() < limit;) {
    TestOperation send;
    send.PrepareSend(pair.a, "x", 1);
    result = Do(&send);
  }

  EXPECT_THAT(result, AnyOf(-EPIPE, -ECONNRESET));
}

// --- Watching ---

TEST_P(PollerConformanceTest, AWatchIsReadyAsLongAsNobodyReads) {
  const Pair pair = StreamPair();
  TestOperation wait;
  wait.PrepareWaitReadable(pair.a);
  Start(&wait);
  EXPECT_EQ(Round(), 0);

  SendNow(pair.b, "x");
  EXPECT_EQ(RunUntilDone(&wait), 0);
  wait.runs = 0;
  wait.PrepareWaitReadable(pair.a, kWaitAgain);
  EXPECT_EQ(Do(&wait), 0);
  EXPECT_EQ(ReceiveNow(pair.a, 1), "x");
  wait.runs = 0;
  wait.PrepareWaitReadable(pair.a, kWaitAgain);
  Start(&wait);
  EXPECT_EQ(Round(In(5)), 0);

  poller().Cancel(&wait);
  EXPECT_EQ(RunUntilDone(&wait), -ECANCELED);
}

TEST_P(PollerConformanceTest, OfOneSocketTheReaderIsBeforeTheWriter) {
  const Pair pair = StreamPair();
  SendNow(pair.b, "x");
  TestOperation writable(&order_), readable(&order_);
  writable.PrepareWaitWritable(pair.a);
  readable.PrepareWaitReadable(pair.a);
  Start(&writable);
  Start(&readable);

  EXPECT_EQ(RunUntilDone(&writable), 0);

  EXPECT_THAT(order_, ElementsAre(&readable, &writable));
}

TEST_P(PollerConformanceTest, WhoWatchTheSameAreToldInTheOrderInWhichTheyCame) {
  const Pair pair = StreamPair();
  TestOperation waits[3];
  for (TestOperation& wait : waits) {
    wait.order = &order_;
    wait.PrepareWaitReadable(pair.a);
    Start(&wait);
  }
  EXPECT_EQ(Round(), 0);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&waits[2]), 0);

  EXPECT_THAT(order_, ElementsAre(&waits[0], &waits[1], &waits[2]));
}

TEST_P(PollerConformanceTest, ACancelledWatchLeavesTheOthers) {
  const Pair pair = StreamPair();
  TestOperation first, second;
  first.PrepareWaitReadable(pair.a);
  second.PrepareWaitReadable(pair.a);
  Start(&first);
  Start(&second);
  Round();

  poller().Cancel(&first);
  EXPECT_EQ(RunUntilDone(&first), -ECANCELED);
  SendNow(pair.b, "x");

  EXPECT_EQ(RunUntilDone(&second), 0);
}

TEST_P(PollerConformanceTest, AWatchedNumberClosedWithoutOurKnowledgeCanBeUsedAgain) {
  for (const bool is_seen : {false, true}) {
    const Pair old = StreamPair();
    TestOperation wait;
    wait.PrepareWaitReadable(old.a);
    Start(&wait);
    Round();
    poller().Cancel(&wait);
    if (is_seen) RunUntilDone(&wait);
    Disown(old.a);
    CloseNow(old.a);

    const Pair fresh = StreamPair();  // One end gets the number.
    for (const NativeHandle handle : {fresh.a, fresh.b}) {
      char byte = 0;
      TestOperation recv;
      recv.PrepareRecv(handle, &byte, 1);
      Start(&recv);
      SendNow(handle == fresh.a ? fresh.b : fresh.a, "x");
      EXPECT_EQ(RunUntilDone(&recv), 1);
    }
    EXPECT_EQ(RunUntilDone(&wait), -ECANCELED);
  }
}

TEST_P(PollerConformanceTest, AListenerIsReadableWhenSomebodyComes) {
  SockAddr address;
  const NativeHandle listener = Listener(&address);
  const NativeHandle client = Own(sockets_->Open(SocketDomain::kInet, SocketType::kStream));
  TestOperation wait, connect, accept;
  wait.PrepareWaitReadable(listener);
  connect.PrepareConnect(client, &address);
  accept.PrepareAccept(listener);
  Start(&wait);
  EXPECT_EQ(Round(), 0);
  Start(&connect);

  EXPECT_EQ(RunUntilDone(&wait), 0);

  Own(Do(&accept));
  EXPECT_EQ(RunUntilDone(&connect), 0);
}

TEST_P(PollerConformanceTest, WatchingWhatCannotBeWatchedIsAnError) {
  const NativeHandle file = TemporaryFile();
  const OverlappedPipe pipe;
  for (const NativeHandle handle : {file, pipe.read_end}) {
    TestOperation wait;
    wait.PrepareWaitReadable(handle);
    EXPECT_EQ(Do(&wait), -EPERM);
  }
  TestOperation wait;
  wait.PrepareWaitWritable(19'999);
  EXPECT_EQ(Do(&wait), -EBADF);
  for (const NativeHandle handle : {file, pipe.read_end, pipe.write_end}) Retire(handle);
}

}  // namespace weft
