// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What subprocesses promise, with real ones. The numbers are those of the conformance
// list.

#include "weft/process/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/net/test_net.h"
#include "weft/process/spawner.h"
#include "weft/testing/weft_test.h"

extern char** environ;  // Not in every system's <unistd.h>.

namespace weft {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using MaybeProcess = absl::StatusOr<Process>;

// Whether this process has a child, a zombie or not.
bool HasChild() {
  siginfo_t info = {};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool IsAlive(int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0; }

// A test that fails if it leaks a descriptor, or leaves a process.
class ProcessTest : public NetTest {
 protected:
  ~ProcessTest() override { EXPECT_FALSE(HasChild()) << "a process is left"; }
};

ProcessOptions Piped() {
  ProcessOptions options;
  options.std_in = Stdio::kPipe;
  options.std_out = Stdio::kPipe;
  options.std_err = Stdio::kPipe;
  return options;
}

ProcessOptions OutputPiped() {
  ProcessOptions options;
  options.std_in = Stdio::kDevNull;
  options.std_out = Stdio::kPipe;
  return options;
}

// Starts what has to start.
Coro<Process> Shell(std::string command, ProcessOptions options = Piped()) {
  MaybeProcess process = co_await CreateSubprocessShell(std::move(command), std::move(options));
  EXPECT_TRUE(process.ok()) << process.status();
  co_return *std::move(process);
}

// Runs a command to its end; what it wrote.
Coro<std::string> OutputOf(std::string command, ProcessOptions options = OutputPiped()) {
  Process process = co_await Shell(std::move(command), std::move(options));
  ProcessOutput output = (co_await process.Communicate()).value();
  EXPECT_EQ(output.returncode, 0);
  co_return output.std_out;
}

Coro<std::string> StdOutOf(Process* process) {
  ProcessOutput output = (co_await process->Communicate()).value();
  co_return output.std_out;
}

Coro<> UntilGone(int64_t pid) {
  while (IsAlive(pid)) co_await Sleep(absl::Milliseconds(1));
}

// PROC 280, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, CommunicateYieldsBothOutputsAndTheCode) {
  Process process = co_await Shell("cat; echo err >&2; exit 3");
  EXPECT_GT(process.pid(), 0);
  EXPECT_EQ(process.returncode(), std::nullopt);
  ProcessOutput output = (co_await process.Communicate("in")).value();
  EXPECT_EQ(output.std_out, "in");
  EXPECT_EQ(output.std_err, "err\n");
  EXPECT_EQ(output.returncode, 3);
  EXPECT_EQ(process.returncode(), 3);
}

// PROC 281
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, MuchGoesThroughBothWays) {
  const std::string data = Pattern(4 << 20);
  Process process = (co_await CreateSubprocessExec(Argv("cat"), Piped())).value();
  ProcessOutput output = (co_await process.Communicate(data)).value();
  EXPECT_TRUE(output.std_out == data);
  EXPECT_EQ(output.returncode, 0);
}

// PROC 281
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, MuchOnAllThreeDoesNotDeadlock) {
  const std::string data = Pattern(1 << 20);
  Process process = co_await Shell("tee /dev/stderr");
  ProcessOutput output = (co_await process.Communicate(data)).value();
  EXPECT_TRUE(output.std_out == data);
  EXPECT_TRUE(output.std_err == data);
}

// PROC 282, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ASignalIsANegativeReturnCode) {
  for (const int signal : {SIGKILL, SIGTERM, SIGHUP}) {
    Process process = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
    WEFT_EXPECT_OK(process.SendSignal(signal));
    WEFT_EXPECT_EQ(co_await process.Wait(), -signal);
  }
  Process killed = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
  WEFT_EXPECT_OK(killed.Kill());
  WEFT_EXPECT_EQ(co_await killed.Wait(), -SIGKILL);
  Process terminated = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
  WEFT_EXPECT_OK(terminated.Terminate());
  WEFT_EXPECT_EQ(co_await terminated.Wait(), -SIGTERM);
}

// PROC 283
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, AnEndedProcessCannotBeSignalled) {
  Process process = co_await Shell("exit 7", ProcessOptions());
  WEFT_EXPECT_EQ(co_await process.Wait(), 7);
  for (const absl::Status& status :
       {process.Kill(), process.Terminate(), process.SendSignal(SIGUSR1)}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(ErrnoOf(status), ESRCH) << status;
  }
  WEFT_EXPECT_EQ(co_await process.Wait(), 7);
}

// PROC 284, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, WhatCannotBeStartedSaysWhyAndLeavesNothing) {
  ShortDirectory directory;
  const auto write = [&directory](const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = directory.File(name);
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode);
    EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(fd);
    return path;
  };
  const std::string plain = write("plain", "text", 0600);
  const std::string script = write("script", "#!/no/such/interpreter\n", 0700);
  const std::string garbage = write("garbage", "no program at all", 0700);
  struct Case {
    std::string program;
    int error;
  };
  const std::vector<Case> cases = {{"/no/such/program", ENOENT},
                                   {"no-such-program-in-path", ENOENT},
                                   {"", ENOENT},
                                   {plain, EACCES},
                                   {"/tmp", EACCES},
                                   {script, ENOENT},
                                   {garbage, ENOEXEC},
                                   {plain + "/below", ENOTDIR}};
  const int before = CountDescriptors();
  for (int i = 0; i < 10; ++i) {
    for (const Case& expected : cases) {
      MaybeProcess process = co_await CreateSubprocessExec(Argv(expected.program), Piped());
      EXPECT_EQ(ErrnoOf(process.status()), expected.error) << process.status();
      EXPECT_THAT(process.status().message(),
                  HasSubstr(absl::StrCat("\"", expected.program, "\"")));
      EXPECT_FALSE(HasChild());
    }
  }
  EXPECT_EQ(CountDescriptors(), before);
  MaybeProcess missing = co_await CreateSubprocessExec(Argv("/no/such/program"));
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "start \"/no/such/program\": No such file or directory [ENOENT]");
  MaybeProcess forbidden = co_await CreateSubprocessExec(Argv(plain));
  EXPECT_EQ(forbidden.status().code(), absl::StatusCode::kPermissionDenied);
  MaybeProcess uninterpreted = co_await CreateSubprocessExec(Argv(script));
  EXPECT_THAT(uninterpreted.status().message(), HasSubstr("interpreter"));
  for (const std::string& path : {plain, script, garbage}) ::unlink(path.c_str());
}

// PROC 284
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, AWorkingDirectoryThatIsNoneIsNamed) {
  ProcessOptions options = Piped();
  options.working_directory = "/no/such/directory";
  MaybeProcess missing = co_await CreateSubprocessExec(Argv("true"), options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("\"/no/such/directory\""));
  options.working_directory = "/dev/null";
  MaybeProcess file = co_await CreateSubprocessExec(Argv("true"), options);
  EXPECT_EQ(ErrnoOf(file.status()), ENOTDIR) << file.status();
}

// PROC 285
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, CancellingAWaitLeavesTheProcess) {
  Process process = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
  auto waited = co_await NoThrow(WithTimeout(absl::Milliseconds(10), process.Wait()));
  EXPECT_FALSE(waited.has_value());
  EXPECT_EQ(process.returncode(), std::nullopt);
  EXPECT_TRUE(IsAlive(process.pid()));
  WEFT_EXPECT_OK(process.Kill());
  WEFT_EXPECT_EQ(co_await process.Wait(), -SIGKILL);
}

// PROC 285
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, CancellingCommunicateLeavesWhatHasCome) {
  Process process = co_await Shell("echo early; cat; echo late");
  auto talk = co_await NoThrow(WithTimeout(absl::Milliseconds(50), process.Communicate()));
  // Its input was at its end from the beginning, so it may have been in time.
  if (!talk.has_value()) {
    ProcessOutput output = (co_await process.Communicate()).value();
    EXPECT_EQ(output.std_out, "early\nlate\n");
  }
}

// PROC 286
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, AllWhoWaitGetTheCode) {
  Process process = co_await Shell("read line; exit 5");
  const auto wait = [](Process* waited) -> Coro<int> { co_return co_await waited->Wait(); };
  std::vector<Task<int>> waiters;
  for (int i = 0; i < 3; ++i) waiters.push_back(CreateTask(wait(&process)));
  co_await Rounds(3);
  process.std_in().Close();
  for (Task<int>& waiter : waiters) WEFT_EXPECT_EQ(co_await waiter, 5);
}

// PROC 287
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, OutputIsThereAfterTheEnd) {
  Process process = co_await Shell("echo tail");
  WEFT_EXPECT_EQ(co_await process.Wait(), 0);
  WEFT_EXPECT_EQ(Get(co_await process.std_out().Read()), "tail\n");
  WEFT_EXPECT_EQ(Get(co_await process.std_err().Read()), "");
}

// PROC 288
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, TheErrorsCanGoWithTheOutput) {
  ProcessOptions options = OutputPiped();
  options.std_err = Stdio::kToStdout;
  Process process = co_await Shell("printf out; printf err >&2; printf out", options);
  EXPECT_FALSE(process.std_err());
  EXPECT_FALSE(process.std_in());
  ProcessOutput output = (co_await process.Communicate()).value();
  EXPECT_EQ(output.std_out, "outerrout");
  EXPECT_EQ(output.std_err, "");
}

// PROC 289
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, TheNullDeviceIsAnEndAndOblivion) {
  ProcessOptions options = OutputPiped();
  options.std_in = Stdio::kDevNull;
  WEFT_EXPECT_EQ(co_await OutputOf("cat", options), "");
  options.std_out = Stdio::kDevNull;
  options.std_err = Stdio::kToStdout;
  WEFT_EXPECT_EQ(co_await OutputOf("echo lost; echo too >&2", options), "");
}

// PROC 290
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, CommunicatingNothingEndsTheInput) {
  Process process = (co_await CreateSubprocessExec(Argv("cat"), Piped())).value();
  ProcessOutput output = (co_await process.Communicate()).value();
  EXPECT_EQ(output.std_out, "");
  EXPECT_EQ(output.returncode, 0);
}

// PROC 291
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, TheEnvironmentAndTheDirectoryAreWhatWasAskedFor) {
  ProcessOptions options = OutputPiped();
  options.environment = EnvironmentVariables();
  (*options.environment)["KEY"] = "val";
  (*options.environment)["OTHER"] = "a=b c";
  options.working_directory = "/";
  Process env = (co_await CreateSubprocessExec(Argv("/usr/bin/env"), options)).value();
  ProcessOutput output = (co_await env.Communicate()).value();
  EXPECT_EQ(output.std_out, "KEY=val\nOTHER=a=b c\n");
  WEFT_EXPECT_EQ(co_await OutputOf("pwd -P", options), "/\n");

  options.environment = CurrentEnvironment();
  (*options.environment)["KEY"] = "more";
  WEFT_EXPECT_EQ(co_await OutputOf("echo $KEY ${PATH:+has a path}", options), "more has a path\n");
}

// A relative path is one from there, and PATH is the child's.
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, TheProgramIsLookedUpAsTheChildSeesIt) {
  ShortDirectory directory;
  const std::string tool = directory.File("a-tool-of-this-test");
  EXPECT_EQ(::symlink("/bin/echo", tool.c_str()), 0);
  ProcessOptions options = OutputPiped();
  options.working_directory = tool.substr(0, tool.rfind('/'));
  const Argv relative("./a-tool-of-this-test", "relative");
  Process here = (co_await CreateSubprocessExec(relative, options)).value();
  WEFT_EXPECT_EQ(co_await StdOutOf(&here), "relative\n");

  options.environment = EnvironmentVariables();
  (*options.environment)["PATH"] = absl::StrCat("/nowhere:", options.working_directory);
  options.working_directory.clear();
  const Argv by_path("a-tool-of-this-test", "by path");
  Process found = (co_await CreateSubprocessExec(by_path, options)).value();
  WEFT_EXPECT_EQ(co_await StdOutOf(&found), "by path\n");
  MaybeProcess not_there = co_await CreateSubprocessExec(Argv("true"), options);
  EXPECT_EQ(ErrnoOf(not_there.status()), ENOENT) << not_there.status();
  options.environment->clear();
  Process by_default = (co_await CreateSubprocessExec(Argv("true"), options)).value();
  WEFT_EXPECT_EQ(co_await by_default.Wait(), 0);

  ProcessOptions other_name = OutputPiped();
  other_name.executable = "/bin/sh";
  const Argv named("another-name", "-c", "echo $0");
  Process renamed = (co_await CreateSubprocessExec(named, other_name)).value();
  WEFT_EXPECT_EQ(co_await StdOutOf(&renamed), "another-name\n");
  ::unlink(tool.c_str());
}

// Which of the first hundred descriptors a child has.
constexpr const char* kListDescriptors =
    "i=0; while [ $i -lt 100 ]; do [ -e /proc/self/fd/$i ] && printf '%d ' $i; i=$((i+1)); done";

// PROC 292
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, NoOtherDescriptorIsInherited) {
  std::vector<int> foreign;  // Which do not close themselves.
  for (int i = 0; i < 5; ++i) foreign.push_back(::open("/dev/null", O_RDONLY));
  foreign.push_back(::fcntl(foreign[0], F_DUPFD, 90));
  WEFT_EXPECT_EQ(co_await OutputOf(kListDescriptors, Piped()), "0 1 2 ");

  const int passed = ::fcntl(foreign[0], F_DUPFD_CLOEXEC, 40);
  const int also_passed = ::fcntl(foreign[0], F_DUPFD_CLOEXEC, 50);
  ProcessOptions options = Piped();
  options.pass_descriptors = {also_passed, passed};
  WEFT_EXPECT_EQ(co_await OutputOf(kListDescriptors, options),
                 absl::StrCat("0 1 2 ", passed, " ", also_passed, " "));
  EXPECT_EQ(::fcntl(passed, F_GETFD), FD_CLOEXEC);  // Here it is as it was.

  options.pass_descriptors = {95};
  MaybeProcess not_open = co_await CreateSubprocessExec(Argv("true"), options);
  EXPECT_EQ(ErrnoOf(not_open.status()), EBADF) << not_open.status();
  foreign.push_back(passed);
  foreign.push_back(also_passed);
  for (int fd : foreign) ::close(fd);
}

// Fields 5 and 6 of /proc/PID/stat: its group and its session.
constexpr const char* kGroupAndSession = "cut -d' ' -f5-6 /proc/$$/stat; echo $$";

// PROC 293
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ANewSessionAndAGroupAreItsOwn) {
  ProcessOptions options = OutputPiped();
  const std::string ours = absl::StrCat(::getpgrp(), " ", ::getsid(0));
  WEFT_EXPECT_THAT(co_await OutputOf(kGroupAndSession, options), HasSubstr(ours));
  options.start_new_session = true;
  std::string output = co_await OutputOf(kGroupAndSession, options);
  std::vector<std::string> lines = absl::StrSplit(output, '\n');
  EXPECT_EQ(lines[0], absl::StrCat(lines[1], " ", lines[1]));

  options.start_new_session = false;
  options.process_group = 0;
  output = co_await OutputOf(kGroupAndSession, options);
  lines = absl::StrSplit(output, '\n');
  EXPECT_EQ(lines[0], absl::StrCat(lines[1], " ", ::getsid(0)));
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ASignalToTheGroupReachesItsChildren) {
  ProcessOptions options = OutputPiped();
  options.process_group = 0;
  Process process = co_await Shell("sleep 1000 & echo ready; wait", options);
  WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "ready\n");
  WEFT_EXPECT_OK(process.SendSignalToGroup(SIGKILL));
  WEFT_EXPECT_EQ(Get(co_await process.std_out().Read()), "");  // Nobody has it any more.
  WEFT_EXPECT_EQ(co_await process.Wait(), -SIGKILL);
  EXPECT_EQ(ErrnoOf(process.SendSignalToGroup(SIGKILL)), ESRCH);

  Process in_ours = co_await Shell("exit 0");
  EXPECT_THROW(static_cast<void>(in_ours.SendSignalToGroup(SIGKILL)), RuntimeError);
  co_await in_ours.Wait();
}

// PROC 294
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ADroppedProcessIsKilledAndReaped) {
  int64_t pid = 0;
  {
    Process process = (co_await CreateSubprocessExec(Argv("sleep", "1000"), Piped())).value();
    pid = process.pid();
  }
  co_await UntilGone(pid);
  EXPECT_FALSE(HasChild());
}

// PROC 294
TEST_F(ProcessTest, AProcessIsKilledAndReapedWithItsLoop) {
  std::vector<Process> left;
  std::vector<int64_t> pids;
  const auto leave = [&]() -> Coro<> {
    for (int i = 0; i < 3; ++i) {
      left.push_back((co_await CreateSubprocessExec(Argv("sleep", "1000"), Piped())).value());
      pids.push_back(left.back().pid());
    }
  };
  weft::Run(leave());
  for (int64_t pid : pids) EXPECT_FALSE(IsAlive(pid));
  EXPECT_EQ(ErrnoOf(left[0].Kill()), ESRCH);
}

// PROC 294
TEST_F(ProcessTest, ACancelledTasksProcessGoesWithIt) {
  int64_t pid = 0;
  const auto work = [&pid]() -> Coro<> {
    Process process = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
    pid = process.pid();
    co_await process.Wait();
  };
  const auto leave = [&work]() -> Coro<> {
    CreateTask(work());
    co_await Rounds(3);
  };
  weft::Run(leave());
  EXPECT_GT(pid, 0);
  EXPECT_FALSE(IsAlive(pid));
}

TEST_F(ProcessTest, ADetachedProcessOutlivesItsObjectAndItsLoop) {
  int64_t pid = 0;
  const auto leave = [&pid]() -> Coro<> {
    Process process = (co_await CreateSubprocessExec(Argv("sleep", "1000"))).value();
    pid = process.pid();
    process.Detach();
  };
  weft::Run(leave());
  EXPECT_TRUE(IsAlive(pid));
  ::kill(static_cast<pid_t>(pid), SIGKILL);
  EXPECT_EQ(::waitpid(static_cast<pid_t>(pid), nullptr, 0), pid);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ADetachedProcessThatEndsFirstIsReaped) {
  int64_t pid = 0;
  {
    Process process = co_await Shell("exit 0", ProcessOptions());
    pid = process.pid();
    process.Detach();
  }
  co_await UntilGone(pid);
}

// PROC 295
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, SignalsAreInTheirDefaultState) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  std::vector<std::pair<int, void (*)(int)>> handlers;
  for (const int signal : {SIGPIPE, SIGUSR2, SIGXFSZ}) {
    handlers.emplace_back(signal, ::signal(signal, SIG_IGN));
  }
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) {
    handlers.emplace_back(signal, ::signal(signal, SIG_DFL));
  }
  const auto is_zero =
      AllOf(HasSubstr("SigBlk:\t0000000000000000\n"), HasSubstr("SigIgn:\t0000000000000000\n"));
  const std::string show = "exec grep Sig /proc/self/status";
  WEFT_EXPECT_THAT(co_await OutputOf(show), is_zero);

  // nohup(1) goes on to hold.
  ::signal(SIGHUP, SIG_IGN);
  WEFT_EXPECT_THAT(co_await OutputOf(show), HasSubstr("SigIgn:\t0000000000000001\n"));
  ::signal(SIGHUP, SIG_DFL);

  ProcessOptions keep = OutputPiped();
  keep.restore_signals = false;
  std::string kept = co_await OutputOf(show, keep);
  EXPECT_THAT(kept, HasSubstr("SigBlk:\t0000000000000000\n"));
  EXPECT_THAT(kept, HasSubstr("SigIgn:\t0000000001001800\n"));
  for (const auto& [signal, handler] : handlers) ::signal(signal, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// PROC 296
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ChildrenOfOthersAreTheirs) {
  pid_t others = 0;
  char name[] = "true";
  char* const argv[] = {name, nullptr};
  EXPECT_EQ(::posix_spawnp(&others, "true", nullptr, nullptr, argv, environ), 0);
  Process ours = co_await Shell("exit 4");
  WEFT_EXPECT_EQ(co_await ours.Wait(), 4);
  co_await Sleep(absl::Milliseconds(20));
  int status = -1;
  EXPECT_EQ(::waitpid(others, &status, 0), others);
  EXPECT_EQ(status, 0);
}

// As asyncio: what nobody can know is 255.
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, WithoutAStatusTheCodeIsUnknown) {
  ::signal(SIGCHLD, SIG_IGN);  // Now children are reaped by nobody.
  Process process = co_await Shell("read line; exit 4");
  process.std_in().Close();
  WEFT_EXPECT_EQ(co_await process.Wait(), 255);
  ::signal(SIGCHLD, SIG_DFL);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, AStoppedProcessHasNotEnded) {
  Process process = co_await Shell("kill -STOP $$; exit 6", ProcessOptions());
  const std::string status = absl::StrCat("/proc/", process.pid(), "/stat");
  while (true) {
    std::string stat = co_await OutputOf("cat " + status);
    if (stat.find(") T ") != std::string::npos) break;
    co_await Sleep(absl::Milliseconds(1));
  }
  EXPECT_EQ(process.returncode(), std::nullopt);
  WEFT_EXPECT_OK(process.SendSignal(SIGCONT));
  WEFT_EXPECT_EQ(co_await process.Wait(), 6);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ADialogueLineByLine) {
  Process process = co_await Shell("while read line; do echo \"got $line\"; done; exit 2");
  for (const std::string word : {"one", "two", "three"}) {
    process.std_in().Write(word + "\n");
    WEFT_EXPECT_OK(co_await process.std_in().Drain());
    WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "got " + word + "\n");
  }
  process.std_in().Close();
  WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "");
  WEFT_EXPECT_EQ(co_await process.Wait(), 2);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, InputThatIsNotReadIsNoError) {
  Process process = co_await Shell("exec 0<&-; echo done");
  ProcessOutput output = (co_await process.Communicate(Pattern(1 << 20))).value();
  EXPECT_EQ(output.std_out, "done\n");
  EXPECT_EQ(output.returncode, 0);
}

// `producer | consumer`, without a byte passing through this process.
WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ADescriptorConnectsTwoProcesses) {
  const internal::RawPipe ends = internal::OpenRawPipe().value();
  ProcessOptions produce;
  produce.std_out = Stdio::Descriptor(ends.write_end);
  ProcessOptions consume = OutputPiped();
  consume.std_in = Stdio::Descriptor(ends.read_end);
  Process producer = co_await Shell("echo through", produce);
  Process consumer = (co_await CreateSubprocessExec(Argv("cat"), consume)).value();
  internal::CloseRaw(ends.read_end);
  internal::CloseRaw(ends.write_end);
  WEFT_EXPECT_EQ(co_await StdOutOf(&consumer), "through\n");
  WEFT_EXPECT_EQ(co_await producer.Wait(), 0);

  ProcessOptions closed;
  closed.std_out = Stdio::Descriptor(ends.write_end + 1000);
  MaybeProcess refused = co_await CreateSubprocessExec(Argv("true"), closed);
  EXPECT_EQ(ErrnoOf(refused.status()), EBADF) << refused.status();
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ManyAtOnce) {
  constexpr int kMany = 50;
  std::vector<Task<std::string>> tasks;
  for (int i = 0; i < kMany; ++i) {
    tasks.push_back(CreateTask(OutputOf(absl::StrCat("echo ", i), Piped())));
  }
  for (int i = 0; i < kMany; ++i) {
    WEFT_EXPECT_EQ(co_await tasks[static_cast<size_t>(i)], absl::StrCat(i, "\n"));
  }
}

WEFT_TEST_F_IN_REAL_TIME(ProcessTest, ShellWordsAreQuoted) {
  const std::string nasty = "it's; $HOME `x` \"y\" \\ *\n";
  WEFT_EXPECT_EQ(co_await OutputOf("printf %s " + ShellQuote(nasty)), nasty);
  EXPECT_EQ(ShellQuote("plain-word_1.txt"), "plain-word_1.txt");
  EXPECT_EQ(ShellQuote(""), "''");
}

WEFT_TEST_F(ProcessTest, WhatMakesNoSenseIsRefused) {
  WEFT_EXPECT_THROW(static_cast<void>(co_await CreateSubprocessExec(Argv())), ValueError);
  WEFT_EXPECT_THROW(static_cast<void>(co_await CreateSubprocessExec(Argv(std::string("a\0b", 3)))),
                    ValueError);
  const auto refused = [](ProcessOptions options) -> Coro<bool> {
    auto outcome = co_await NoThrow(CreateSubprocessExec(Argv("true"), options));
    co_return !outcome.has_value();
  };
  ProcessOptions options;
  options.std_out = Stdio::kToStdout;
  WEFT_EXPECT_TRUE(co_await refused(options));
  options = ProcessOptions();
  options.environment = EnvironmentVariables();
  (*options.environment)["A=B"] = "c";
  WEFT_EXPECT_TRUE(co_await refused(options));
  options = ProcessOptions();
  options.start_new_session = true;
  options.process_group = 0;
  WEFT_EXPECT_TRUE(co_await refused(options));
  options = ProcessOptions();
  options.pass_descriptors = {1};
  WEFT_EXPECT_TRUE(co_await refused(options));
  options = ProcessOptions();
  options.std_in = Stdio::Descriptor(-1);
  WEFT_EXPECT_TRUE(co_await refused(options));

  Process process = (co_await CreateSubprocessExec(Argv("true"))).value();
  WEFT_EXPECT_THROW(static_cast<void>(co_await process.Communicate("for whom?")), ValueError);
  EXPECT_THROW(static_cast<void>(process.SendSignal(-1)), ValueError);
  EXPECT_THROW(static_cast<void>(process.SendSignal(65)), ValueError);
  co_await process.Wait();
}

// Design, Time: with a child outstanding a virtual clock stands still.
WEFT_TEST_F(ProcessTest, VirtualTimeStandsStillMeanwhile) {
  const TimePoint start = GetRunningLoop().Time();
  Process process = (co_await CreateSubprocessExec(Argv("sleep", "0.05"))).value();
  int code = co_await WithTimeout(absl::Milliseconds(1), process.Wait());
  EXPECT_EQ(code, 0);
  EXPECT_EQ(GetRunningLoop().Time(), start);
}

TEST_F(ProcessTest, AnyThreadsLoopHasProcesses) {
  int code = 0;
  const auto run = []() -> Coro<int> {
    Process process = co_await Shell("exit 9");
    co_return co_await process.Wait();
  };
  std::thread other([&] { code = weft::Run(run()); });
  other.join();
  EXPECT_EQ(code, 9);
}

// Somebody who plays processes.
class FakeSpawner final : public Spawner {
 public:
  class FakeChild final : public Child {
   public:
    explicit FakeChild(FakeSpawner* spawner) : spawner_(spawner) {}
    ~FakeChild() override { spawner_->log.push_back("gone"); }
    int64_t pid() const override { return 42; }
    absl::Status SendSignal(int signal, bool) override {
      spawner_->log.push_back(absl::StrCat("signal ", signal));
      return absl::OkStatus();
    }
    void Detach() override {}

   private:
    FakeSpawner* const spawner_;
  };

  absl::StatusOr<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnRequest& request,
                                               ExitCallback on_exit) override {
    log.push_back(request.argv.front());
    loop.CallLater(absl::Hours(3), [on_exit = std::move(on_exit)]() mutable { on_exit(11); });
    return std::make_unique<FakeChild>(this);
  }

  std::vector<std::string> log;
};

TEST_F(ProcessTest, TheEnvironmentMayReplaceTheSpawner) {
  FakeSpawner spawner;
  VirtualClock clock;
  RunOptions options;
  options.environment.clock = &clock;
  options.environment.spawner = &spawner;
  const auto run = []() -> Coro<int> {
    const TimePoint start = GetRunningLoop().Time();
    Process process = (co_await CreateSubprocessExec(Argv("anything"))).value();
    EXPECT_EQ(process.pid(), 42);
    EXPECT_TRUE(process.Terminate().ok());
    int code = co_await process.Wait();
    EXPECT_EQ(GetRunningLoop().Time() - start, absl::Hours(3));
    co_return code;
  };
  EXPECT_EQ(weft::Run(run(), options), 11);
  EXPECT_THAT(spawner.log, ElementsAre("anything", "signal 15", "gone"));
}

// A daemon may have closed its standard streams; then pipes get those numbers.
Coro<int> TalksWithoutStandardStreams() {
  for (int fd = 0; fd < 3; ++fd) ::close(fd);
  Process process = (co_await CreateSubprocessExec(Argv("cat"), Piped())).value();
  absl::StatusOr<ProcessOutput> output = co_await process.Communicate("in");
  if (!output.ok() || output->std_out != "in") co_return 1;
  // What we have in their place is not the child's business.
  ProcessOptions options;
  options.std_in = Stdio::kPipe;
  options.std_err = Stdio::kPipe;
  Process list = co_await Shell("exec 3>&1; readlink /proc/self/fd/3 >&2", options);
  output = co_await list.Communicate();
  co_return output.ok() && output->std_err == "/dev/null\n" ? 17 : 2;
}

TEST_F(ProcessTest, WorksWithoutStandardStreams) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(weft::Run(TalksWithoutStandardStreams()));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

}  // namespace
}  // namespace weft
