// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A shell's pipeline by hand: the standard input goes through one command after the
// other, and what is left to the standard output. Afterwards it says how each ended, and
// how much passed by.
//
//   ls | tools/bazel run //examples:subprocess_pipeline -- "tr a-z A-Z" "sort -r" "head -3"
//
// All stages run at the same time. None is held up by another but by way of its pipe,
// and a stage that has seen enough ends those before it, as in a shell.

#include <cerrno>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/net/errno_status.h"
#include "weft/net/pipe.h"
#include "weft/process/process.h"

namespace {

using weft::Coro;

constexpr int kKill = 9;  // SIGKILL, for which not every system has a name.

struct Pumped {
  Pumped() {}

  int64_t bytes = 0;
  absl::Status status;
};

// Copies to the end, or until nobody wants it any more. Both streams go with it, which is
// how the stages on both sides learn of that.
Coro<Pumped> Pump(weft::StreamReader from, weft::StreamWriter to) {
  Pumped pumped;
  while (pumped.status.ok()) {
    absl::StatusOr<absl::Span<const char>> data = co_await from.Fill();
    pumped.status = data.status();
    if (!data.ok() || data->empty()) break;
    to.Write(std::string_view(data->data(), data->size()));
    pumped.bytes += static_cast<int64_t>(data->size());
    from.Consume(data->size());
    // Here a fast stage waits for a slow one.
    pumped.status = co_await to.Drain();
  }
  // Else the program might end before the last of it is out.
  to.Close();
  absl::Status closed = co_await to.WaitClosed();
  pumped.status.Update(closed);
  // Who has seen enough is no error.
  if (weft::ErrnoOf(pumped.status) == EPIPE) pumped.status = absl::OkStatus();
  co_return pumped;
}

// With `as_groups` what the commands have started is killed with them.
Coro<int> Pipeline(const weft::Flags& flags, std::vector<std::string> commands, bool as_groups) {
  absl::StatusOr<weft::StreamReader> input = co_await weft::OpenStandardInput();
  if (!input.ok()) co_return flags.Fail(input.status().message());
  absl::StatusOr<weft::StreamWriter> output = co_await weft::OpenStandardOutput();
  if (!output.ok()) co_return flags.Fail(output.status().message());

  weft::ProcessOptions options;
  options.std_in = weft::Stdio::kPipe;
  options.std_out = weft::Stdio::kPipe;
  if (as_groups) options.process_group = 0;
  std::vector<weft::Process> stages;
  const absl::Cleanup kill_groups = [&stages, as_groups] {
    for (weft::Process& stage : stages) {
      if (as_groups && !stage.returncode()) stage.SendSignalToGroup(kKill).IgnoreError();
    }
  };
  for (const std::string& command : commands) {
    absl::StatusOr<weft::Process> stage = co_await weft::CreateSubprocessShell(command, options);
    if (!stage.ok()) co_return flags.Fail(stage.status().message());
    stages.push_back(*std::move(stage));
  }

  // One pump in front of each stage, and one behind the last.
  std::vector<Coro<Pumped>> pumps;
  weft::StreamReader from = *std::move(input);
  for (weft::Process& stage : stages) {
    pumps.push_back(Pump(std::move(from), std::move(stage.std_in())));
    from = std::move(stage.std_out());
  }
  pumps.push_back(Pump(std::move(from), *std::move(output)));
  std::vector<Pumped> pumped = co_await weft::Gather(std::move(pumps));

  int last = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    last = co_await stages[i].Wait();
    std::cerr << commands[i] << ": " << pumped[i].bytes << " bytes in, " << pumped[i + 1].bytes
              << " bytes out, exit code " << last << "\n";
  }
  int failed = 0;
  for (const Pumped& one : pumped) {
    if (!one.status.ok()) failed = flags.Fail(one.status.message(), 1);
  }
  if (failed != 0) co_return failed;
  co_return last < 0 ? 128 - last : last;  // As shells have it.
}

// Those that are left when the time is over are killed: a process that nobody holds any more
// is, and as each has a group, as with timeout(1), so is what its shell has started. Without
// a limit they stay in ours, where they have the terminal, and hear its Ctrl-C.
Coro<int> Main(const weft::Flags& flags, std::vector<std::string> commands,
               absl::Duration timeout) {
  Coro<int> pipeline =
      Pipeline(flags, std::move(commands), /*as_groups=*/timeout != absl::InfiniteDuration());
  auto ended = co_await weft::NoThrow(weft::WithTimeout(timeout, std::move(pipeline)));
  if (ended.has_value()) co_return *std::move(ended);
  if (ended.cancelled()) co_return std::move(ended).value();  // Throws: Ctrl-C.
  std::cerr << "out of time\n";
  co_return 124;  // As timeout(1).
}

}  // namespace

int main(int argc, char** argv) {
  std::string poller;
  int timeout = 0;
  weft::Flags flags("subprocess_pipeline [COMMAND...]");
  flags.Add("timeout", &timeout, 0, 3'600'000, "ms until all is killed; 0 for none");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  std::vector<std::string> commands = flags.Parse(argc, argv);
  if (commands.empty()) commands = {"tr a-z A-Z", "sort"};

  const absl::Duration patience =
      timeout == 0 ? absl::InfiniteDuration() : absl::Milliseconds(timeout);
  return weft::RunOn(poller, Main(flags, std::move(commands), patience), flags);
}
