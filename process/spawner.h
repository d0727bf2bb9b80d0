// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_SPAWNER_H_
#define WEFT_PROCESS_SPAWNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/poller/native_handle.h"

namespace weft {

class EventLoop;

// What a child process is started with, when all has been decided.
struct SpawnRequest {
  SpawnRequest() {}

  // One of the descriptors 0, 1 and 2 of the child.
  struct Standard {
    enum class Kind { kInherit, kNull, kHandle };
    Kind kind = Kind::kInherit;
    // Of this process; stays open here. kInherit: which of 0 to 2, if not that of the
    // same number.
    NativeHandle handle = kInvalidHandle;
  };

  std::string program;            // Looked up in PATH unless it has a slash.
  std::vector<std::string> argv;  // Not empty.
  // Windows, where a program gets one string: the words behind the first as they are, and
  // not quoted so that it takes them apart again.
  bool is_verbatim = false;
  Standard standard[3];
  std::vector<NativeHandle> pass_descriptors;  // By their numbers here; 3 or higher.

  std::optional<std::vector<std::string>> environment;  // "NAME=value"; none: that of here.
  std::string directory;                                // Empty: that of here.
  bool new_session = false;
  std::optional<int64_t> process_group;  // 0: one of its own.
  bool restore_signals = true;
};

// Child
//
// A process that was started, as long as somebody has to wait for its end. Destroyed
// before that, it kills the process and waits until it is gone, unless that was
// detached; nobody is told.
//
// Threads: belongs to the loop's thread.
class Child {
 public:
  virtual ~Child() = default;

  virtual int64_t pid() const = 0;

  // Sends a signal to the process, or to its group, and never to another that has
  // got its number since. Errors: NOT_FOUND if it is gone; the kernel's.
  virtual absl::Status SendSignal(int signal, bool to_group) = 0;

  // From now on it may outlive us. Virtual time no longer waits for it.
  virtual void Detach() = 0;
};

// Spawner
//
// Starts processes. `Environment::spawner` replaces the system's, so that a test plays
// them: it need have no more than a pid and a moment at which it calls `on_exit`.
//
// Threads: Spawn() is called on the loop's thread.
class Spawner {
 public:
  virtual ~Spawner() = default;

  // Called once, in a round of the loop, when the process has ended; it may destroy
  // the child. `returncode` is what Process::returncode() gives.
  using ExitCallback = absl::AnyInvocable<void(int returncode)>;

  // Errors: the kernel's, with the name of what it is about: the program, or the
  // directory. Nothing is left behind then.
  virtual absl::StatusOr<std::unique_ptr<Child>> Spawn(EventLoop& loop, const SpawnRequest& request,
                                                       ExitCallback on_exit) = 0;
};

// SIGKILL, which has this number on every POSIX, and no name on Windows.
inline constexpr int kKillSignal = 9;

// The operating system's. Lives as long as the program.
Spawner* SystemSpawner();

}  // namespace weft

#endif  // WEFT_PROCESS_SPAWNER_H_
