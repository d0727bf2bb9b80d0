// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Processes by posix_spawn(3), and a descriptor that tells of their end.
//
// Why posix_spawn: glibc makes the child by CLONE_VM | CLONE_VFORK, on a stack of its
// own and with all signals blocked, so starting one costs the same however large this
// process is, and no signal handler of ours runs in the child (macOS has it as one system
// call). The call returns when
// the program has been loaded, with the error of the step that failed. To do the same
// by hand was refused: vfork(2) runs on our stack and in our memory, where sanitizers
// are at work, and fork(2) copies page tables (process_benchmark compares the two). The
// price is that an error does not say which step it was; so what can be checked ahead is.
//
// Nothing but what was asked for is inherited: whether other code remembered O_CLOEXEC
// is not relied upon. Everything from 3 on is closed in the child, but for what is
// passed.
//
// The end is reported by a descriptor, which is readable from then on: no SIGCHLD handler,
// and nobody else's children are waited for. The process stays a zombie, and its number
// ours, until we have asked for its status. That holds as long as nobody in this program
// waits for all children, or ignores SIGCHLD; then the status is lost, and 255, as asyncio
// has it.

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "weft/core/log.h"
#include "weft/loop/event_loop.h"
#include "weft/net/errno_status.h"
#include "weft/net/socket_state.h"
#include "weft/poller/operation.h"
#include "weft/process/exit_descriptor_posix.h"
#include "weft/process/spawn_actions_posix.h"
#include "weft/process/spawner.h"

extern char** environ;  // Not in every system's <unistd.h>.

namespace weft {
namespace {

using internal::Log;

constexpr const char* kDefaultPath = "/bin:/usr/bin";  // As Python's os.defpath.
constexpr int kUnknownReturncode = 255;

// How long Close() waits for the end of a process that it has killed.
constexpr int kKillPatienceMs = 1000;

// Closes what it holds.
class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { Reset(); }

  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) ::close(Release());
  }

 private:
  int fd_;
};

// -- The end of a process.

// Waits for an exit descriptor, and owns it. Lives until the poller has let go of it; whoever
// wants to hear of the end may have gone by then.
class ExitWatch final : public Operation {
 public:
  ExitWatch(EventLoop& loop, int descriptor, absl::AnyInvocable<void()> on_ready)
      : Operation([](Runnable* self) { static_cast<ExitWatch*>(self)->Finish(); }),
        core_(loop.core()),
        api_(&loop.socket_api()),
        descriptor_(descriptor),
        on_ready_(std::move(on_ready)) {}

  absl::Status Begin() {
    PrepareWaitReadable(descriptor_);
    if (poller().Start(this) == StartResult::kPending) return absl::OkStatus();
    if (result < 0) return ErrnoStatus(result, "watch a process");
    core_->ready.PushBack(this);  // It has ended already.
    return absl::OkStatus();
  }

  // Nobody wants to hear of it any more.
  void Abandon() {
    on_ready_ = nullptr;
    if (state == State::kPending && core_->owner != nullptr) poller().Cancel(this);
    if (state == State::kPending) return;
    Unlink();
    Delete();
  }

 private:
  Poller& poller() const { return static_cast<EventLoop*>(core_->owner)->poller(); }

  void Finish() {
    if (on_ready_ == nullptr) return Delete();
    // Else the loop closes. Our owner hears of that as well, and comes for us.
    if (result < 0) return;
    absl::AnyInvocable<void()> on_ready = std::exchange(on_ready_, nullptr);
    on_ready();  // May abandon us.
  }

  void Delete() {
    internal::CloseHandle(core_.get(), api_, descriptor_);
    delete this;
  }

  internal::IntrusivePtr<internal::SchedulerCore> core_;
  SocketApi* const api_;
  const int descriptor_;
  absl::AnyInvocable<void()> on_ready_;
};

class SystemChild final : public Child {
 public:
  SystemChild(EventLoop& loop, pid_t pid, int descriptor, int64_t group,
              Spawner::ExitCallback on_exit)
      : loop_(&loop),
        pid_(pid),
        descriptor_(descriptor),
        group_(group),
        on_exit_(std::move(on_exit)),
        watch_(new ExitWatch(loop, descriptor, [this] { OnReady(); })) {
    loop_->AddOutsider();
  }

  ~SystemChild() override {
    if (!has_ended_ && !is_detached_) KillAndReap();
    RemoveOutsider();
    watch_->Abandon();
  }

  absl::Status Begin() { return watch_->Begin(); }

  int64_t pid() const override { return pid_; }

  absl::Status SendSignal(int signal, bool to_group) override {
    if (has_ended_) return ErrnoStatus(-ESRCH, absl::StrCat("signal process ", pid_));
    // While the process is not reaped, its number is the name of no other group.
    int error = 0;
    if (!to_group) {
      error = internal::SendToChild(descriptor_, pid_, signal);
    } else if (::kill(static_cast<pid_t>(-group_), signal) != 0) {
      error = -errno;
    }
    if (error == 0) return absl::OkStatus();
    return ErrnoStatus(error,
                       absl::StrCat("signal ", to_group ? "group of process " : "process ", pid_));
  }

  void Detach() override {
    is_detached_ = true;
    RemoveOutsider();
  }

 private:
  void OnReady() {
    const std::optional<int> returncode = internal::ReapChild(descriptor_, pid_);
    if (!returncode.has_value()) {
      Log(LogSeverity::kWarning,
          absl::StrCat("process ", pid_,
                       ": somebody else has waited for it, or SIGCHLD is ignored; "
                       "will report returncode 255"));
    }
    has_ended_ = true;
    RemoveOutsider();
    Spawner::ExitCallback on_exit = std::move(on_exit_);
    on_exit(returncode.value_or(kUnknownReturncode));  // May destroy us.
  }

  void KillAndReap() {
    if (internal::SendToChild(descriptor_, pid_, SIGKILL) != 0) return;
    pollfd entry = {descriptor_, POLLIN, 0};
    int ready;
    do {
      ready = ::poll(&entry, 1, kKillPatienceMs);
    } while (ready < 0 && errno == EINTR);
    if (ready == 1) {
      internal::ReapChild(descriptor_, pid_);
    } else {
      Log(LogSeverity::kWarning, absl::StrCat("process ", pid_, " was killed, and does not end"));
    }
  }

  void RemoveOutsider() {
    if (std::exchange(is_outsider_, false)) loop_->RemoveOutsider();
  }

  EventLoop* const loop_;
  const pid_t pid_;
  const int descriptor_;  // The watch's.
  const int64_t group_;
  Spawner::ExitCallback on_exit_;
  ExitWatch* const watch_;
  bool has_ended_ = false;
  bool is_detached_ = false;
  bool is_outsider_ = true;
};

// -- The beginning.

// The file that `request` asks for, as execve() in the child will see it.
// Errors: NOT_FOUND; PERMISSION_DENIED if there are only files that may not be run.
absl::StatusOr<std::string> FindProgram(const SpawnRequest& request, int directory) {
  const std::string& name = request.program;
  if (name.find('/') != std::string::npos) return name;
  std::string path = kDefaultPath;
  if (!request.environment.has_value()) {
    if (const char* value = ::getenv("PATH")) path = value;
  } else {
    for (const std::string& variable : *request.environment) {
      if (variable.compare(0, 5, "PATH=") == 0) path = variable.substr(5);
    }
  }
  int error = ENOENT;
  for (std::string_view where : absl::StrSplit(path, ':')) {
    if (name.empty()) break;
    std::string file = absl::StrCat(where.empty() ? "." : where, "/", name);
    struct stat status;
    if (::fstatat(directory, file.c_str(), &status, 0) != 0) {
      if (errno == EACCES) error = EACCES;
    } else if (!S_ISREG(status.st_mode) ||
               ::faccessat(directory, file.c_str(), X_OK, AT_EACCESS) != 0) {
      error = EACCES;
    } else {
      return file;
    }
  }
  return ErrnoStatus(-error, absl::StrCat("start \"", name, "\""));
}

// Pointers to them, and a null.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// What the child does before it runs the program.
class Preparation {
 public:
  Preparation() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  Preparation(const Preparation&) = delete;
  ~Preparation() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }

  absl::Status Prepare(const SpawnRequest& request, int directory) {
    SetAttributes(request);
    if (directory != AT_FDCWD) Check(::posix_spawn_file_actions_addfchdir_np(&actions_, directory));
    absl::Status status = MapStandard(request);
    if (status.ok()) status = PassAndClose(request);
    if (status.ok() && error_ != 0) status = ErrnoStatus(-error_, "prepare a process");
    return status;
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void Check(int error) {
    if (error_ == 0) error_ = error;
  }

  void SetAttributes(const SpawnRequest& request) {
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | internal::kSpawnFlags;
    sigset_t signals;
    sigemptyset(&signals);
    Check(::posix_spawnattr_setsigmask(&attributes_, &signals));

    internal::FillSignals(&signals);
    if (request.restore_signals) {
      // What is handled becomes the default by itself. What is ignored stays ignored
      // where that is how nohup(1) and shells without job control speak to programs.
      for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) {
        sigdelset(&signals, signal);
      }
    } else {
      for (int signal = 1; signal < NSIG; ++signal) sigdelset(&signals, signal);
    }
    Check(::posix_spawnattr_setsigdefault(&attributes_, &signals));
    if (request.new_session) flags |= POSIX_SPAWN_SETSID;
    if (request.process_group.has_value()) {
      flags |= POSIX_SPAWN_SETPGROUP;
      Check(::posix_spawnattr_setpgroup(&attributes_, static_cast<pid_t>(*request.process_group)));
    }
    Check(::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)));
  }

  absl::Status MapStandard(const SpawnRequest& request) {
    using Kind = SpawnRequest::Standard::Kind;
    for (int target = 0; target < 3; ++target) {
      const SpawnRequest::Standard& standard = request.standard[target];
      const int source = standard.handle >= 0 ? static_cast<int>(standard.handle) : target;
      const int flags = standard.kind == Kind::kNull ? -1 : ::fcntl(source, F_GETFD);
      if (standard.kind == Kind::kHandle && flags < 0) {
        return ErrnoStatus(-errno, absl::StrCat("pass descriptor ", source));
      }
      // Where a standard stream of ours is closed, its number may be that of anything:
      // of the loop's epoll, say. Nor is it left for the child to open something else.
      const bool is_missing =
          standard.kind == Kind::kInherit && (flags < 0 || (flags & FD_CLOEXEC));
      if (standard.kind == Kind::kNull || is_missing) {
        Check(::posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0));
        continue;
      }
      int usable = source;
      if (source != target && source <= 2) {
        // The child may have replaced it by the time it is asked for.
        UniqueFd copy(::fcntl(source, F_DUPFD_CLOEXEC, 3));
        if (copy.get() < 0) return ErrnoStatus(-errno, absl::StrCat("pass descriptor ", source));
        usable = copy.get();
        copies_.push_back(std::move(copy));
      }
      Check(usable == target ? internal::AddKeep(&actions_, target)
                             : ::posix_spawn_file_actions_adddup2(&actions_, usable, target));
    }
    return absl::OkStatus();
  }

  absl::Status PassAndClose(const SpawnRequest& request) {
    std::vector<int> passed(request.pass_descriptors.begin(), request.pass_descriptors.end());
    std::sort(passed.begin(), passed.end());
    for (const int fd : passed) {
      if (::fcntl(fd, F_GETFD) < 0)
        return ErrnoStatus(-errno, absl::StrCat("pass descriptor ", fd));
      Check(internal::AddKeep(&actions_, fd));
    }
    Check(internal::AddCloseOthers(&actions_, passed));
    return absl::OkStatus();
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<UniqueFd> copies_;
  int error_ = 0;
};

class PosixSpawner final : public Spawner {
 public:
  absl::StatusOr<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnRequest& request,
                                               ExitCallback on_exit) override {
    absl::Status works = internal::ProbeExitDescriptor();
    if (!works.ok()) return works;

    UniqueFd opened;
    if (!request.directory.empty()) {
      const auto error = [&request](int number) {
        return ErrnoStatus(-number,
                           absl::StrCat("change to directory \"", request.directory, "\""));
      };
      opened = UniqueFd(
          ::open(request.directory.c_str(), internal::kOpenForName | O_DIRECTORY | O_CLOEXEC));
      if (opened.get() < 0) return error(errno);
      if (::faccessat(opened.get(), ".", X_OK, AT_EACCESS) != 0) return error(errno);
    }
    const int directory = opened.get() < 0 ? AT_FDCWD : opened.get();
    absl::StatusOr<std::string> file = FindProgram(request, directory);
    if (!file.ok()) return file.status();
    Preparation preparation;
    absl::Status prepared = preparation.Prepare(request, directory);
    if (!prepared.ok()) return prepared;

    // Makes sure that there will be a descriptor to tell of the end: to find out afterwards
    // that there is none would be to have run the program in vain.
    UniqueFd reserve(::open("/", internal::kOpenForName | O_CLOEXEC));
    if (reserve.get() < 0) return ErrnoStatus(-errno, absl::StrCat("start \"", *file, "\""));

    const std::vector<char*> argv = Pointers(request.argv);
    std::vector<char*> environment;
    if (request.environment.has_value()) environment = Pointers(*request.environment);
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, file->c_str(), preparation.actions(), preparation.attributes(),
                      argv.data(), request.environment.has_value() ? environment.data() : environ);
    if (error != 0) return StartError(error, *file, directory);

    reserve.Reset();
    const int descriptor = internal::OpenExitDescriptor(pid);
    if (descriptor < 0) {
      // It is our child, and not reaped, so the number is its own.
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
      return ErrnoStatus(descriptor, absl::StrCat("start \"", *file, "\": watch it"));
    }
    const int64_t group =
        request.process_group.value_or(0) == 0 ? int64_t{pid} : *request.process_group;
    auto child = std::make_unique<SystemChild>(loop, pid, descriptor, group, std::move(on_exit));
    absl::Status begun = child->Begin();
    if (!begun.ok()) return begun;  // Which kills it.
    return child;
  }

 private:
  static absl::Status StartError(int error, const std::string& file, int directory) {
    std::string what = absl::StrCat("start \"", file, "\"");
    // execve(2) says ENOENT also if there is no interpreter for a script.
    if (error == ENOENT && ::faccessat(directory, file.c_str(), F_OK, 0) == 0) {
      absl::StrAppend(&what, ", which names an interpreter that is not there");
    }
    return ErrnoStatus(-error, what);
  }
};

}  // namespace

Spawner* SystemSpawner() {
  static PosixSpawner spawner;
  return &spawner;
}

}  // namespace weft
