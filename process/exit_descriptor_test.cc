// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "gtest/gtest.h"
#include "weft/process/exit_descriptor_posix.h"

namespace weft::internal {
namespace {

// A child that ends with `code` when its input does.
struct WaitingChild {
  explicit WaitingChild(int code) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) {
      ::close(ends[1]);
      char byte;
      ::_exit(::read(ends[0], &byte, 1) == 0 ? code : 100);
    }
    ::close(ends[0]);
    input = ends[1];
  }
  void End() { ::close(input); }
  void EndAndBecomeAZombie() {
    End();
    siginfo_t info;
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  }

  pid_t pid;
  int input;
};

bool IsReadable(int fd, int milliseconds) {
  pollfd entry = {fd, POLLIN, 0};
  return ::poll(&entry, 1, milliseconds) == 1;
}

TEST(ExitDescriptorTest, IsReadableFromTheEndOn) {
  ASSERT_TRUE(ProbeExitDescriptor().ok());
  WaitingChild child(7);
  const int descriptor = OpenExitDescriptor(child.pid);
  ASSERT_GE(descriptor, 0);
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
  EXPECT_FALSE(IsReadable(descriptor, 0));

  child.End();

  EXPECT_TRUE(IsReadable(descriptor, 10'000));
  EXPECT_TRUE(IsReadable(descriptor, 0));
  EXPECT_EQ(ReapChild(descriptor, child.pid), 7);
  EXPECT_EQ(SendToChild(descriptor, child.pid, SIGTERM), -ESRCH);
  ::close(descriptor);
}

TEST(ExitDescriptorTest, OfOneThatHasEndedIsReadableAtOnce) {
  WaitingChild child(3);
  child.EndAndBecomeAZombie();

  const int descriptor = OpenExitDescriptor(child.pid);

  ASSERT_GE(descriptor, 0);
  EXPECT_TRUE(IsReadable(descriptor, 0));
  EXPECT_EQ(ReapChild(descriptor, child.pid), 3);
  ::close(descriptor);
}

TEST(ExitDescriptorTest, ASignalIsNegative) {
  WaitingChild child(0);
  const int descriptor = OpenExitDescriptor(child.pid);

  EXPECT_EQ(SendToChild(descriptor, child.pid, SIGKILL), 0);

  EXPECT_TRUE(IsReadable(descriptor, 10'000));
  EXPECT_EQ(ReapChild(descriptor, child.pid), -SIGKILL);
  ::close(descriptor);
  ::close(child.input);
}

TEST(ExitDescriptorTest, AStatusThatSomebodyElseTookIsNone) {
  WaitingChild child(0);
  const int descriptor = OpenExitDescriptor(child.pid);
  child.End();
  ASSERT_EQ(::waitpid(child.pid, nullptr, 0), child.pid);

  EXPECT_EQ(ReapChild(descriptor, child.pid), std::nullopt);
  ::close(descriptor);
}

}  // namespace
}  // namespace weft::internal
