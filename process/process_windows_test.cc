// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// What subprocesses promise on Windows, with real ones. The program that is started is this
// one, which then does what its first argument says.

#include <fcntl.h>
#include <io.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/headers_windows.h"
#include "weft/net/pipe.h"
#include "weft/net/test_net.h"
#include "weft/net/utf16_windows.h"
#include "weft/process/process.h"
#include "weft/process/spawner.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

using MaybeProcess = absl::StatusOr<Process>;

// -- The program that is started.

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int Copy(FILE* also) {
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof(buffer), stdin)) {
    std::fwrite(buffer, 1, size, stdout);
    if (also != nullptr) std::fwrite(buffer, 1, size, also);
  }
  return 0;
}

// Those of main() are in the code page of the machine.
std::vector<std::string> Arguments() {
  int count = 0;
  wchar_t** const wide = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) words.push_back(internal::FromUtf16(wide[i]));
  ::LocalFree(wide);
  return words;
}

int RunAsChild(const std::vector<std::string>& words) {
  for (FILE* stream : {stdin, stdout, stderr}) ::_setmode(::_fileno(stream), _O_BINARY);
  const std::string& what = words[2];
  const std::string& argument = words.back();
  if (what == "copy") return Copy(nullptr);
  if (what == "tee") return Copy(stderr);
  if (what == "exit") return std::atoi(argument.c_str());
  if (what == "sleep") {
    ::Sleep(static_cast<DWORD>(std::atoi(argument.c_str())));
    return 0;
  }
  if (what == "crash") {
    ::RaiseException(0xC0000005, 0, 0, nullptr);
    return 0;
  }
  if (what == "words") {
    Print(absl::StrJoin(words.begin() + 3, words.end(), "\n"));
    return 0;
  }
  if (what == "directory") {
    wchar_t path[MAX_PATH];
    Print(internal::FromUtf16(std::wstring_view(path, ::GetCurrentDirectoryW(MAX_PATH, path))));
    return 0;
  }
  if (what == "variable") {
    const EnvironmentVariables variables = CurrentEnvironment();
    const auto found = variables.find(argument);
    Print(found == variables.end() ? "(none)" : found->second);
    return 0;
  }
  if (what == "handle") {
    int64_t handle = 0;
    DWORD flags;
    const bool is_open = absl::SimpleAtoi(argument, &handle) &&
                         ::GetHandleInformation(reinterpret_cast<HANDLE>(handle), &flags);
    Print(is_open ? "open" : "closed");
    return 0;
  }
  return 99;
}

// -- The tests.

std::string Self() {
  wchar_t path[MAX_PATH];
  return internal::FromUtf16(
      std::wstring_view(path, ::GetModuleFileNameW(nullptr, path, MAX_PATH)));
}

Argv Child(std::vector<std::string> words) {
  words.insert(words.begin(), {Self(), "--child"});
  return Argv(std::move(words));
}

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
Coro<Process> Start(std::vector<std::string> words, ProcessOptions options = Piped()) {
  MaybeProcess process = co_await CreateSubprocessExec(Child(std::move(words)), options);
  EXPECT_TRUE(process.ok()) << process.status();
  co_return *std::move(process);
}

// Runs it to its end; what it wrote.
Coro<std::string> OutputOf(std::vector<std::string> words, ProcessOptions options = OutputPiped()) {
  Process process = co_await Start(std::move(words), std::move(options));
  ProcessOutput output = Get(co_await process.Communicate());
  EXPECT_EQ(output.returncode, 0);
  co_return output.std_out;
}

class ProcessWindowsTest : public NetTest {};

// PROC 280, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, CommunicateYieldsBothOutputsAndTheCode) {
  std::vector<std::string> words = {"tee"};
  Process process = co_await Start(words);
  EXPECT_GT(process.pid(), 0);
  EXPECT_EQ(process.returncode(), std::nullopt);
  ProcessOutput output = Get(co_await process.Communicate("in"));
  EXPECT_EQ(output.std_out, "in");
  EXPECT_EQ(output.std_err, "in");
  EXPECT_EQ(output.returncode, 0);
  EXPECT_EQ(process.returncode(), 0);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheReturnCodeIsThatOfTheProgram) {
  std::vector<std::string> words = {"exit", "3"};
  Process process = co_await Start(words);
  WEFT_EXPECT_EQ(co_await process.Wait(), 3);
  words = {"crash"};
  Process crash = co_await Start(words);
  WEFT_EXPECT_EQ(co_await crash.Wait(), static_cast<int>(0xC0000005));
}

// PROC 281
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, MuchOnAllThreeDoesNotDeadlock) {
  const std::string data = Pattern(1 << 20);
  std::vector<std::string> words = {"tee"};
  Process process = co_await Start(words);
  ProcessOutput output = Get(co_await process.Communicate(data));
  EXPECT_TRUE(output.std_out == data);
  EXPECT_TRUE(output.std_err == data);
}

// PROC 282, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, ItIsEndedAndNothingElse) {
  std::vector<std::string> words = {"sleep", "100000"};
  Process terminated = co_await Start(words);
  WEFT_EXPECT_OK(terminated.SendSignal(0));
  EXPECT_EQ(terminated.SendSignal(SIGINT).code(), absl::StatusCode::kUnimplemented);
  WEFT_EXPECT_OK(terminated.Terminate());
  WEFT_EXPECT_EQ(co_await terminated.Wait(), -SIGTERM);
  EXPECT_EQ(ErrnoOf(terminated.Terminate()), ESRCH);

  Process killed = co_await Start(words);
  WEFT_EXPECT_OK(killed.Kill());
  WEFT_EXPECT_EQ(co_await killed.Wait(), -kKillSignal);

  // What the program returns is no signal's.
  words = {"exit", "137"};
  Process other = co_await Start(words);
  WEFT_EXPECT_EQ(co_await other.Wait(), 137);
}

// PROC 284, A-96
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, WhatCannotBeStartedSaysWhyAndLeavesNothing) {
  ShortDirectory directory;
  const std::string batch = directory.File("a.bat");
  const std::string text = directory.File("text");
  for (const std::string& path : {batch, text}) std::fclose(std::fopen(path.c_str(), "w"));
  struct Case {
    std::string program;
    absl::StatusCode code;
  };
  const std::vector<Case> cases = {
      {"C:\\no\\such\\program.exe", absl::StatusCode::kNotFound},
      {"no-such-program-in-path", absl::StatusCode::kNotFound},
      {"", absl::StatusCode::kNotFound},
      {"C:\\windows", absl::StatusCode::kPermissionDenied},
      {batch, absl::StatusCode::kUnimplemented},
  };
  const int before = CountDescriptors();
  for (const Case& expected : cases) {
    MaybeProcess process = co_await CreateSubprocessExec(Argv(expected.program), Piped());
    EXPECT_EQ(process.status().code(), expected.code) << process.status();
    EXPECT_THAT(process.status().message(), HasSubstr(absl::StrCat("\"", expected.program, "\"")));
  }
  MaybeProcess garbage = co_await CreateSubprocessExec(Argv(text), Piped());
  EXPECT_FALSE(garbage.ok());
  EXPECT_EQ(CountDescriptors(), before);
  for (const std::string& path : {batch, text}) std::remove(path.c_str());

  ProcessOptions options;
  options.working_directory = "C:\\no\\such\\directory";
  MaybeProcess missing = co_await CreateSubprocessExec(Argv(Self()), options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("no\\such\\directory"));
  options.working_directory = Self();
  MaybeProcess file = co_await CreateSubprocessExec(Argv(Self()), options);
  EXPECT_EQ(ErrnoOf(file.status()), ENOTDIR) << file.status();
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, ArgumentsArriveAsTheyAre) {
  const std::vector<std::string> words = {"words",  "",       "two words",
                                          "\"",     "back\\", "a\\\" b\\",
                                          "%PATH%", "^&|<>",  "gr\xc3\xbc\xc3\x9f"};
  std::string expected = absl::StrJoin(words.begin() + 1, words.end(), "\n");
  WEFT_EXPECT_EQ(co_await OutputOf(words), expected);
}

// PROC 285
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, CancellingAWaitLeavesTheProcess) {
  std::vector<std::string> words = {"sleep", "100000"};
  Process process = co_await Start(words);
  auto waited = co_await NoThrow(WithTimeout(absl::Milliseconds(5), process.Wait()));
  EXPECT_TRUE(waited.has_exception());
  EXPECT_EQ(process.returncode(), std::nullopt);
  WEFT_EXPECT_OK(process.Kill());
  WEFT_EXPECT_EQ(co_await process.Wait(), -kKillSignal);
}

// PROC 286
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheErrorsCanGoWithTheOutput) {
  ProcessOptions options = Piped();
  options.std_err = Stdio::kToStdout;
  std::vector<std::string> words = {"tee"};
  Process process = co_await Start(words, options);
  ProcessOutput output = Get(co_await process.Communicate("x"));
  EXPECT_EQ(output.std_out, "xx");
  EXPECT_EQ(output.std_err, "");
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheNullDeviceIsAnEndAndOblivion) {
  ProcessOptions options;
  options.std_in = Stdio::kDevNull;
  options.std_out = Stdio::kDevNull;
  std::vector<std::string> words = {"copy"};
  Process process = co_await Start(words, options);
  WEFT_EXPECT_EQ(co_await process.Wait(), 0);
}

// PROC 290
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheEnvironmentAndTheDirectoryAreWhatWasAskedFor) {
  ProcessOptions options = OutputPiped();
  options.environment = CurrentEnvironment();
  (*options.environment)["WEFT_TEST_B"] = "gr\xc3\xbc\xc3\x9f";
  (*options.environment)["WEFT_TEST_A"] = "a=b";
  std::vector<std::string> words = {"variable", "WEFT_TEST_B"};
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "gr\xc3\xbc\xc3\x9f");
  words = {"variable", "WEFT_TEST_A"};
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "a=b");
  words = {"variable", "WEFT_TEST_C"};
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "(none)");

  options = OutputPiped();
  options.working_directory = "C:\\windows";
  words = {"directory"};
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "C:\\windows");
}

// PROC 291
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheProgramIsLookedUpInThePathThatItGets) {
  const std::string self = Self();
  const size_t slash = self.rfind('\\');
  const std::string name = self.substr(slash + 1, self.size() - slash - 1 - 4);  // Not ".exe".
  ProcessOptions options = OutputPiped();
  options.environment = CurrentEnvironment();
  std::erase_if(*options.environment, [](const auto& variable) {
    return ::_stricmp(variable.first.c_str(), "PATH") == 0;
  });
  Argv argv(name, "--child", "words", "found");
  MaybeProcess missing = co_await CreateSubprocessExec(argv, options);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  (*options.environment)["PATH"] = absl::StrCat("C:\\nowhere;", self.substr(0, slash));
  MaybeProcess found = co_await CreateSubprocessExec(argv, options);
  WEFT_ASSERT_OK(found.status());
  ProcessOutput output = Get(co_await found->Communicate());
  EXPECT_EQ(output.std_out, "found");
}

// PROC 292: also what others have made inheritable.
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, NoOtherHandleIsInherited) {
  SECURITY_ATTRIBUTES inherits = {sizeof(inherits), nullptr, TRUE};
  const HANDLE event = ::CreateEventA(&inherits, TRUE, FALSE, nullptr);
  // Numbers are reused: one that is open there by chance is unlikely to be as large.
  std::vector<HANDLE> more;
  HANDLE large = event;
  while (reinterpret_cast<intptr_t>(large) < 4000) {
    const HANDLE self = ::GetCurrentProcess();
    ::DuplicateHandle(self, event, self, &large, 0, TRUE, DUPLICATE_SAME_ACCESS);
    more.push_back(large);
  }
  const auto number = reinterpret_cast<NativeHandle>(large);
  std::vector<std::string> words = {"handle", absl::StrCat(number)};
  WEFT_EXPECT_EQ(co_await OutputOf(words), "closed");
  ProcessOptions options = OutputPiped();
  options.pass_descriptors = {number};
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "open");
  // It need not be inheritable, and is no more so afterwards.
  ::SetHandleInformation(large, HANDLE_FLAG_INHERIT, 0);
  WEFT_EXPECT_EQ(co_await OutputOf(words, options), "open");
  EXPECT_FALSE(IsInherited(number));
  for (const HANDLE handle : more) ::CloseHandle(handle);
  ::CloseHandle(event);
}

// PROC 293
WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, AGroupIsEndedWithAllThatItHasStarted) {
  ProcessOptions options = OutputPiped();
  options.process_group = 0;
  std::vector<std::string> words = {"sleep", "100000"};
  Process process = co_await Start(words, options);
  WEFT_EXPECT_OK(process.SendSignalToGroup(kKillSignal));
  WEFT_EXPECT_EQ(co_await process.Wait(), -kKillSignal);
  options.process_group = 5;
  MaybeProcess joined = co_await CreateSubprocessExec(Child(words), options);
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kUnimplemented);
}

// PROC 294
TEST_F(ProcessWindowsTest, AProcessIsKilledWithItsLoop) {
  HANDLE process = nullptr;
  const auto run = [&process]() -> Coro<> {
    std::vector<std::string> words = {"sleep", "100000"};
    Process started = co_await Start(words);
    process = ::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(started.pid()));
  };
  weft::Run(run());
  EXPECT_EQ(::WaitForSingleObject(process, 5000), WAIT_OBJECT_0);
  ::CloseHandle(process);
}

TEST_F(ProcessWindowsTest, ADetachedProcessOutlivesItsLoop) {
  HANDLE process = nullptr;
  const auto run = [&process]() -> Coro<> {
    std::vector<std::string> words = {"sleep", "100000"};
    ProcessOptions options;
    options.std_in = Stdio::kDevNull;
    options.std_out = Stdio::kDevNull;
    options.std_err = Stdio::kDevNull;
    Process started = co_await Start(words, options);
    process =
        ::OpenProcess(SYNCHRONIZE | PROCESS_TERMINATE, FALSE, static_cast<DWORD>(started.pid()));
    started.Detach();
  };
  weft::Run(run());
  EXPECT_EQ(::WaitForSingleObject(process, 20), static_cast<DWORD>(WAIT_TIMEOUT));
  ::TerminateProcess(process, 1);
  ::WaitForSingleObject(process, 5000);
  ::CloseHandle(process);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, ADialogueLineByLine) {
  // (A program's own buffer would hold the answers back; so the end comes first.)
  std::vector<std::string> words = {"copy"};
  Process process = co_await Start(words);
  process.std_in().Write("one\n");
  process.std_in().Write("two\n");
  process.std_in().Close();
  WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "one\n");
  WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "two\n");
  WEFT_EXPECT_EQ(Get(co_await process.std_out().ReadLine()), "");
  WEFT_EXPECT_EQ(co_await process.Wait(), 0);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, InputThatIsNotReadIsNoError) {
  std::vector<std::string> words = {"exit", "4"};
  Process process = co_await Start(words);
  ProcessOutput output = Get(co_await process.Communicate(std::string(1 << 20, 'x')));
  EXPECT_EQ(output.returncode, 4);
}

WEFT_TEST_F_IN_REAL_TIME(ProcessWindowsTest, TheShellRunsACommand) {
  MaybeProcess process = co_await CreateSubprocessShell("echo \"a b\"& exit 7", OutputPiped());
  WEFT_ASSERT_OK(process.status());
  ProcessOutput output = Get(co_await process->Communicate());
  EXPECT_EQ(output.std_out, "\"a b\"\r\n");
  EXPECT_EQ(output.returncode, 7);
}

TEST_F(ProcessWindowsTest, ShellWordsAreQuotedTwice) {
  EXPECT_EQ(ShellQuote("plain-word_1.txt"), "plain-word_1.txt");
  EXPECT_EQ(ShellQuote("a b"), "^\"a b^\"");
  EXPECT_EQ(ShellQuote("%PATH%&calc"), "^%PATH^%^&calc");
  EXPECT_THROW(ShellQuote("a\nb"), ValueError);
}

// Design, Time: with a child outstanding a virtual clock stands still.
WEFT_TEST_F(ProcessWindowsTest, VirtualTimeStandsStillMeanwhile) {
  const TimePoint start = GetRunningLoop().Time();
  std::vector<std::string> words = {"sleep", "50"};
  ProcessOptions options;
  Process process = co_await Start(words, options);
  int code = co_await WithTimeout(absl::Milliseconds(1), process.Wait());
  EXPECT_EQ(code, 0);
  EXPECT_EQ(GetRunningLoop().Time(), start);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const std::vector<std::string> words = weft::Arguments();
  if (words.size() > 2 && words[1] == "--child") return weft::RunAsChild(words);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
