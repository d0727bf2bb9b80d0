// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_PROCESS_PROCESS_STATE_H_
#define WEFT_PROCESS_PROCESS_STATE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/core/coro.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/loop/loop_owned.h"
#include "weft/net/connection.h"
#include "weft/process/spawner.h"
#include "weft/sync/waiter_list.h"

namespace weft {

class Process;
struct ProcessOptions;
struct ProcessOutput;

namespace internal {

// What a `Process` refers to, and those who wait for it.
//
//            Spawn()            exit, or Close() of the loop
//   (new) ------------> running -----------------------------> ended
//
// While it runs it counts as a reference to itself: its end has to be asked for,
// though nobody may want to know.
//
// Threads: belongs to the loop's thread; the count is not atomic.
class ProcessState final : private LoopOwned {
 public:
  // Starts a program in the running loop. `is_verbatim`: see SpawnRequest. Errors: see
  // CreateSubprocessExec().
  static absl::StatusOr<IntrusivePtr<ProcessState>> Start(std::vector<std::string> argv,
                                                          bool is_verbatim,
                                                          const ProcessOptions& options);

  void AddRef() { ++refs_; }
  void Release() {
    if (--refs_ == 0) delete this;
  }

  int64_t pid() const { return pid_; }
  std::optional<int> returncode() const { return returncode_; }
  WaiterList& waiters() { return waiters_; }

  StreamWriter& std_in() { return std_in_; }
  StreamReader& std_out() { return readers_[0]; }
  StreamReader& std_err() { return readers_[1]; }

  absl::Status SendSignal(int signal, bool to_group);
  void Detach();
  // Nobody holds the process any more: it is killed, and its pipes are closed.
  void Drop();

 private:
  struct Pipes;

  ProcessState() = default;
  ~ProcessState() override = default;

  void OnExit(int returncode);
  void OnLoopClose() override;

  uint32_t refs_ = 0;
  int64_t pid_ = 0;
  bool has_group_ = false;
  bool is_detached_ = false;
  std::unique_ptr<Child> child_;  // While it runs.
  std::optional<int> returncode_;
  WaiterList waiters_;
  StreamWriter std_in_;
  StreamReader readers_[2];
};

// What has the system's shell, or `shell` unless that is empty, run `command`: the words
// of a verbatim request.
std::vector<std::string> ShellArgv(const std::string& shell, const std::string& command);

Coro<absl::StatusOr<ProcessOutput>> Communicate(IntrusivePtr<ProcessState> process,
                                                std::string input);

}  // namespace internal
}  // namespace weft

#endif  // WEFT_PROCESS_PROCESS_STATE_H_
