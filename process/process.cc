// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/process/process.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/log.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/signals.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"

namespace weft {
namespace internal {
namespace {

using Kind = SpawnRequest::Standard::Kind;

constexpr const char* kStreamNames[] = {"standard input", "standard output", "standard error"};

void CheckString(std::string_view what, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw ValueError(absl::StrCat(what, ": embedded null byte"));
  }
}

std::vector<std::string> Flatten(const EnvironmentVariables& variables) {
  std::vector<std::string> flat;
  flat.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    if (name.empty() || name.find('=') != std::string::npos) {
      throw ValueError(absl::StrCat("environment: illegal variable name \"", name, "\""));
    }
    CheckString("environment", name);
    CheckString("environment", value);
    flat.push_back(absl::StrCat(name, "=", value));
  }
  return flat;
}

// All but the standard streams. Errors: ValueError.
SpawnRequest ToRequest(std::vector<std::string> argv, bool is_verbatim,
                       const ProcessOptions& options) {
  if (argv.empty()) throw ValueError("argv: there is no program");
  for (const std::string& word : argv) CheckString("argv", word);
  CheckString("executable", options.executable);
  CheckString("working_directory", options.working_directory);
  if (options.limit == 0) throw ValueError("Limit cannot be <= 0");
  if (options.start_new_session && options.process_group.has_value()) {
    throw ValueError("process_group: a new session has a process group of its own");
  }
  if (options.process_group.value_or(0) < 0) throw ValueError("process_group: is negative");
  for (const NativeHandle handle : options.pass_descriptors) {
    if (handle < 3) {
      throw ValueError(absl::StrCat("pass_descriptors: ", handle, " is no number above 2"));
    }
  }
  SpawnRequest request;
  request.program = options.executable.empty() ? argv.front() : options.executable;
  request.argv = std::move(argv);
  request.is_verbatim = is_verbatim;
  request.directory = options.working_directory;
  request.new_session = options.start_new_session;
  request.process_group = options.process_group;
  request.restore_signals = options.restore_signals;
  request.pass_descriptors = options.pass_descriptors;
  if (options.environment.has_value()) request.environment = Flatten(*options.environment);
  return request;
}

}  // namespace

// The ends of the pipes while a process is being started. Closes what is left.
struct ProcessState::Pipes {
  ~Pipes() {
    CloseTheirs();
    for (NativeHandle handle : ours) {
      if (handle != kInvalidHandle) CloseRaw(handle);
    }
  }

  void CloseTheirs() {
    for (NativeHandle& handle : theirs) {
      if (handle != kInvalidHandle) CloseRaw(std::exchange(handle, kInvalidHandle));
    }
  }

  // What the stream `index` of the child is to be.
  absl::Status Connect(int index, const Stdio& stdio, SpawnRequest* request) {
    SpawnRequest::Standard& standard = request->standard[index];
    switch (stdio.kind_) {
      case Stdio::kInherit:
        return absl::OkStatus();
      case Stdio::kDevNull:
        standard.kind = Kind::kNull;
        return absl::OkStatus();
      case Stdio::kToStdout: {
        if (index != 2) throw ValueError("Stdio::kToStdout is for std_err");
        standard = request->standard[1];
        if (standard.kind == Kind::kInherit) standard.handle = 1;
        return absl::OkStatus();
      }
      case Stdio::kPipe: {
        absl::StatusOr<RawPipe> pipe =
            OpenRawPipe(index == 0 ? LentEnd::kReader : LentEnd::kWriter);
        if (!pipe.ok()) return pipe.status();
        ours[index] = index == 0 ? pipe->write_end : pipe->read_end;
        theirs[index] = index == 0 ? pipe->read_end : pipe->write_end;
        standard.kind = Kind::kHandle;
        standard.handle = theirs[index];
        return absl::OkStatus();
      }
      default:
        if (stdio.handle_ < 0) throw ValueError("Stdio::Descriptor: is negative");
        standard.kind = Kind::kHandle;
        standard.handle = stdio.handle_;
        return absl::OkStatus();
    }
  }

  // Our end as a stream needs it, which owns it then.
  absl::StatusOr<PipeEnd> Take(int index, int64_t pid) {
    PipeOptions options;
    options.name = absl::StrCat(kStreamNames[index], " of process ", pid);
    absl::StatusOr<PipeEnd> end = PreparePipeEnd(ours[index], /*to_read=*/index != 0, options);
    if (end.ok()) ours[index] = kInvalidHandle;
    return end;
  }

  NativeHandle ours[3] = {kInvalidHandle, kInvalidHandle, kInvalidHandle};
  NativeHandle theirs[3] = {kInvalidHandle, kInvalidHandle, kInvalidHandle};
};

absl::StatusOr<IntrusivePtr<ProcessState>> ProcessState::Start(std::vector<std::string> argv,
                                                               bool is_verbatim,
                                                               const ProcessOptions& options) {
  EventLoop& loop = GetRunningLoop();
  SpawnRequest request = ToRequest(std::move(argv), is_verbatim, options);
  Pipes pipes;
  const Stdio* const stdios[] = {&options.std_in, &options.std_out, &options.std_err};
  for (int i = 0; i < 3; ++i) {
    absl::Status connected = pipes.Connect(i, *stdios[i], &request);
    if (!connected.ok()) return connected;
  }

  IntrusivePtr<ProcessState> process(new ProcessState);
  Spawner* const spawner = loop.spawner() != nullptr ? loop.spawner() : SystemSpawner();
  absl::StatusOr<std::unique_ptr<Child>> child =
      spawner->Spawn(loop, request, [state = process.get()](int code) { state->OnExit(code); });
  if (!child.ok()) return child.status();
  pipes.CloseTheirs();
  process->pid_ = (*child)->pid();
  process->has_group_ = options.start_new_session || options.process_group.has_value();
  for (int i = 0; i < 3; ++i) {
    if (!stdios[i]->is_pipe()) continue;
    absl::StatusOr<PipeEnd> end = pipes.Take(i, process->pid_);
    if (!end.ok()) return end.status();  // The child is killed.
    if (i == 0) {
      process->std_in_ = MakePipeWriter(*std::move(end));
    } else {
      process->readers_[i - 1] = MakePipeReader(*std::move(end), options.limit);
    }
  }
  process->child_ = *std::move(child);
  process->AddRef();  // Until it has ended.
  loop.owned().Watch(process.get());
  return process;
}

void ProcessState::OnExit(int returncode) {
  const std::unique_ptr<Child> ended = std::move(child_);
  returncode_ = returncode;
  LoopOwned::Unlink();
  waiters_.WakeAll();
  Release();
}

// No task is left that could wait. What still runs is killed by the child's destructor.
void ProcessState::OnLoopClose() {
  child_ = nullptr;
  Release();
}

absl::Status ProcessState::SendSignal(int signal, bool to_group) {
  if (signal < 0 || signal >= kSignalEnd) {
    throw ValueError(absl::StrCat("signal number out of range: ", signal));
  }
  if (to_group && !has_group_) {
    throw RuntimeError("the process is in the process group of this program");
  }
  if (child_ != nullptr) return child_->SendSignal(signal, to_group);
  return ErrnoStatus(-ESRCH, absl::StrCat("signal process ", pid_));
}

void ProcessState::Detach() {
  is_detached_ = true;
  if (child_ != nullptr) child_->Detach();
}

void ProcessState::Drop() {
  std_in_ = StreamWriter();
  for (StreamReader& reader : readers_) reader = StreamReader();
  if (child_ == nullptr || is_detached_) return;
  if (EventLoop* loop = GetRunningLoopOrNull(); loop != nullptr && loop->debug()) {
    Log(LogSeverity::kWarning, absl::StrCat("process ", pid_, " is killed: nobody holds it"));
  }
  child_->SendSignal(kKillSignal, /*to_group=*/false).IgnoreError();
}

namespace {

// The parts of Communicate(). Each keeps the process, for it may be left behind when
// another fails.

Coro<void> Feed(IntrusivePtr<ProcessState> process, std::string input) {
  StreamWriter& writer = process->std_in();
  if (!writer) co_return;
  if (!input.empty()) writer.Write(input);
  // That nobody reads it is the program's choice.
  absl::Status sent = co_await writer.Drain();
  static_cast<void>(sent);
  if (writer) writer.Close();  // The process may have been dropped.
}

Coro<absl::StatusOr<std::string>> ReadAll(IntrusivePtr<ProcessState> process, bool is_error) {
  StreamReader& reader = is_error ? process->std_err() : process->std_out();
  if (!reader) co_return std::string();
  co_return co_await reader.Read();
}

}  // namespace

Coro<absl::StatusOr<ProcessOutput>> Communicate(IntrusivePtr<ProcessState> process,
                                                std::string input) {
  if (!input.empty() && !process->std_in()) {
    throw ValueError("input: the standard input of the process is no pipe");
  }
  auto all = Gather(Feed(process, std::move(input)), ReadAll(process, /*is_error=*/false),
                    ReadAll(process, /*is_error=*/true));
  auto outputs = co_await std::move(all);
  absl::StatusOr<std::string>& std_out = std::get<1>(outputs);
  absl::StatusOr<std::string>& std_err = std::get<2>(outputs);
  int returncode = co_await ProcessWaitAwaiter(process);
  if (!std_out.ok()) co_return std_out.status();
  if (!std_err.ok()) co_return std_err.status();
  ProcessOutput output;
  output.std_out = *std::move(std_out);
  output.std_err = *std::move(std_err);
  output.returncode = returncode;
  co_return output;
}

}  // namespace internal

absl::Status Process::Terminate() { return SendSignal(SIGTERM); }
absl::Status Process::Kill() { return SendSignal(kKillSignal); }

Coro<absl::StatusOr<Process>> CreateSubprocessExec(Argv argv, ProcessOptions options) {
  absl::StatusOr<internal::IntrusivePtr<internal::ProcessState>> started =
      internal::ProcessState::Start(std::move(argv).words(), /*is_verbatim=*/false, options);
  if (!started.ok()) co_return started.status();
  co_return Process(*std::move(started));
}

Coro<absl::StatusOr<Process>> CreateSubprocessShell(std::string command, ProcessOptions options) {
  absl::StatusOr<internal::IntrusivePtr<internal::ProcessState>> started =
      internal::ProcessState::Start(internal::ShellArgv(options.executable, command),
                                    /*is_verbatim=*/true, options);
  if (!started.ok()) co_return started.status();
  co_return Process(*std::move(started));
}

}  // namespace weft
