// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Processes by CreateProcessW().
//
// Nothing but what was asked for is inherited: the list of handles of the start-up
// information names all of it (PROC_THREAD_ATTRIBUTE_HANDLE_LIST). A handle in it has to be
// inheritable at that moment, so the standard streams are copies that live no longer than the
// call. Code elsewhere in this program that starts a process at the same time, with
// bInheritHandles and without a list, would pass those on; Windows has no way to prevent that.
//
// The program is looked up here and not by CreateProcessW(), which looks first where this
// program lies, and in the working directory. A batch file is refused: Windows
// would run cmd.exe on it, which takes its arguments apart by other rules than they were
// quoted by, so an argument could become a command.
//
// The end is waited for by a thread of the system's pool (RegisterWaitForSingleObject()),
// which posts to the loop: no completion port can wait for a process. The post names a
// watch, which the child disowns; so it may come late.
//
// There are no signals. To end a process is all that can be done to it: that is SIGKILL, and
// SIGTERM as well, as in Python. Its exit code is then one that we choose and know again. What
// shall reach a group goes to a job object, which has all that the process has started
// too; for that the process is started suspended.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/errors.h"
#include "weft/core/log.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/headers_windows.h"
#include "weft/net/utf16_windows.h"
#include "weft/poller/errno_windows.h"
#include "weft/process/command_line_windows.h"
#include "weft/process/spawner.h"

namespace weft {
namespace {

using internal::LastError;
using internal::Log;
using internal::ToUtf16;

// CreateProcessW() takes no longer line, with its end.
constexpr size_t kLongestLine = 32767;
// How long Close() waits for the end of a process that it has killed.
constexpr DWORD kKillPatienceMs = 1000;

// What a process returns that was ended by a signal, as it looks to others: a shell's way.
constexpr UINT ExitCodeOf(int signal) { return static_cast<UINT>(128 + signal); }

HANDLE Native(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

// Closes what it holds.
class OwnedHandle {
 public:
  explicit OwnedHandle(HANDLE handle = nullptr)
      : handle_(handle == INVALID_HANDLE_VALUE ? nullptr : handle) {}
  OwnedHandle(OwnedHandle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~OwnedHandle() {
    if (handle_ != nullptr) ::CloseHandle(handle_);
  }

  HANDLE get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  HANDLE handle_;
};

// -- The end of a process.

// Brings the end of a process from a thread of the system to the loop's. The child's half
// of it may be gone by then.
class ExitWatch final : public std::enable_shared_from_this<ExitWatch> {
 public:
  ExitWatch(LoopRef loop, absl::AnyInvocable<void()> on_exit)
      : loop_(std::move(loop)), on_exit_(std::move(on_exit)) {}

  absl::Status Begin(HANDLE process) {
    if (::RegisterWaitForSingleObject(&wait_, process, &OnSystemThread, this, INFINITE,
                                      WT_EXECUTEONLYONCE)) {
      return absl::OkStatus();
    }
    wait_ = nullptr;
    return ErrnoStatus(LastError(), "watch a process");
  }

  // Nobody wants to hear of it any more. Waits for the system's thread, if that is
  // about to post.
  void Abandon() {
    on_exit_ = nullptr;
    if (wait_ != nullptr) ::UnregisterWaitEx(std::exchange(wait_, nullptr), INVALID_HANDLE_VALUE);
  }

 private:
  static void CALLBACK OnSystemThread(void* watch, BOOLEAN) {
    auto self = static_cast<ExitWatch*>(watch)->shared_from_this();
    LoopRef loop = self->loop_;
    try {
      loop.Post([self = std::move(self)] { self->Finish(); });
    } catch (const RuntimeError&) {
      // The loop is closed, and our child's owner has heard of that.
    }
  }

  void Finish() {
    if (on_exit_ == nullptr) return;
    absl::AnyInvocable<void()> on_exit = std::exchange(on_exit_, nullptr);
    on_exit();  // May abandon us.
  }

  const LoopRef loop_;
  absl::AnyInvocable<void()> on_exit_;  // The loop's thread's.
  HANDLE wait_ = nullptr;
};

class SystemChild final : public Child {
 public:
  // `job`: none unless it has a group.
  SystemChild(EventLoop& loop, int64_t pid, OwnedHandle process, OwnedHandle job,
              Spawner::ExitCallback on_exit)
      : loop_(&loop),
        pid_(pid),
        process_(std::move(process)),
        job_(std::move(job)),
        on_exit_(std::move(on_exit)),
        watch_(std::make_shared<ExitWatch>(loop.Ref(), [this] { OnExit(); })) {
    loop_->AddOutsider();
  }

  ~SystemChild() override {
    if (!has_ended_ && !is_detached_) KillAndWait();
    RemoveOutsider();
    watch_->Abandon();
  }

  absl::Status Begin() { return watch_->Begin(process_.get()); }

  int64_t pid() const override { return pid_; }

  absl::Status SendSignal(int signal, bool to_group) override {
    const std::string tried =
        absl::StrCat("signal ", to_group ? "group of process " : "process ", pid_);
    const bool is_over = has_ended_ || ::WaitForSingleObject(process_.get(), 0) == WAIT_OBJECT_0;
    if (is_over && !to_group) return ErrnoStatus(-ESRCH, tried);
    if (signal == 0) return absl::OkStatus();
    if (signal != SIGTERM && signal != kKillSignal) {
      return absl::UnimplementedError(absl::StrCat(
          tried, ": on Windows a process can only be ended, by SIGTERM or SIGKILL (9), not ",
          signal));
    }
    const BOOL done = to_group ? ::TerminateJobObject(job_.get(), ExitCodeOf(signal))
                               : ::TerminateProcess(process_.get(), ExitCodeOf(signal));
    if (done) {
      signal_ = signal;
      return absl::OkStatus();
    }
    const int64_t error = LastError();
    // One that is ending by itself does not let itself be ended.
    return ErrnoStatus(error == -EACCES ? -ESRCH : error, tried);
  }

  void Detach() override {
    is_detached_ = true;
    RemoveOutsider();
  }

 private:
  void OnExit() {
    DWORD code = 0;
    ::GetExitCodeProcess(process_.get(), &code);
    has_ended_ = true;
    RemoveOutsider();
    const bool is_ours = signal_ != 0 && code == ExitCodeOf(signal_);
    Spawner::ExitCallback on_exit = std::move(on_exit_);
    on_exit(is_ours ? -signal_ : static_cast<int>(code));  // May destroy us.
  }

  void KillAndWait() {
    ::TerminateProcess(process_.get(), ExitCodeOf(kKillSignal));
    if (::WaitForSingleObject(process_.get(), kKillPatienceMs) == WAIT_OBJECT_0) return;
    Log(LogSeverity::kWarning, absl::StrCat("process ", pid_, " was killed, and does not end"));
  }

  void RemoveOutsider() {
    if (std::exchange(is_outsider_, false)) loop_->RemoveOutsider();
  }

  EventLoop* const loop_;
  const int64_t pid_;
  const OwnedHandle process_;
  const OwnedHandle job_;
  Spawner::ExitCallback on_exit_;
  const std::shared_ptr<ExitWatch> watch_;
  int signal_ = 0;  // The last that has ended it.
  bool has_ended_ = false;
  bool is_detached_ = false;
  bool is_outsider_ = true;
};

// -- The beginning.

absl::Status StartError(int64_t result, const std::string& name) {
  return ErrnoStatus(result, absl::StrCat("start \"", name, "\""));
}

bool IsAbsolute(std::string_view path) {
  const bool has_drive = path.size() >= 2 && path[1] == ':';
  return has_drive || absl::StartsWith(path, "\\") || absl::StartsWith(path, "/");
}

DWORD AttributesOf(const std::string& path) {
  absl::StatusOr<std::wstring> wide = ToUtf16(path, "path");
  return wide.ok() ? ::GetFileAttributesW(wide->c_str()) : INVALID_FILE_ATTRIBUTES;
}

// The path of a program, from where it is looked for; empty if there is none. Sets `*error`
// if it is there, and no program.
std::string ProgramAt(const std::string& path, int* error) {
  const size_t name = path.find_last_of("/\\");
  const bool has_extension =
      path.find('.', name == std::string::npos ? 0 : name) != std::string::npos;
  for (const char* extension : {"", ".exe"}) {
    if (*extension != '\0' && has_extension) continue;
    std::string file = absl::StrCat(path, extension);
    const DWORD attributes = AttributesOf(file);
    if (attributes == INVALID_FILE_ATTRIBUTES) continue;
    if ((attributes & FILE_ATTRIBUTE_DIRECTORY) == 0) return file;
    *error = EACCES;
  }
  return std::string();
}

// What the child has as its PATH.
std::string PathOf(const SpawnRequest& request) {
  if (request.environment.has_value()) {
    for (const std::string& variable : *request.environment) {
      if (absl::StartsWithIgnoreCase(variable, "PATH=")) return variable.substr(5);
    }
    return std::string();
  }
  const DWORD size = ::GetEnvironmentVariableW(L"PATH", nullptr, 0);
  std::wstring path(size, L'\0');
  path.resize(::GetEnvironmentVariableW(L"PATH", path.data(), size));
  return internal::FromUtf16(path);
}

// The file that `request` asks for. Errors: NOT_FOUND; PERMISSION_DENIED if it is a folder;
// UNIMPLEMENTED for a batch file.
absl::StatusOr<std::string> FindProgram(const SpawnRequest& request) {
  const std::string& name = request.program;
  int error = ENOENT;
  std::string file;
  const auto below = [&request](std::string_view path) {
    if (request.directory.empty() || IsAbsolute(path)) return std::string(path);
    return absl::StrCat(request.directory, "\\", path);
  };
  if (name.find_first_of("/\\:") != std::string::npos) {
    file = ProgramAt(below(name), &error);
  } else if (!name.empty()) {
    const std::string path = PathOf(request);
    for (std::string_view where : absl::StrSplit(path, ';', absl::SkipEmpty())) {
      file = ProgramAt(absl::StrCat(below(where), "\\", name), &error);
      if (!file.empty()) break;
    }
  }
  if (file.empty()) return StartError(-error, name);
  if (absl::EndsWithIgnoreCase(file, ".bat") || absl::EndsWithIgnoreCase(file, ".cmd")) {
    return absl::UnimplementedError(absl::StrCat(
        "start \"", name,
        "\": cmd.exe would take the arguments of a batch file apart by rules of its own; "
        "CreateSubprocessShell() runs it"));
  }
  return file;
}

// The variables as Windows wants them: in its order, each with a NUL behind it, and one
// more at the end.
absl::StatusOr<std::wstring> EnvironmentBlock(const std::vector<std::string>& variables) {
  std::vector<std::wstring> sorted;
  for (const std::string& variable : variables) {
    absl::StatusOr<std::wstring> wide = ToUtf16(variable, "environment");
    if (!wide.ok()) return wide.status();
    sorted.push_back(*std::move(wide));
  }
  std::sort(sorted.begin(), sorted.end(), [](const std::wstring& a, const std::wstring& b) {
    const auto name = [](const std::wstring& text) { return static_cast<int>(text.find(L'=')); };
    return ::CompareStringOrdinal(a.data(), name(a), b.data(), name(b), /*bIgnoreCase=*/TRUE) ==
           CSTR_LESS_THAN;
  });
  std::wstring block;
  for (const std::wstring& variable : sorted) block.append(variable).push_back(L'\0');
  if (block.empty()) block.push_back(L'\0');
  block.push_back(L'\0');
  return block;
}

// The handles that the child inherits.
class Inheritance {
 public:
  Inheritance() = default;
  Inheritance(const Inheritance&) = delete;
  ~Inheritance() {
    for (const HANDLE handle : changed_) ::SetHandleInformation(handle, HANDLE_FLAG_INHERIT, 0);
    if (attributes() != nullptr) ::DeleteProcThreadAttributeList(attributes());
  }

  absl::Status Prepare(const SpawnRequest& request, STARTUPINFOEXW* startup) {
    HANDLE* const streams[] = {&startup->StartupInfo.hStdInput, &startup->StartupInfo.hStdOutput,
                               &startup->StartupInfo.hStdError};
    for (int i = 0; i < 3; ++i) {
      absl::Status copied = Copy(request.standard[i], i, streams[i]);
      if (!copied.ok()) return copied;
    }
    for (const NativeHandle handle : request.pass_descriptors) {
      absl::Status passed = Pass(Native(handle));
      if (!passed.ok()) return passed;
    }
    startup->StartupInfo.dwFlags |= STARTF_USESTDHANDLES;
    return MakeList(startup);
  }

 private:
  using Kind = SpawnRequest::Standard::Kind;

  LPPROC_THREAD_ATTRIBUTE_LIST attributes() {
    return list_.empty() ? nullptr : reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(list_.data());
  }

  absl::Status Copy(const SpawnRequest::Standard& standard, int index, HANDLE* copy) {
    static constexpr DWORD kStreams[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    HANDLE source = nullptr;
    if (standard.kind == Kind::kHandle && standard.handle > 2) source = Native(standard.handle);
    if (standard.kind == Kind::kInherit || (standard.kind == Kind::kHandle && source == nullptr)) {
      source = ::GetStdHandle(kStreams[standard.handle >= 0 ? standard.handle : index]);
    }
    OwnedHandle null;
    if (standard.kind == Kind::kNull || source == nullptr || source == INVALID_HANDLE_VALUE) {
      null = OwnedHandle(::CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE,
                                       FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                                       0, nullptr));
      if (!null) return ErrnoStatus(LastError(), "open NUL for a process");
      source = null.get();
    }
    const HANDLE self = ::GetCurrentProcess();
    if (!::DuplicateHandle(self, source, self, copy, 0, /*bInheritHandle=*/TRUE,
                           DUPLICATE_SAME_ACCESS)) {
      return ErrnoStatus(LastError(),
                         absl::StrCat("pass descriptor ", reinterpret_cast<NativeHandle>(source)));
    }
    copies_.emplace_back(*copy);
    handles_.push_back(*copy);
    return absl::OkStatus();
  }

  absl::Status Pass(HANDLE handle) {
    DWORD flags = 0;
    const bool is_inheritable =
        ::GetHandleInformation(handle, &flags) && (flags & HANDLE_FLAG_INHERIT) != 0;
    if (!is_inheritable) {
      if (!::SetHandleInformation(handle, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT)) {
        return ErrnoStatus(
            LastError(), absl::StrCat("pass descriptor ", reinterpret_cast<NativeHandle>(handle)));
      }
      changed_.push_back(handle);
    }
    // Windows refuses a list that names one twice.
    if (std::find(handles_.begin(), handles_.end(), handle) == handles_.end()) {
      handles_.push_back(handle);
    }
    return absl::OkStatus();
  }

  absl::Status MakeList(STARTUPINFOEXW* startup) {
    SIZE_T size = 0;
    ::InitializeProcThreadAttributeList(nullptr, 1, 0, &size);
    list_.resize(size);
    if (!::InitializeProcThreadAttributeList(attributes(), 1, 0, &size)) {
      list_.clear();
      return ErrnoStatus(LastError(), "prepare a process");
    }
    if (!::UpdateProcThreadAttribute(attributes(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                     handles_.data(), handles_.size() * sizeof(HANDLE), nullptr,
                                     nullptr)) {
      return ErrnoStatus(LastError(), "prepare a process");
    }
    startup->lpAttributeList = attributes();
    return absl::OkStatus();
  }

  std::vector<HANDLE> handles_;  // All that is inherited.
  std::vector<OwnedHandle> copies_;
  std::vector<HANDLE> changed_;  // Made inheritable for this.
  std::vector<char> list_;
};

absl::Status CheckDirectory(const std::string& directory) {
  if (directory.empty()) return absl::OkStatus();
  const std::string tried = absl::StrCat("change to directory \"", directory, "\"");
  const DWORD attributes = AttributesOf(directory);
  if (attributes == INVALID_FILE_ATTRIBUTES) return ErrnoStatus(-ENOENT, tried);
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) == 0) return ErrnoStatus(-ENOTDIR, tried);
  return absl::OkStatus();
}

absl::StatusOr<std::wstring> CommandLine(const SpawnRequest& request) {
  std::vector<std::string> quoted = request.argv;
  if (request.is_verbatim) quoted.resize(1);
  absl::StatusOr<std::string> line = internal::QuoteArguments(quoted);
  if (!line.ok()) return line.status();
  for (size_t i = quoted.size(); i < request.argv.size(); ++i) {
    absl::StrAppend(&*line, " ", request.argv[i]);
  }
  absl::StatusOr<std::wstring> wide = ToUtf16(*line, "argv");
  if (wide.ok() && wide->size() >= kLongestLine) return StartError(-E2BIG, request.program);
  return wide;
}

class WindowsSpawner final : public Spawner {
 public:
  absl::StatusOr<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnRequest& request,
                                               ExitCallback on_exit) override {
    if (request.process_group.value_or(0) != 0) {
      return absl::UnimplementedError(
          "start a process in a group that is there: on Windows it has one of its own or ours");
    }
    absl::Status checked = CheckDirectory(request.directory);
    if (!checked.ok()) return checked;
    absl::StatusOr<std::string> file = FindProgram(request);
    if (!file.ok()) return file.status();
    absl::StatusOr<std::wstring> application = ToUtf16(*file, "start");
    if (!application.ok()) return application.status();
    absl::StatusOr<std::wstring> line = CommandLine(request);
    if (!line.ok()) return line.status();
    absl::StatusOr<std::wstring> directory = ToUtf16(request.directory, "change to directory");
    if (!directory.ok()) return directory.status();
    absl::StatusOr<std::wstring> environment =
        EnvironmentBlock(request.environment.value_or(std::vector<std::string>()));
    if (!environment.ok()) return environment.status();

    STARTUPINFOEXW startup = {};
    startup.StartupInfo.cb = sizeof(startup);
    Inheritance inheritance;
    absl::Status prepared = inheritance.Prepare(request, &startup);
    if (!prepared.ok()) return prepared;
    const bool has_group = request.new_session || request.process_group.has_value();
    DWORD flags = CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    if (has_group) flags |= CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED;
    if (request.new_session) flags |= DETACHED_PROCESS;
    OwnedHandle job;
    if (has_group) {
      job = OwnedHandle(::CreateJobObjectW(nullptr, nullptr));
      if (!job) return StartError(LastError(), request.program);
    }

    PROCESS_INFORMATION started = {};
    if (!::CreateProcessW(application->c_str(), line->data(), nullptr, nullptr,
                          /*bInheritHandles=*/TRUE, flags,
                          request.environment.has_value() ? environment->data() : nullptr,
                          request.directory.empty() ? nullptr : directory->c_str(),
                          &startup.StartupInfo, &started)) {
      return StartError(LastError(), request.program);
    }
    OwnedHandle process(started.hProcess);
    const OwnedHandle thread(started.hThread);
    if (has_group && (!::AssignProcessToJobObject(job.get(), process.get()) ||
                      ::ResumeThread(thread.get()) == static_cast<DWORD>(-1))) {
      const int64_t error = LastError();
      ::TerminateProcess(process.get(), ExitCodeOf(kKillSignal));
      return StartError(error, request.program);
    }
    auto child =
        std::make_unique<SystemChild>(loop, static_cast<int64_t>(started.dwProcessId),
                                      std::move(process), std::move(job), std::move(on_exit));
    absl::Status begun = child->Begin();
    if (!begun.ok()) return begun;  // Which kills it.
    return child;
  }
};

}  // namespace

Spawner* SystemSpawner() {
  static WindowsSpawner spawner;
  return &spawner;
}

}  // namespace weft
