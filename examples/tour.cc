// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// One process, one thread, one loop: a server, a thousand clients that talk to it
// at the same time, timers, a job in a thread, a timeout, a cancellation, and an
// orderly end. It tells what happens as it happens, and counts.
//
//   tools/bazel run -c opt //examples:tour
//
// The exit code is 0 only if everything was as it should be.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/examples/flags.h"
#include "weft/examples/run.h"
#include "weft/examples/timeline.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/to_thread.h"
#include "weft/net/connect.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/sync/event.h"

namespace {

using weft::Coro;
using weft::GetRunningLoop;
using weft::Grouped;
using weft::InMilliseconds;
using weft::Sleep;
using weft::TimePoint;

constexpr char kHost[] = "127.0.0.1";
constexpr int kTimers = 1000;
constexpr absl::Duration kTimerSpan = absl::Milliseconds(500);

// What takes a while and knows of no loop.
int CountPrimes(int below) {
  int count = 0;
  for (int n = 2; n < below; ++n) {
    bool is_prime = true;
    for (int d = 2; is_prime && d * d <= n; ++d) is_prime = n % d != 0;
    count += is_prime;
  }
  return count;
}

class Tour {
 public:
  // First all clients ask as fast as they can, then they take their time; each for
  // as long as that.
  Tour(int clients, absl::Duration rush, absl::Duration calm)
      : clients_(clients), rush_(rush), calm_(calm) {}

  Coro<int> Main();

 private:
  // -- The server: says each line back; "slow 300" in 300 ms.
  Coro<> Serve(weft::StreamReader reader, weft::StreamWriter writer);

  // -- What goes on at the same time.
  Coro<> Client(int number);
  Coro<> WatchClients();
  Coro<> RunTimers();
  Coro<> AskThread();
  Coro<> LosePatience();
  Coro<> ChangeMind();
  Coro<> ShutDown(weft::Server& server);

  void PrintFigures();

  struct Answers {
    int64_t Count() const { return static_cast<int64_t>(latencies.size()); }
    std::string Latency();
    std::vector<absl::Duration> latencies;
  };

  const int clients_;
  const absl::Duration rush_;
  const absl::Duration calm_;
  weft::Timeline timeline_;
  uint16_t port_ = 0;

  weft::Event all_connected_;
  weft::Event rush_is_over_;
  TimePoint rush_end_;
  int connected_ = 0;
  int served_ = 0;  // Connections, and those that are open.
  int open_ = 0;
  int most_open_ = 0;
  int64_t bytes_ = 0;
  Answers in_rush_;
  Answers in_calm_;
  int fired_ = 0;
  absl::Duration latest_ = absl::ZeroDuration();
};

Coro<> Tour::Serve(weft::StreamReader reader, weft::StreamWriter writer) {
  ++served_;
  most_open_ = std::max(most_open_, ++open_);
  while (true) {
    absl::StatusOr<std::string> line = co_await reader.ReadLine();
    if (!line.ok() || line->empty()) break;
    absl::string_view text = *line;
    int delay;
    if (absl::ConsumePrefix(&text, "slow ") && absl::SimpleAtoi(text, &delay)) {
      auto slept = co_await weft::NoThrow(Sleep(absl::Milliseconds(delay)));
      if (!slept.has_value()) break;
    }
    writer.Write(*line);
    bytes_ += static_cast<int64_t>(line->size());
    if (absl::Status sent = co_await writer.Drain(); !sent.ok()) break;
  }
  --open_;
}

Coro<> Tour::Client(int number) {
  absl::StatusOr<weft::Connection> connection = co_await weft::OpenConnection(kHost, port_);
  if (++connected_ == clients_) {
    rush_end_ = GetRunningLoop().Time() + rush_;
    all_connected_.Set();
  }
  timeline_.Check(connection.ok(),
                  absl::StrCat("client ", number, ": ", connection.status().ToString()));
  if (!connection.ok()) co_return;
  co_await all_connected_.Wait();

  auto& [reader, writer] = *connection;
  for (int i = 0; GetRunningLoop().Time() < rush_end_ + calm_; ++i) {
    const TimePoint asked = GetRunningLoop().Time();
    const std::string question = absl::StrFormat("client %d, question %-40d\n", number, i);
    writer.Write(question);
    absl::StatusOr<std::string> answer = co_await reader.ReadLine();
    timeline_.Check(answer.ok() && *answer == question, "a client got a wrong answer");
    if (!answer.ok()) co_return;
    const TimePoint answered = GetRunningLoop().Time();
    (asked < rush_end_ ? in_rush_ : in_calm_).latencies.push_back(answered - asked);
    if (answered >= rush_end_) co_await Sleep(absl::Milliseconds(100 + number % 200));
  }
}

Coro<> Tour::WatchClients() {
  co_await all_connected_.Wait();
  timeline_.Tell("clients",
                 absl::StrCat(Grouped(clients_), " are connected, and ask as fast as they can"));
  for (int third = 1; third <= 3; ++third) {
    co_await Sleep(rush_ / 3);
    timeline_.Tell("clients", Grouped(in_rush_.Count()) + " answers so far");
  }
  co_await Sleep(absl::Milliseconds(100));  // The last of them.
  timeline_.Tell("clients", "now they take their time, 0.1 to 0.3 s between two questions");
  rush_is_over_.Set();
}

Coro<> Tour::RunTimers() {
  co_await rush_is_over_.Wait();
  timeline_.Tell("timers", absl::StrCat(Grouped(kTimers), " armed, within the next ",
                                        InMilliseconds(kTimerSpan)));
  for (int i = 0; i < kTimers; ++i) {
    const TimePoint when = GetRunningLoop().Time() + kTimerSpan * ((i * 7919) % kTimers) / kTimers;
    GetRunningLoop().CallAt(when, [this, when] {
      ++fired_;
      latest_ = std::max(latest_, GetRunningLoop().Time() - when);
      timeline_.Check(GetRunningLoop().Time() >= when, "a timer was early");
    });
  }
}

Coro<> Tour::AskThread() {
  co_await rush_is_over_.Wait();
  timeline_.Tell("thread", "counts the primes below 300,000; the loop goes on");
  const int primes = co_await weft::ToThread([] { return CountPrimes(300'000); });
  timeline_.Tell("thread", absl::StrCat("found ", Grouped(primes)));
  timeline_.Check(primes == 25'997, "there are 25,997 primes below 300,000");
}

Coro<> Tour::LosePatience() {
  co_await rush_is_over_.Wait();
  absl::StatusOr<weft::Connection> connection = co_await weft::OpenConnection(kHost, port_);
  timeline_.Check(connection.ok(), connection.status().ToString());
  if (!connection.ok()) co_return;
  connection->writer.Write("slow 1000\n");
  timeline_.Tell("timeout", "asks what takes a second, and waits for 300 ms");
  auto answer = co_await weft::NoThrow(
      weft::WithTimeout(absl::Milliseconds(300), connection->reader.ReadLine()));
  timeline_.Tell("timeout", weft::DescribeException(answer.exception()));
  timeline_.Check(answer.has_exception() && !answer.cancelled(), "the timeout did not come");
  connection->writer.Abort();
}

Coro<> Tour::ChangeMind() {
  co_await rush_is_over_.Wait();
  bool cleaned_up = false;
  const auto wait_for_ever = [](weft::Timeline* timeline, bool* is_clean) -> Coro<> {
    auto slept = co_await weft::NoThrow(Sleep(absl::InfiniteDuration()));
    timeline->Tell("cancel", "the task cleans up, which may take a while");
    co_await Sleep(absl::Milliseconds(50));
    *is_clean = true;
    slept.value();  // Throws on.
  };
  weft::Task<> task = weft::CreateTask(wait_for_ever, &timeline_, &cleaned_up);
  timeline_.Tell("cancel", "a task sleeps for ever");
  co_await Sleep(absl::Milliseconds(400));
  task.Cancel();
  auto ended = co_await weft::NoThrow(task);
  timeline_.Tell("cancel",
                 absl::StrCat("the task is ", task.Cancelled() ? "cancelled" : "not cancelled"));
  timeline_.Check(cleaned_up && ended.cancelled(), "the cancelled task did not clean up");
}

Coro<> Tour::ShutDown(weft::Server& server) {
  absl::StatusOr<weft::Connection> last = co_await weft::OpenConnection(kHost, port_);
  timeline_.Check(last.ok(), last.status().ToString());
  if (!last.ok()) co_return;
  last->writer.Write("slow 200\n");
  auto answer = weft::CreateTask(last->reader.ReadLine());
  co_await Sleep(absl::Milliseconds(20));

  timeline_.Tell("shutdown", "the server closes; one client waits for an answer");
  server.Close();
  absl::StatusOr<weft::Connection> late = co_await weft::OpenConnection(kHost, port_);
  timeline_.Tell("shutdown", absl::StrCat("who comes now: ", late.status().message()));
  timeline_.Check(!late.ok(), "a closed server accepted");

  absl::StatusOr<std::string> said = co_await std::move(answer);
  timeline_.Tell("shutdown", "who was there has been answered");
  timeline_.Check(said.ok() && *said == "slow 200\n", "the last client got no answer");
  last->writer.Close();
  co_await server.WaitClosed();
  timeline_.Tell("shutdown", "the last connection is closed");
}

Coro<int> Tour::Main() {
  timeline_.Begin("One process, one thread, one loop:");
  const auto serve = [this](weft::StreamReader reader, weft::StreamWriter writer) {
    return Serve(std::move(reader), std::move(writer));
  };
  weft::ServerOptions options;
  options.backlog = clients_;
  absl::StatusOr<weft::Server> server = co_await weft::StartServer(serve, kHost, 0, options);
  timeline_.Check(server.ok(), server.status().ToString());
  if (!server.ok()) co_return 1;
  port_ = server->port();
  timeline_.Tell("server", absl::StrCat("listening on ", server->addresses().front().ToString(),
                                        ", by ", std::string(GetRunningLoop().poller_name())));

  const auto all_at_once = [this](weft::TaskGroup& group) -> Coro<> {
    for (int i = 0; i < clients_; ++i) group.CreateTask(Client(i));
    group.CreateTask(WatchClients());
    group.CreateTask(RunTimers());
    group.CreateTask(AskThread());
    group.CreateTask(LosePatience());
    group.CreateTask(ChangeMind());
    co_return;
  };
  co_await weft::WithTaskGroup(all_at_once);
  co_await Sleep(absl::Milliseconds(10));  // For the last timer.
  timeline_.Check(fired_ == kTimers, absl::StrCat(fired_, " timers of ", kTimers, " fired"));
  timeline_.Check(in_rush_.Count() >= clients_, "not every client was answered");
  timeline_.Check(most_open_ >= clients_, "not all clients were there at once");

  co_await ShutDown(*server);
  timeline_.Check(open_ == 0, absl::StrCat(open_, " connections were left"));
  timeline_.Check(weft::AllTasks().size() == 1, "tasks were left");
  PrintFigures();
  co_return timeline_.failures() == 0 ? 0 : 1;
}

std::string Tour::Answers::Latency() {
  if (latencies.empty()) return "none";
  std::sort(latencies.begin(), latencies.end());
  return absl::StrCat(InMilliseconds(latencies[latencies.size() / 2]), " for half of them, ",
                      InMilliseconds(latencies[latencies.size() * 99 / 100]), " for 99 %");
}

void Tour::PrintFigures() {
  const auto per_second =
      static_cast<int64_t>(static_cast<double>(in_rush_.Count()) / absl::ToDoubleSeconds(rush_));
  const weft::ProcessorTime used = weft::ReadProcessorTime();

  std::puts("");
  timeline_.Figure("connections", Grouped(served_), Grouped(most_open_) + " of them at once");
  timeline_.Figure("requests", Grouped(in_rush_.Count() + in_calm_.Count()),
                   Grouped(per_second) + " a second, as fast as they could");
  timeline_.Figure("  in a rush", Grouped(in_rush_.Count()), in_rush_.Latency());
  timeline_.Figure("  at leisure", Grouped(in_calm_.Count()), in_calm_.Latency());
  timeline_.Figure("bytes", Grouped(bytes_), "there, and as many back");
  timeline_.Figure("timers", Grouped(fired_),
                   "none of them early, " + InMilliseconds(latest_) + " late at most");
  timeline_.Figure("wake-ups", Grouped(used.sleeps), "times that the process had to sleep");
  timeline_.Figure("processor", absl::StrFormat("%.2f s", used.in_program + used.in_kernel),
                   absl::StrFormat("%.2f s in the program, %.2f s in the kernel", used.in_program,
                                   used.in_kernel));
  timeline_.Figure("time", absl::StrFormat("%.2f s", absl::ToDoubleSeconds(timeline_.Elapsed())),
                   "in all");
  std::puts(timeline_.failures() == 0 ? "\nAll is well." : "\nNot all is well: see FAILED.");
}

}  // namespace

int main(int argc, char** argv) {
  int clients = 1000, rush = 800, calm = 1000;
  std::string poller;
  weft::Flags flags("tour");
  flags.Add("clients", &clients, 1, 10'000, "how many, at the same time");
  flags.Add("rush", &rush, 100, 60'000, "ms for which they ask as fast as they can");
  flags.Add("calm", &calm, 100, 60'000, "ms for which they take their time");
  flags.Add("poller", &poller, "how to wait for the kernel; empty for the best");
  flags.ParseAll(argc, argv);

  const int allowed = weft::AllowDescriptors(clients);
  if (allowed < clients) std::printf("only %d clients: the system allows no more files\n", allowed);
  Tour tour(allowed, absl::Milliseconds(rush), absl::Milliseconds(calm));
  return weft::RunOn(poller, tour.Main(), flags);
}
