// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// How long starting a process holds up the loop, and what a whole one costs. With so
// many MiB of memory in use, which fork(2) would have to make page tables for.
//
//   bazel run -c opt //process:process_benchmark

#include <sys/wait.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "weft/core/clock.h"
#include "weft/loop/run.h"
#include "weft/process/process.h"

namespace weft {
namespace {

std::vector<char> Ballast(const benchmark::State& state) {
  return std::vector<char>(static_cast<size_t>(state.range(0)) << 20, 'x');
}

Coro<void> StartMany(benchmark::State* state) {
  ProcessOptions options;
  options.std_in = Stdio::kDevNull;
  for (auto _ : *state) {
    const TimePoint begin = SteadyClock::Read();
    absl::StatusOr<Process> process = co_await CreateSubprocessExec(Argv("/bin/true"), options);
    state->SetIterationTime(absl::ToDoubleSeconds(SteadyClock::Read() - begin));
    benchmark::DoNotOptimize(co_await process->Wait());
  }
}

// Until CreateSubprocessExec() returns.
void BM_Start(benchmark::State& state) {
  std::vector<char> ballast = Ballast(state);
  benchmark::DoNotOptimize(ballast.data());
  Run(StartMany(&state));
}
BENCHMARK(BM_Start)->ArgName("MiB")->Arg(1)->Arg(1024)->UseManualTime();

// What was refused.
void BM_ForkAndExec(benchmark::State& state) {
  std::vector<char> ballast = Ballast(state);
  benchmark::DoNotOptimize(ballast.data());
  for (auto _ : state) {
    const TimePoint begin = SteadyClock::Read();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::execl("/bin/true", "true", nullptr);
      ::_exit(127);
    }
    state.SetIterationTime(absl::ToDoubleSeconds(SteadyClock::Read() - begin));
    ::waitpid(pid, nullptr, 0);
  }
}
BENCHMARK(BM_ForkAndExec)->ArgName("MiB")->Arg(1)->Arg(1024)->UseManualTime();

Coro<void> RunMany(benchmark::State* state) {
  ProcessOptions options;
  options.std_in = Stdio::kPipe;
  options.std_out = Stdio::kPipe;
  for (auto _ : *state) {
    absl::StatusOr<Process> process = co_await CreateSubprocessExec(Argv("/bin/cat"), options);
    absl::StatusOr<ProcessOutput> output = co_await process->Communicate("hello");
    benchmark::DoNotOptimize(output->std_out.size());
  }
}

// From the start to the end, with a word in and out by pipes.
void BM_Communicate(benchmark::State& state) { Run(RunMany(&state)); }
BENCHMARK(BM_Communicate)->UseRealTime();

}  // namespace
}  // namespace weft
