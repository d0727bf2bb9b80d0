// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The server that `pollers.py` measures: it echoes, and answers on a port of its own
// what that has cost. Prints both ports and how it was built, and serves until its
// standard input ends.
//
//   pollers_server --poller=NAME --cpu=N --other-cpu=N [--syscall-event=ID]

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weft/core/clock.h"
#include "weft/core/errors.h"
#include "weft/loop/run.h"
#include "weft/loop/to_thread.h"
#include "weft/net/pipe.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"

namespace weft {
namespace {

#ifdef NDEBUG
constexpr char kBuild[] = "opt";
#else
constexpr char kBuild[] = "debug";
#endif

struct Flags {
  std::string poller;
  int cpu = -1;        // The loop's.
  int other_cpu = -1;  // Of the thread that wakes it.
  int64_t syscall_event = -1;
};

// Counts this thread's system calls, in the kernel: whoever makes them, and without
// making them slower. -1 if that is not allowed.
int OpenSyscallCounter(int64_t event) {
  if (event < 0) return -1;
  perf_event_attr attributes = {};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof(attributes);
  attributes.config = static_cast<uint64_t>(event);
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

void PinTo(int cpu) {
  if (cpu < 0) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

int64_t CpuNanoseconds() {
  timespec time;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

int64_t ResidentBytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return int64_t{pages} * ::sysconf(_SC_PAGESIZE);
}

Coro<void> Echo(StreamReader reader, StreamWriter writer) {
  while (true) {
    absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill();
    if (!unread.ok() || unread->empty()) co_return;
    writer.Write(std::string_view(unread->data(), unread->size()));
    reader.Consume(unread->size());
    absl::Status sent = co_await writer.Drain();
    if (!sent.ok()) co_return;
  }
}

// How long it takes from a post of another thread, which sleeps as long as the loop
// needs to fall asleep, until the loop runs it: the median in nanoseconds.
int64_t MedianWake(const LoopRef& loop, int count) {
  std::vector<int64_t> took(static_cast<size_t>(count), 0);
  std::atomic<int> done = 0;
  for (int64_t& each : took) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    const TimePoint begin = SteadyClock::Read();
    const int before = done.load();
    loop.Post([&each, &done, begin] {
      each = (SteadyClock::Read() - begin) / absl::Nanoseconds(1);
      done.fetch_add(1);
    });
    while (done.load() == before) {
    }
  }
  std::nth_element(took.begin(), took.begin() + count / 2, took.end());
  return took[static_cast<size_t>(count / 2)];
}

// "stats" -> "CPU_NS SYSCALLS RESIDENT_BYTES"; "wake N" -> "NS".
class Control {
 public:
  explicit Control(const Flags& flags)
      : counter_(OpenSyscallCounter(flags.syscall_event)), other_cpu_(flags.other_cpu) {}

  Coro<void> Serve(StreamReader reader, StreamWriter writer) {
    while (true) {
      absl::StatusOr<std::string> line = co_await reader.ReadLine();
      if (!line.ok() || line->empty()) co_return;
      std::string_view rest = *line;
      int count = 0;
      if (absl::ConsumePrefix(&rest, "wake ") && absl::SimpleAtoi(rest, &count) && count > 0) {
        const auto measure = [ref = GetRunningLoop().Ref(), cpu = other_cpu_, count] {
          PinTo(cpu);
          return MedianWake(ref, count);
        };
        const int64_t nanoseconds = co_await ToThread(measure);
        writer.Write(absl::StrCat(nanoseconds, "\n"));
      } else {
        writer.Write(absl::StrCat(CpuNanoseconds(), " ", Syscalls(), " ", ResidentBytes(), "\n"));
      }
    }
  }

 private:
  int64_t Syscalls() const {
    int64_t count = -1;
    if (counter_ < 0 || ::read(counter_, &count, sizeof(count)) != sizeof(count)) return -1;
    return count;
  }

  const int counter_;
  const int other_cpu_;
};

Coro<int> Main(const Flags& flags) {
  Control control(flags);
  ServerOptions options;
  options.backlog = 4096;
  absl::StatusOr<Server> echo = co_await StartServer(Echo, "127.0.0.1", 0, options);
  const auto serve = [&control](StreamReader reader, StreamWriter writer) {
    return control.Serve(std::move(reader), std::move(writer));
  };
  absl::StatusOr<Server> asked = co_await StartServer(serve, "127.0.0.1", 0);
  if (!echo.ok() || !asked.ok()) {
    std::cerr << echo.status() << "; " << asked.status() << "\n";
    co_return 1;
  }
  std::cout << echo->port() << " " << asked->port() << " " << kBuild << std::endl;
  absl::StatusOr<StreamReader> input = co_await OpenStandardInput();
  if (input.ok()) {
    absl::StatusOr<std::string> end = co_await input->Read(1);
  }
  std::_Exit(0);  // Ten thousand connections need no orderly end.
}

bool Parse(std::string_view argument, Flags* flags) {
  if (absl::ConsumePrefix(&argument, "--poller=")) {
    flags->poller = std::string(argument);
    return true;
  }
  if (absl::ConsumePrefix(&argument, "--cpu=")) return absl::SimpleAtoi(argument, &flags->cpu);
  if (absl::ConsumePrefix(&argument, "--other-cpu=")) {
    return absl::SimpleAtoi(argument, &flags->other_cpu);
  }
  if (absl::ConsumePrefix(&argument, "--syscall-event=")) {
    return absl::SimpleAtoi(argument, &flags->syscall_event);
  }
  return false;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (weft::Parse(argv[i], &flags)) continue;
    std::cerr << "pollers_server: what is '" << argv[i] << "'?\n";
    return 2;
  }
  weft::PinTo(flags.cpu);
  weft::RunOptions options;
  options.poller = flags.poller;
  try {
    return weft::Run(weft::Main(flags), options);
  } catch (const weft::ValueError& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
