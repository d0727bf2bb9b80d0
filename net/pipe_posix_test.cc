// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What the streams over descriptors promise: what is in POSIX, and not on Windows. The
// numbers are those of the conformance list.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/net/test_net.h"
#include "weft/testing/test_poller.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

class PipePosixTest : public NetTest {};

// Two ends as the system gives them.
struct RawEnds {
  int read_end() const { return static_cast<int>(pipe.read_end); }
  int write_end() const { return static_cast<int>(pipe.write_end); }
  internal::RawPipe pipe = internal::OpenRawPipe().value();
};

bool IsNonBlocking(int fd) { return (::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

PipeOptions Borrowed() {
  PipeOptions options;
  options.borrow = true;
  return options;
}

// A file of its own, that has no name.
int TemporaryFile() {
  char name[] = "/tmp/weft.XXXXXX";
  const int fd = ::mkostemp(name, O_CLOEXEC);
  EXPECT_GE(fd, 0);
  ::unlink(name);
  return fd;
}

// TRN 253
WEFT_TEST_F(PipePosixTest, AWriterHearsThatNobodyReadsWithoutWriting) {
  Pipe pipe = (co_await OpenPipe()).value();
  EXPECT_FALSE(pipe.writer.IsClosing());
  auto wait = [](StreamWriter& writer) -> Coro<absl::Status> {
    co_return co_await writer.WaitClosed();
  };
  Task<absl::Status> closed = CreateTask(wait(pipe.writer));
  co_await Rounds(3);

  pipe.reader = StreamReader();

  absl::Status why = co_await std::move(closed);
  EXPECT_EQ(ErrnoOf(why), EPIPE) << why;
  EXPECT_TRUE(pipe.writer.IsClosing());
  WEFT_EXPECT_EQ(ErrnoOf(co_await pipe.writer.Drain()), EPIPE);
}

WEFT_TEST_F(PipePosixTest, WritingWhereNobodyReadsIsEpipeAndNoSignal) {
  RawEnds raw;
  ::close(raw.read_end());
  StreamWriter writer = (co_await ConnectWritePipe(raw.write_end())).value();
  writer.Write("x");
  absl::Status sent = co_await writer.Drain();
  if (TestPollerCompletes()) {  // It is written when the loop polls, and Drain() does not wait.
    co_await Rounds(3);
    sent = co_await writer.Drain();
  }
  EXPECT_THAT(sent.message(), HasSubstr("[EPIPE]"));
  EXPECT_THAT(sent.message(), HasSubstr(absl::StrCat("write to pipe ", raw.write_end())));
}

WEFT_TEST_F(PipePosixTest, AReaderOwnsItsDescriptor) {
  RawEnds raw;
  {
    StreamReader reader = (co_await ConnectReadPipe(raw.read_end())).value();
    EXPECT_TRUE(IsNonBlocking(raw.read_end()));
  }
  co_await Rounds(2);
  EXPECT_EQ(::fcntl(raw.read_end(), F_GETFD), -1);
  ::close(raw.write_end());
}

WEFT_TEST_F(PipePosixTest, WhatIsBorrowedStaysAsItIs) {
  RawEnds raw;
  {
    StreamReader reader = (co_await ConnectReadPipe(raw.read_end(), Borrowed())).value();
    StreamWriter writer = (co_await ConnectWritePipe(raw.write_end(), Borrowed())).value();
    EXPECT_FALSE(IsNonBlocking(raw.read_end()));
    EXPECT_FALSE(IsNonBlocking(raw.write_end()));
    writer.Write("through");
    WEFT_EXPECT_EQ(Get(co_await reader.ReadExactly(7)), "through");
  }
  co_await Rounds(2);
  char byte;
  EXPECT_EQ(::write(raw.write_end(), "x", 1), 1);
  EXPECT_EQ(::read(raw.read_end(), &byte, 1), 1);
  ::close(raw.read_end());
  ::close(raw.write_end());
}

// A socket cannot be opened once more.
WEFT_TEST_F(PipePosixTest, ABorrowedSocketBlocksAgainAfterwards) {
  int fds[2];
  WEFT_ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  {
    StreamWriter writer = (co_await ConnectWritePipe(fds[0], Borrowed())).value();
    StreamReader reader = (co_await ConnectReadPipe(fds[1])).value();
    EXPECT_TRUE(IsNonBlocking(fds[0]));
    writer.Write("through");
    WEFT_EXPECT_EQ(Get(co_await reader.ReadExactly(7)), "through");
  }
  co_await Rounds(3);
  EXPECT_FALSE(IsNonBlocking(fds[0]));
  ::close(fds[0]);
}

WEFT_TEST_F(PipePosixTest, AFileIsReadToItsEnd) {
  const int fd = TemporaryFile();
  const std::string data = Pattern(200'000);
  EXPECT_EQ(::write(fd, data.data(), data.size()), static_cast<ssize_t>(data.size()));
  EXPECT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  StreamReader reader = (co_await ConnectReadPipe(fd)).value();
  WEFT_EXPECT_TRUE(Get(co_await reader.Read()) == data);
  EXPECT_TRUE(reader.AtEof());
}

WEFT_TEST_F(PipePosixTest, AFileIsWrittenFromWhereItStands) {
  const int fd = TemporaryFile();
  EXPECT_EQ(::write(fd, "old", 3), 3);
  StreamWriter writer = (co_await ConnectWritePipe(fd, Borrowed())).value();
  writer.Write("new");
  WEFT_EXPECT_OK(co_await writer.Drain());
  while (writer.GetWriteBufferSize() > 0) co_await Yield();  // A kernel that completes.
  char text[8] = {};
  EXPECT_EQ(::pread(fd, text, sizeof(text), 0), 6);
  EXPECT_STREQ(text, "oldnew");
  EXPECT_EQ(::lseek(fd, 0, SEEK_CUR), 6);  // The position is shared.
  ::close(fd);
}

WEFT_TEST_F(PipePosixTest, DevicesAreReadAndWritten) {
  StreamReader zeros =
      (co_await ConnectReadPipe(::open("/dev/zero", O_RDONLY | O_CLOEXEC))).value();
  WEFT_EXPECT_EQ(Get(co_await zeros.ReadExactly(100)), std::string(100, '\0'));
  StreamReader nothing =
      (co_await ConnectReadPipe(::open("/dev/null", O_RDONLY | O_CLOEXEC))).value();
  WEFT_EXPECT_EQ(Get(co_await nothing.Read()), "");
  StreamWriter full =
      (co_await ConnectWritePipe(::open("/dev/full", O_WRONLY | O_CLOEXEC))).value();
  full.Write("x");
  if (TestPollerCompletes()) {
    WEFT_EXPECT_OK(co_await full.Drain());
    co_await Rounds(3);
  }
  WEFT_EXPECT_EQ(ErrnoOf(co_await full.Drain()), ENOSPC);
}

WEFT_TEST_F(PipePosixTest, ATerminalIsReadLineByLineUntilItsEnd) {
  const int host = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  WEFT_ASSERT_GE(host, 0);
  EXPECT_EQ(::grantpt(host), 0);
  EXPECT_EQ(::unlockpt(host), 0);
  const int terminal = ::open(::ptsname(host), O_RDWR | O_NOCTTY | O_CLOEXEC);
  WEFT_ASSERT_GE(terminal, 0);
  {
    StreamReader reader = (co_await ConnectReadPipe(terminal, Borrowed())).value();
    EXPECT_FALSE(IsNonBlocking(terminal));
    Task<absl::StatusOr<std::string>> line = CreateTask(reader.ReadLine());
    co_await Rounds(3);
    EXPECT_FALSE(line.Done());
    EXPECT_EQ(::write(host, "typed\n", 6), 6);
    WEFT_EXPECT_EQ(Get(co_await std::move(line)), "typed\n");
    const char end_of_file = 4;  // Ctrl-D.
    EXPECT_EQ(::write(host, &end_of_file, 1), 1);
    WEFT_EXPECT_EQ(Get(co_await reader.ReadLine()), "");
  }
  ::close(terminal);
  ::close(host);
}

WEFT_TEST_F(PipePosixTest, ANamedPipesFirstReadWaitsForAWriter) {
  ShortDirectory directory;
  const std::string path = directory.File("fifo");
  WEFT_EXPECT_OK(MakeNamedPipe(path));
  StreamReader reader = (co_await OpenNamedPipeReader(path)).value();
  Task<absl::StatusOr<std::string>> all = CreateTask(reader.Read());
  co_await Rounds(5);
  EXPECT_FALSE(all.Done());

  StreamWriter writer = (co_await OpenNamedPipeWriter(path)).value();
  writer.Write("at last");
  writer.Close();

  WEFT_EXPECT_EQ(Get(co_await std::move(all)), "at last");
  ::unlink(path.c_str());
}

WEFT_TEST_F(PipePosixTest, ANamedPipesWriterWaitsForAReader) {
  ShortDirectory directory;
  const std::string path = directory.File("fifo");
  WEFT_EXPECT_OK(MakeNamedPipe(path));
  Task<absl::StatusOr<StreamWriter>> opening = CreateTask(OpenNamedPipeWriter(path));
  co_await Sleep(absl::Seconds(1));
  EXPECT_FALSE(opening.Done());

  StreamReader reader = (co_await OpenNamedPipeReader(path)).value();
  StreamWriter writer = (co_await std::move(opening)).value();
  writer.Write("through");
  writer.Close();
  WEFT_EXPECT_EQ(Get(co_await reader.Read()), "through");
  ::unlink(path.c_str());
}

WEFT_TEST_F(PipePosixTest, ANamedPipeThatIsKeptOpenHasManyWriters) {
  ShortDirectory directory;
  const std::string path = directory.File("fifo");
  WEFT_EXPECT_OK(MakeNamedPipe(path));
  NamedPipeOptions options;
  options.keep_open = true;
  StreamReader reader = (co_await OpenNamedPipeReader(path, options)).value();
  for (int i = 0; i < 3; ++i) {
    StreamWriter writer = (co_await OpenNamedPipeWriter(path)).value();
    writer.Write("a command\n");
    writer.Close();
    WEFT_EXPECT_EQ(Get(co_await reader.ReadLine()), "a command\n");
  }
  ::unlink(path.c_str());
}

WEFT_TEST_F(PipePosixTest, NamedPipesThatCannotBeOpenedAreErrors) {
  ShortDirectory directory;
  const std::string path = directory.File("fifo");
  WEFT_EXPECT_OK(MakeNamedPipe(path));
  WEFT_EXPECT_EQ(MakeNamedPipe(path).code(), absl::StatusCode::kAlreadyExists);
  NamedPipeOptions at_once;
  at_once.wait_for_reader = false;
  absl::StatusOr<StreamWriter> writer = co_await OpenNamedPipeWriter(path, at_once);
  EXPECT_EQ(ErrnoOf(writer.status()), ENXIO) << writer.status();
  absl::StatusOr<StreamReader> missing = co_await OpenNamedPipeReader("/nowhere/at all");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("/nowhere/at all"));
  absl::StatusOr<StreamReader> other = co_await OpenNamedPipeReader("/dev/null");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  ::unlink(path.c_str());
}

WEFT_TEST_F(PipePosixTest, WhatIsNotOpenOrNotInThatDirectionIsRefused) {
  WEFT_EXPECT_THROW(static_cast<void>(co_await ConnectReadPipe(-1)), ValueError);
  absl::StatusOr<StreamReader> closed = co_await ConnectReadPipe(12345);
  EXPECT_EQ(ErrnoOf(closed.status()), EBADF) << closed.status();
  RawEnds raw;
  absl::StatusOr<StreamReader> wrong = co_await ConnectReadPipe(raw.write_end());
  EXPECT_EQ(ErrnoOf(wrong.status()), EBADF) << wrong.status();
  EXPECT_EQ(::fcntl(raw.write_end(), F_GETFD), FD_CLOEXEC);  // Still the caller's.
  ::close(raw.read_end());
  ::close(raw.write_end());
}

}  // namespace
}  // namespace weft
