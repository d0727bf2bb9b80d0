// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Does a server stay as it was, whatever its clients do, and for how long they do it?
//
//   tools/bazel run -c opt //bench:soak                            10,000 connections, 5 minutes
//   tools/bazel run -c opt //bench:soak -- --minutes=600 --connections=2000
//
// Two processes, a server that echoes and its clients, as each end of a connection is a
// descriptor. Half of the clients are idle nearly all of the time. The others send and
// read, give up in the middle, close one direction, leave without reading, and reset; and
// come again. At the end no descriptor, no task and no buffer may be left in either
// process, what was echoed is what was sent, and the memory has not grown: it is sampled each
// second, and its slope after the first third of the time is what counts. The exit code is 1
// if any of that is not so.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/process/process.h"

namespace {

using weft::Coro;

struct Settings {
  int minutes = 5;
  int seconds = 0;
  int connections = 10'000;
  int rate = 5000;
  int max_growth = 4096;
  uint16_t server_port = 0;  // Of the clients' process; 0 in the server's.
  std::string poller;

  absl::Duration time() const { return absl::Minutes(minutes) + absl::Seconds(seconds); }
};

int64_t CountDescriptors() {
  // The one that lists them is counted before and after.
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

int64_t ResidentKib() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

// What a process had when it began and has at its end, and how its memory went meanwhile.
class Accounts {
 public:
  Accounts() : descriptors_(CountDescriptors()) {}

  // Samples, until it is cancelled.
  Coro<> Watch() {
    while (true) {
      samples_.push_back(ResidentKib());
      co_await weft::Sleep(absl::Seconds(1));
    }
  }

  // Prints how it was, behind `what`; whether all is well.
  bool Balance(std::string_view what, int max_growth) const {
    weft::EventLoop& loop = weft::GetRunningLoop();
    const int64_t descriptors = CountDescriptors() - descriptors_;
    const size_t tasks = weft::AllTasks().size() - 1;  // The one that asks.
    const size_t buffers = loop.slab_pool().outstanding_count();
    const size_t begin = samples_.size() / 3;
    const double slope = Slope(begin);
    const double growth = slope * static_cast<double>(samples_.size() - begin);
    // A sanitizer keeps what has been freed.
    const bool has_sanitizer =
        std::getenv("ASAN_OPTIONS") != nullptr || std::getenv("TSAN_OPTIONS") != nullptr;
    const bool is_flat = growth <= max_growth || has_sanitizer;
    std::cout << absl::StrFormat(
                     "%s; resident %.1f MiB, %+.1f KiB a minute, %+.0f KiB in all%s; "
                     "left: %d descriptors, %d tasks, %d buffers",
                     what, static_cast<double>(samples_.empty() ? 0 : samples_.back()) / 1024,
                     slope * 60, growth, is_flat ? "" : absl::StrCat(", MORE THAN ", max_growth),
                     descriptors, tasks, buffers)
              << std::endl;
    return is_flat && descriptors == 0 && tasks == 0 && buffers == 0;
  }

 private:
  // KiB a second, by least squares, from sample `begin` on.
  double Slope(size_t begin) const {
    const auto count = static_cast<double>(samples_.size() - begin);
    double mean = 0, covariance = 0, variance = 0;
    for (size_t i = begin; i < samples_.size(); ++i) {
      mean += static_cast<double>(samples_[i]) / count;
    }
    for (size_t i = begin; i < samples_.size(); ++i) {
      const double x = static_cast<double>(i - begin) - (count - 1) / 2;
      covariance += x * (static_cast<double>(samples_[i]) - mean);
      variance += x * x;
    }
    return variance > 0 ? covariance / variance : 0;
  }

  const int64_t descriptors_;
  std::vector<int64_t> samples_;
};

// -- The clients

class Clients {
 public:
  explicit Clients(const Settings& settings) : settings_(settings) {
    const double busy = std::max(1, settings.connections / 2);
    pause_ = absl::Seconds(busy / settings.rate);
  }

  Coro<bool> Run() {
    std::vector<weft::Task<>> tasks;
    for (int i = 0; i < settings_.connections; ++i) {
      tasks.push_back(weft::CreateTask(i % 2 == 0 ? StayIdle() : KeepBusy()));
    }
    co_await weft::Sleep(settings_.time());
    for (weft::Task<>& task : tasks) task.Cancel();
    for (weft::Task<>& task : tasks) {
      weft::Outcome<void> ended = co_await weft::NoThrow(task);
      if (ended.cancelled()) continue;
      Fail("a task has ended by itself");
    }
    co_await weft::Sleep(absl::Milliseconds(100));  // For what is being closed.
    co_return failures_ == 0;
  }

  std::string Summary() const {
    return absl::StrCat("clients: ", connections_, " connections, ", resets_, " resets, ",
                        half_closes_, " half-closes, ", bytes_ / 1'000'000, " MB echoed, ",
                        failures_, " failures");
  }

 private:
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  absl::Duration Random(absl::Duration most) { return most * (Below(1001) / 1000.0); }

  void Fail(std::string_view what) {
    if (++failures_ <= 10) std::cerr << "FAILED: " << what << std::endl;
  }

  // All over the loopback's network, as ports that were closed here first are not to be
  // had for a minute.
  Coro<absl::StatusOr<weft::Connection>> Connect() {
    const weft::SocketAddress address = weft::SocketAddress::Ipv4(
        {127, 0, 0, static_cast<uint8_t>(1 + Below(200))}, settings_.server_port);
    absl::StatusOr<weft::Connection> connection = co_await weft::OpenConnection(address);
    if (connection.ok()) {
      ++connections_;
    } else {
      Fail(connection.status().message());
      co_await weft::Sleep(absl::Seconds(1));
    }
    co_return connection;
  }

  Coro<> Begin() {
    co_await weft::Sleep(Random(std::min(absl::Seconds(5), settings_.time() / 10)));
  }

  Coro<> StayIdle() {
    co_await Begin();
    while (true) {
      absl::StatusOr<weft::Connection> connection = co_await Connect();
      if (!connection.ok()) continue;
      co_await Exchange(*connection, 1 + Below(100));
      // It ends when nothing has come for long enough. It is long, and ends by a reset or
      // a close.
      bool is_over = false;
      try {
        absl::StatusOr<absl::Span<const char>> unread =
            co_await weft::WithTimeout(Random(settings_.time()), connection->reader.Fill());
        Fail(unread.ok() ? "something came from nowhere" : unread.status().message());
      } catch (const weft::TimeoutError&) {
        is_over = true;
      }
      if (is_over && Below(2) == 0) Reset(*connection);
    }
  }

  Coro<> KeepBusy() {
    co_await Begin();
    while (true) {
      absl::StatusOr<weft::Connection> connection = co_await Connect();
      if (connection.ok()) co_await Visit(*connection);
    }
  }

  // Until it has had enough. However it leaves, `connection` closes.
  Coro<> Visit(weft::Connection& connection) {
    for (uint32_t left = 1 + Below(20); left > 0; --left) {
      const uint32_t size = 1 + Below(Below(50) == 0 ? 200'000 : 2000);
      switch (Below(25)) {
        case 0:  // In the middle.
          connection.writer.Write(Text(size));
          if (Below(2) == 0) co_await weft::Yield();
          co_return Reset(connection);
        case 1:  // Without reading, which is a reset too if something has come.
          connection.writer.Write(Text(size));
          co_await weft::Sleep(Random(absl::Milliseconds(5)));
          co_return;
        case 2:
          co_return co_await HalfClose(connection, size);
        case 3: {  // A read that is given up takes nothing.
          connection.writer.Write(Text(size));
          weft::Outcome<absl::StatusOr<absl::Span<const char>>> given_up = co_await weft::NoThrow(
              weft::WithTimeout(Random(absl::Milliseconds(1)), connection.reader.Fill(size + 1)));
          if (given_up.cancelled()) given_up.value();
          co_await Expect(connection, size);
          break;
        }
        default:
          co_await Exchange(connection, size);
      }
      co_await weft::Sleep(Random(2 * pause_));
    }
  }

  Coro<> Exchange(weft::Connection& connection, uint32_t size) {
    connection.writer.Write(Text(size));
    co_await Expect(connection, size);
  }

  Coro<> Expect(weft::Connection& connection, uint32_t size) {
    absl::StatusOr<std::string> got = co_await connection.reader.ReadExactly(size);
    if (!got.ok()) {
      Fail(got.status().message());
    } else if (*got != Text(size)) {
      Fail("it is not what was sent");
    }
    bytes_ += size;
  }

  Coro<> HalfClose(weft::Connection& connection, uint32_t size) {
    ++half_closes_;
    connection.writer.Write(Text(size));
    connection.writer.WriteEof();
    absl::StatusOr<std::string> got = co_await connection.reader.Read();
    if (!got.ok()) {
      Fail(got.status().message());
    } else if (*got != Text(size)) {
      Fail("it is not what was sent before the end");
    }
    bytes_ += size;
  }

  void Reset(weft::Connection& connection) {
    ++resets_;
    connection.writer.socket().SetOption(weft::SocketOption::kLinger, 0).IgnoreError();
    connection.writer.Abort();
  }

  // So many bytes, which tell where they stand.
  static std::string_view Text(uint32_t size) {
    static const std::string& text = *[] {
      auto* all = new std::string;
      for (int i = 0; all->size() < 210'000; ++i) absl::StrAppend(all, i, " ");
      return all;
    }();
    return std::string_view(text).substr(size % 1000, size);
  }

  const Settings& settings_;
  absl::Duration pause_;
  std::mt19937 random_;  // NOLINT(bugprone-random-generator-seed): what comes when is not its.
  int64_t connections_ = 0;
  int64_t resets_ = 0;
  int64_t half_closes_ = 0;
  int64_t bytes_ = 0;
  int64_t failures_ = 0;
};

Coro<int> RunClients(const Settings& settings) {
  co_await weft::Sleep(absl::Milliseconds(1));  // The loop has what it needs by now.
  const auto accounts = std::make_unique<Accounts>();
  Clients clients(settings);
  weft::Task<> watch = weft::CreateTask(accounts->Watch());
  const bool all_well = co_await clients.Run();
  watch.Cancel();
  co_await weft::NoThrow(watch);
  const bool is_balanced = accounts->Balance(clients.Summary(), settings.max_growth);
  co_return all_well&& is_balanced ? 0 : 1;
}

// -- The server

Coro<> Echo(weft::StreamReader reader, weft::StreamWriter writer, int64_t* count) {
  ++*count;
  while (true) {
    absl::StatusOr<absl::Span<const char>> data = co_await reader.Fill();
    if (!data.ok() || data->empty()) co_return;
    writer.Write(std::string_view(data->data(), data->size()));
    reader.Consume(data->size());
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) co_return;
  }
}

Coro<int> RunServer(const weft::Flags& flags, const Settings& settings,
                    std::vector<std::string> arguments) {
  co_await weft::Sleep(absl::Milliseconds(1));
  const auto accounts = std::make_unique<Accounts>();
  int64_t count = 0;
  const auto echo = [&count](weft::StreamReader reader, weft::StreamWriter writer) {
    return Echo(std::move(reader), std::move(writer), &count);
  };
  weft::ServerOptions options;
  options.backlog = 4096;
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(echo, "0.0.0.0", 0, options);
  if (!server.ok()) co_return flags.Fail(server.status().message());
  weft::Task<> watch = weft::CreateTask(accounts->Watch());

  arguments.push_back(absl::StrCat("--client-of=", server->port()));
  absl::StatusOr<weft::Process> clients = co_await weft::CreateSubprocessExec(arguments);
  if (!clients.ok()) co_return flags.Fail(clients.status().message());
  const int code = co_await clients->Wait();

  // All of them have gone, so that the handlers end by themselves.
  const weft::TimePoint late = weft::GetRunningLoop().Time() + absl::Seconds(10);
  while (server->connection_count() > 0 && weft::GetRunningLoop().Time() < late) {
    co_await weft::Sleep(absl::Milliseconds(10));
  }
  const size_t left = server->connection_count();
  server->Close();
  watch.Cancel();
  co_await weft::NoThrow(watch);
  const bool is_balanced = accounts->Balance(
      absl::StrCat("server: ", count, " connections, ", left, " left"), settings.max_growth);
  co_return code == 0 && left == 0 && is_balanced ? 0 : 1;
}

// Both processes have a descriptor for each connection, and some more.
bool HasDescriptors(int count) {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_max >= static_cast<rlim_t>(count) + 50;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  weft::Flags flags("soak");
  flags.Add("minutes", &settings.minutes, 0, 1'000'000, "how long");
  flags.Add("seconds", &settings.seconds, 0, 1'000'000, "and how many seconds more");
  flags.Add("connections", &settings.connections, 2, 1'000'000, "at the same time");
  flags.Add("rate", &settings.rate, 1, 1'000'000, "messages a second that are aimed at");
  flags.Add("max-growth", &settings.max_growth, 0, 1'000'000, "KiB that memory may grow by");
  flags.Add("poller", &settings.poller, "how to wait for the kernel; empty for the best");
  flags.Add("client-of", &settings.server_port, "be the clients of the server at this port");
  flags.ParseAll(argc, argv);
  if (settings.time() < absl::Seconds(3)) return flags.Fail("--minutes and --seconds: too short");
  if (!HasDescriptors(settings.connections)) {
    return flags.Fail(absl::StrCat("--connections=", settings.connections,
                                   " needs more descriptors than ulimit -Hn allows"));
  }

  weft::RunOptions options;
  options.poller = settings.poller;
  std::vector<std::string> arguments(argv, argv + argc);
  arguments[0] = "/proc/self/exe";
  try {
    if (settings.server_port != 0) return weft::Run(RunClients(settings), options);
    return weft::Run(RunServer(flags, settings, std::move(arguments)), options);
  } catch (const weft::ValueError& error) {
    return flags.Fail(error.what());  // There is no such poller.
  }
}
