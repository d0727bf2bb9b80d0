// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares weft with CPython on random programs, as many as you like:
//
//   tools/bazel run -c opt //testing/oracle:fuzz -- --programs=20000 --seed=1
//
// Program number i has seed + i as its seed, and a size from 1 to 5. Each is
// played in a process of its own, so that one that crashes or hangs is found like
// one whose trace differs. Stops at the first and prints the smallest program
// found that still diverges.
//
// Exit code 0: no divergence. 1: there is one. 2: it could not run.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/testing/oracle/oracle.h"
#include "weft/testing/oracle/play.h"
#include "weft/testing/oracle/program.h"
#include "weft/testing/oracle/shrink.h"

namespace weft::oracle {
namespace {

constexpr int kPatienceSeconds = 20;

// The trace of `text` under weft, or a line that says how the player failed.
std::string PlayInChild(const std::string& text) {
  absl::StatusOr<Program> program = ParseProgram(text);
  if (!program.ok()) return absl::StrCat("(does not parse: ", program.status().message(), ")\n");
  int ends[2];
  if (pipe(ends) != 0) return "(no pipe)\n";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(kPatienceSeconds);
    const std::string trace = Play(*program);
    size_t written = 0;
    while (written < trace.size()) {
      const ssize_t count = write(ends[1], trace.data() + written, trace.size() - written);
      if (count <= 0) break;
      written += static_cast<size_t>(count);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string trace;
  char chunk[65536];
  for (ssize_t count; (count = read(ends[0], chunk, sizeof(chunk))) > 0;) {
    trace.append(chunk, static_cast<size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "(hangs)\n"
                                       : absl::StrCat("(signal ", WTERMSIG(status), ")\n");
  }
  return status == 0 ? trace : "(fails)\n";
}

bool Diverges(const Oracle::Answer& answer, const std::string& trace) {
  // Where CPython has no answer weft may give any, but has to give one.
  if (!answer.is_valid) return trace.empty() || trace.front() == '(';
  return answer.trace != trace;
}

void Report(Oracle& oracle, const Oracle::Answer& found, int64_t seed) {
  std::printf("seed %lld, size %d diverges; looking for a smaller program\n",
              static_cast<long long>(seed), MixedSize(seed));
  std::fflush(stdout);
  const std::string smallest = Shrink(found.program, [&](const std::string& text) {
    oracle.AskTrace(text);
    absl::StatusOr<Oracle::Answer> answer = oracle.Read();
    return answer.ok() && answer->is_valid == found.is_valid &&
           Diverges(*answer, PlayInChild(text));
  });
  oracle.AskTrace(smallest);
  absl::StatusOr<Oracle::Answer> answer = oracle.Read();
  const std::string trace = PlayInChild(smallest);
  std::printf("%s\n-- CPython\n%s\n-- weft\n%s\n", smallest.c_str(),
              answer.ok() ? answer->trace.c_str() : "(stopped)", trace.c_str());
  if (answer.ok()) std::printf("%s", DescribeDifference(answer->trace, trace).c_str());
}

int Fuzz(int64_t first, int64_t count) {
  absl::StatusOr<std::unique_ptr<Oracle>> started = Oracle::Start();
  if (!started.ok()) {
    std::fprintf(stderr, "fuzz: %s\n", std::string(started.status().message()).c_str());
    return 2;
  }
  Oracle& oracle = **started;
  int64_t invalid = 0;
  auto last_word = std::chrono::steady_clock::now();
  oracle.AskRandom(first, MixedSize(first));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t seed = first + i;
    absl::StatusOr<Oracle::Answer> answer = oracle.Read();
    if (!answer.ok()) {
      std::fprintf(stderr, "fuzz: seed %lld: %s\n", static_cast<long long>(seed),
                   std::string(answer.status().message()).c_str());
      return 2;
    }
    // CPython works on the next one while weft plays this one.
    const bool is_last = i + 1 == count;
    if (!is_last) oracle.AskRandom(seed + 1, MixedSize(seed + 1));
    if (!answer->is_valid) ++invalid;
    if (Diverges(*answer, PlayInChild(answer->program))) {
      if (!is_last) (void)oracle.Read();
      Report(oracle, *answer, seed);
      return 1;
    }
    const auto now = std::chrono::steady_clock::now();
    if (is_last || now - last_word > std::chrono::seconds(2)) {
      last_word = now;
      std::printf("%lld of %lld programs equal (%lld to which CPython has no answer)\n",
                  static_cast<long long>(i + 1 - invalid), static_cast<long long>(count),
                  static_cast<long long>(invalid));
      std::fflush(stdout);
    }
  }
  return 0;
}

int Main(int argc, char** argv) {
  int64_t programs = 1000;
  int64_t seed = 1;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    int64_t* number = absl::ConsumePrefix(&argument, "--programs=") ? &programs
                      : absl::ConsumePrefix(&argument, "--seed=")   ? &seed
                                                                    : nullptr;
    if (number == nullptr || !absl::SimpleAtoi(argument, number) || *number < 0) {
      std::fprintf(stderr, "fuzz: cannot use %s\nusage: fuzz [--programs=N] [--seed=N]\n", argv[i]);
      return 2;
    }
  }
  return programs == 0 ? 0 : Fuzz(seed, programs);
}

}  // namespace
}  // namespace weft::oracle

int main(int argc, char** argv) { return weft::oracle::Main(argc, argv); }
