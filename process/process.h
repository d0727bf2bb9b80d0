// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_PROCESS_H_
#define WEFT_PROCESS_PROCESS_H_

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/core/outcome.h"
#include "weft/core/waiter.h"
#include "weft/net/connection.h"
#include "weft/poller/native_handle.h"
#include "weft/process/process_state.h"

namespace weft {

// Argv
//
// A program and its arguments: `{"tar", "-x", name}`, or a vector of strings.
class Argv {
 public:
  // No initializer_list: gcc 12 cannot have one in an expression with co_await.
  template <std::convertible_to<std::string_view>... Strings>
  Argv(const Strings&... strings) {  // NOLINT(google-explicit-constructor)
    words_.reserve(sizeof...(strings));
    (words_.emplace_back(std::string_view(strings)), ...);
  }
  Argv(std::vector<std::string> words)  // NOLINT(google-explicit-constructor)
      : words_(std::move(words)) {}

  const std::vector<std::string>& words() const& { return words_; }
  std::vector<std::string> words() && { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

// Stdio
//
// What one of the standard streams of a child process is connected to.
class Stdio {
 public:
  enum Kind : int {
    kInherit,   // What it is here.
    kPipe,      // A stream of the Process.
    kDevNull,   // Nothing: an end at once, or oblivion.
    kToStdout,  // For the standard error: where the standard output goes.
  };

  Stdio(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor)

  // A descriptor of this process, which stays the caller's: a file, a socket, the end
  // of a pipe of another process. Needs to be open until the process is started.
  static Stdio Descriptor(NativeHandle handle) {
    Stdio stdio(kDescriptor);
    stdio.handle_ = handle;
    return stdio;
  }

  bool is_pipe() const { return kind_ == kPipe; }

 private:
  friend class internal::ProcessState;
  static constexpr Kind kDescriptor = static_cast<Kind>(kToStdout + 1);

  Kind kind_;
  NativeHandle handle_ = kInvalidHandle;
};

using EnvironmentVariables = std::map<std::string, std::string>;

// How a process is started. asyncio's names, but for `stdin`, `stdout` and `stderr`,
// which the C library defines as macros.
struct ProcessOptions {
  ProcessOptions() {}

  Stdio std_in = Stdio::kInherit;
  Stdio std_out = Stdio::kInherit;
  Stdio std_err = Stdio::kInherit;

  std::string executable;         // What is run, if not what argv begins with.
  std::string working_directory;  // Empty: that of here.

  // All that it has; none: what there is here. `CurrentEnvironment()` is to begin with.
  std::optional<EnvironmentVariables> environment;

  // A session of its own, and so a process group, and no terminal.
  bool start_new_session = false;

  // The group that it joins; 0: one of its own. Then a Ctrl-C at the terminal is not
  // for it, and SendSignalToGroup() reaches its children too.
  std::optional<int64_t> process_group;

  // More descriptors that it inherits, by their numbers here. No others are.
  std::vector<NativeHandle> pass_descriptors;

  // Signals that are ignored here do what they do by default there; but for those of
  // terminals, which nohup(1) and shells have programs ignore. None is blocked.
  bool restore_signals = true;

  size_t limit = kDefaultStreamLimit;  // Of the readers.
};

// What came out of a process.
struct ProcessOutput {
  std::string std_out;  // Empty unless it is a pipe.
  std::string std_err;
  int returncode = 0;
};

namespace internal {

class ProcessWaitAwaiter final : public Waiter {
 public:
  explicit ProcessWaitAwaiter(IntrusivePtr<ProcessState> process) : process_(std::move(process)) {}
  ProcessWaitAwaiter(ProcessWaitAwaiter&& other) noexcept : process_(std::move(other.process_)) {}

  bool await_ready() const { return process_->returncode().has_value(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) {
    process_->waiters().Wait(this, handle);
  }
  int await_resume() {
    Unlink();
    EndOrThrow();
    return *process_->returncode();
  }
  Outcome<int> await_outcome() {
    Outcome<int> outcome;
    Unlink();
    if (End()) {
      outcome.SetCancelled(task()->cancelled_error());
    } else {
      outcome.Emplace(*process_->returncode());
    }
    return outcome;
  }

 private:
  IntrusivePtr<ProcessState> process_;
};

}  // namespace internal

// Process
//
// A program that was started, what CreateSubprocessExec() returns.
//
//   ProcessOptions options;
//   options.std_out = Stdio::kPipe;
//   absl::StatusOr<Process> date = co_await CreateSubprocessExec({"date", "-u"}, options);
//   if (!date.ok()) co_return date.status();
//   absl::StatusOr<ProcessOutput> output = co_await date->Communicate();
//
// Its end is noticed whether somebody waits or not, and leaves no zombie. A Process that
// is destroyed while the program runs kills it, for nobody would be there to wait;
// so does the end of the loop. One that is to live on is detached. A task that is cancelled
// in Wait() or Communicate() leaves it as it is.
//
// Who has a pipe for the output and does not read it may wait for ever: a program that
// fills the pipe waits for its reader. Communicate() reads while it waits.
//
// Return codes: what the program returned; -N if signal N ended it; 255 if that cannot
// be known, as somebody else in this program has waited for it. On Windows, where nobody
// else's signals end a process, -N is one that SendSignal() has ended.
//
// Threads: belongs to the loop's thread, which may be any.
// Python: asyncio.subprocess.Process.
class Process {
 public:
  Process(Process&&) noexcept = default;
  Process& operator=(Process&& other) noexcept {
    if (this != &other) {
      if (state_) state_->Drop();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Process() {
    if (state_) state_->Drop();
  }

  int64_t pid() const { return state_->pid(); }

  // None while it runs.
  std::optional<int> returncode() const { return state_->returncode(); }

  // The other ends of its pipes; what is no pipe is no stream (`!process.std_in()`).
  // Assign an empty one, or Close(), to let the program see the end.
  StreamWriter& std_in() { return state_->std_in(); }
  StreamReader& std_out() { return state_->std_out(); }
  StreamReader& std_err() { return state_->std_err(); }

  // Awaitable of int: the return code, when it has ended. Output may still be there to
  // be read. Several tasks may wait.
  internal::ProcessWaitAwaiter Wait() { return internal::ProcessWaitAwaiter(state_); }

  // Awaitable of StatusOr<ProcessOutput>: writes `input` and the end to its standard
  // input, if that is a pipe, reads all that it writes to pipes, and waits for its end.
  // That it reads only a part of the input is no error.
  // Errors: those of reading; ValueError if there is an input and no pipe for it.
  Coro<absl::StatusOr<ProcessOutput>> Communicate(std::string input = std::string()) {
    return internal::Communicate(state_, std::move(input));
  }

  // Sends it a signal. It is never sent to another process that has got its number.
  // Errors: NOT_FOUND [ESRCH] if it has ended; the kernel's; ValueError for a number
  // that is no signal. UNIMPLEMENTED on Windows, but for SIGTERM and SIGKILL (9), which
  // both end it at once.
  absl::Status SendSignal(int signal) { return state_->SendSignal(signal, /*to_group=*/false); }
  // Asks it to end: SIGTERM.
  absl::Status Terminate();
  // Ends it: SIGKILL.
  absl::Status Kill();

  // The same to all processes of its group. Errors: RuntimeError if it was started in
  // ours, without `process_group` and `start_new_session`.
  absl::Status SendSignalToGroup(int signal) {
    return state_->SendSignal(signal, /*to_group=*/true);
  }

  // Lets the program outlive this object, and the loop. While the loop lives its end
  // is still noticed.
  void Detach() { state_->Detach(); }

  // -- For weft's own parts.
  explicit Process(internal::IntrusivePtr<internal::ProcessState> state)
      : state_(std::move(state)) {}

 private:
  internal::IntrusivePtr<internal::ProcessState> state_;
};

// Awaitable of StatusOr<Process>: starts a program. It is looked up in the PATH that it
// gets, unless it has a slash; a relative path is one from its working directory.
//
// Errors: NOT_FOUND if there is no such file, PERMISSION_DENIED if it may not be
// executed, both for the program and the working directory, which the message names;
// the kernel's else. Nothing is left behind then. ValueError if `argv` is empty, a string
// holds a NUL, or options do not go together. UNIMPLEMENTED where there are none.
// Python: asyncio.create_subprocess_exec().
Coro<absl::StatusOr<Process>> CreateSubprocessExec(Argv argv,
                                                   ProcessOptions options = ProcessOptions());

// The same with a command for the shell: /bin/sh, or cmd.exe on Windows. What of it
// comes from elsewhere goes through ShellQuote().
// Python: asyncio.create_subprocess_shell().
Coro<absl::StatusOr<Process>> CreateSubprocessShell(std::string command,
                                                    ProcessOptions options = ProcessOptions());

// The environment variables of this process.
EnvironmentVariables CurrentEnvironment();

// `word` as the shell has to see it in order to take it as it is. Errors: ValueError on
// Windows if it has a line break, which cmd.exe cannot be kept from seeing.
// Python: shlex.quote().
std::string ShellQuote(std::string_view word);

}  // namespace weft

#endif  // WEFT_PROCESS_PROCESS_H_
