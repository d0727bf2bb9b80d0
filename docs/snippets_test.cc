// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// The code of the guide and of the other pages, so that it compiles and does what
// they say. What stands between two markers stands there word for word;
// markdown_test compares.

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weft/core/async_generator.h"
#include "weft/core/context_var.h"
#include "weft/core/errors.h"
#include "weft/core/gather.h"
#include "weft/core/no_throw.h"
#include "weft/core/shield.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/task_group.h"
#include "weft/core/timeout.h"
#include "weft/loop/loop_group.h"
#include "weft/loop/loop_stats.h"
#include "weft/loop/next_signal.h"
#include "weft/loop/run.h"
#include "weft/loop/thread_future.h"
#include "weft/loop/to_thread.h"
#include "weft/loop/watchdog.h"
#include "weft/net/address_reservation.h"
#include "weft/net/graceful.h"
#include "weft/net/pipe.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/process/process.h"
#include "weft/sync/event.h"
#include "weft/sync/lock.h"
#include "weft/sync/semaphore.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string>& Events() {
  static std::vector<std::string> events;
  return events;
}
void Log(std::string text) { Events().push_back(std::move(text)); }

class GuideTest : public ::testing::Test {
 protected:
  GuideTest() { Events().clear(); }
};

// -- Calls and tasks

// [snippet call-and-task]
Coro<int> Price(std::string article) {
  co_await Sleep(absl::Milliseconds(100));
  co_return static_cast<int>(article.size());
}

Coro<int> Total() {
  int tea = co_await Price("tea");                 // A call: here, now, in this task.
  Task<int> coffee = CreateTask(Price("coffee"));  // A task: it runs beside this one.
  int milk = co_await Price("milk");               // Both wait at the same time.
  co_return tea + milk + co_await std::move(coffee);
}
// [end]

WEFT_TEST_F(GuideTest, CallAndTask) {
  const TimePoint start = GetRunningLoop().Time();
  WEFT_EXPECT_EQ(co_await Total(), 13);
  EXPECT_EQ(GetRunningLoop().Time() - start, absl::Milliseconds(200));
}

WEFT_TEST_F(GuideTest, Await) {
  // [snippet lvalue-and-rvalue]
  Task<std::string> task = CreateTask([]() -> Coro<std::string> { co_return "text"; });
  const std::string& shown = co_await task;      // Valid as long as `task` is held.
  std::string taken = co_await std::move(task);  // Moved out: this was the last reference.
  // [end]
  static_cast<void>(shown);
  EXPECT_EQ(taken, "text");
}

// -- Several at once

Coro<std::string> Fetch(std::string name) {
  co_await Sleep(absl::Milliseconds(10));
  co_return "<" + name + ">";
}

WEFT_TEST_F(GuideTest, Gather) {
  // [snippet gather]
  auto both = co_await Gather(Fetch("a"), Fetch("b"));  // A std::tuple, in this order.
  auto& [a, b] = both;
  // [end]
  EXPECT_EQ(a + b, "<a><b>");
}

// [snippet group]
Coro<std::vector<std::string>> FetchAll(std::vector<std::string> names) {
  std::vector<std::string> pages(names.size());
  co_await WithTaskGroup([&](TaskGroup& group) -> Coro<> {
    for (size_t i = 0; i < names.size(); ++i) {
      group.CreateTask([&pages, &names, i]() -> Coro<> { pages[i] = co_await Fetch(names[i]); });
    }
    co_return;
  });
  co_return pages;  // All are there; if one failed, an ExceptionGroup was thrown.
}
// [end]

WEFT_TEST_F(GuideTest, Group) {
  std::vector<std::string> names = {"a", "b"};
  std::vector<std::string> pages = co_await FetchAll(names);
  EXPECT_THAT(pages, ElementsAre("<a>", "<b>"));
}

// [snippet generator]
AsyncGenerator<std::string> Pages(std::vector<std::string> names) {
  for (const std::string& name : names) {
    std::string page = co_await Fetch(name);
    co_yield std::move(page);
  }
}

Coro<size_t> TotalSize(std::vector<std::string> names) {
  size_t size = 0;
  AsyncGenerator<std::string> pages = Pages(std::move(names));
  while (std::optional<std::string> page = co_await pages.Next()) size += page->size();
  co_return size;
}
// [end]

WEFT_TEST_F(GuideTest, Generator) {
  std::vector<std::string> names = {"a", "bc"};
  WEFT_EXPECT_EQ(co_await TotalSize(names), 7u);
}

void Print(const std::string& text) { Log(text); }

// [snippet context-var]
ContextVar<std::string> user("user", "nobody");

Coro<> Handle() {
  Print("for " + user.Get());
  co_return;
}

Coro<> Accept() {
  user.Set("alice");
  CreateTask(Handle());  // Sees "alice", whatever is set here later.
  user.Set("bob");
  co_await Handle();  // A call: the same task, so "bob".
}
// [end]

WEFT_TEST_F(GuideTest, ContextVar) {
  co_await Accept();
  co_await Yield();
  EXPECT_THAT(Events(), ElementsAre("for bob", "for alice"));
}

// -- Timeouts

// [snippet timeout]
Coro<std::string> FetchOrGiveUp(std::string name) {
  Outcome<std::string> page = co_await NoThrow(WithTimeout(absl::Seconds(1), Fetch(name)));
  if (page.has_value()) co_return *std::move(page);
  if (page.cancelled()) page.value();  // Somebody wants us to end: throw it on.
  co_return "(none)";                  // Too late, or it failed.
}
// [end]

WEFT_TEST_F(GuideTest, Timeout) {
  std::string page = co_await FetchOrGiveUp("a");
  EXPECT_EQ(page, "<a>");
}

Coro<bool> ReadSome(int* left) {
  co_await Sleep(absl::Seconds(3));
  co_return --*left > 0;
}

WEFT_TEST_F(GuideTest, TimeoutBody) {
  int left = 3;
  // [snippet timeout-body]
  co_await WithTimeout(absl::Seconds(5), [&](Timeout& timeout) -> Coro<> {
    bool more = true;
    while (more) {
      more = co_await ReadSome(&left);
      timeout.Reschedule(GetRunningLoop().Time() + absl::Seconds(5));
    }
  });
  // [end]
  EXPECT_EQ(left, 0);
}

// -- Cleaning up

struct Session {
  Coro<> Work() {
    Log("work");
    co_await Sleep(absl::InfiniteDuration());
  }
  Coro<> SayGoodbye() {
    co_await Sleep(absl::Seconds(1));
    Log("goodbye");
  }
};

// [snippet finally]
Coro<> Serve(Session& session) {
  Outcome<void> ended = co_await NoThrow(session.Work());
  co_await session.SayGoodbye();  // Whatever happened. It may wait.
  ended.value();                  // Throws what happened, if something did.
}
// [end]

WEFT_TEST_F(GuideTest, Finally) {
  Session session;
  Task<> task = CreateTask(Serve(session));
  co_await Yield();
  task.Cancel();
  WEFT_EXPECT_THROW(static_cast<void>(co_await task), CancelledError);
  EXPECT_THAT(Events(), ElementsAre("work", "goodbye"));
}

Coro<> Commit() {
  co_await Sleep(absl::Seconds(1));
  Log("committed");
}

// [snippet shield]
Coro<> CommitWhatever() {
  Task<> commit = CreateTask(Commit());
  Outcome<void> ended = co_await NoThrow(Shield(commit));   // Only this await is cancelled.
  while (!commit.Done()) co_await NoThrow(Shield(commit));  // However often that happens.
  commit.Result();                                          // Throws what went wrong.
  ended.value();                                            // Throws the cancellation, if it came.
}
// [end]

WEFT_TEST_F(GuideTest, Shield) {
  Task<> task = CreateTask(CommitWhatever());
  co_await Yield();
  task.Cancel();
  WEFT_EXPECT_THROW(static_cast<void>(co_await task), CancelledError);
  EXPECT_THAT(Events(), ElementsAre("committed"));
}

// -- What a task keeps alive

WEFT_TEST_F(GuideTest, Captures) {
  std::string name = "world";
  // [snippet captures]
  auto greet = [name]() -> Coro<> {
    co_await Sleep(absl::Seconds(1));
    Print("hello, " + name);
  };
  CreateTask(greet);  // The task has a copy of the closure.

  CreateTask(
      [](std::string name) -> Coro<> {  // No captures: all it needs is a parameter.
        co_await Sleep(absl::Seconds(1));
        Print("goodbye, " + name);
      },
      name);
  // [end]
  co_await Sleep(absl::Seconds(2));
  EXPECT_THAT(Events(), ElementsAre("hello, world", "goodbye, world"));
}

// [snippet reference]
Coro<> Send(const std::string& text) {
  co_await Sleep(absl::Seconds(1));
  Print(text);
}

Coro<> Sender() {
  std::string text = "a text";
  co_await Send(text);     // Right: the caller waits, so what it passes lives.
  CreateTask(Send, text);  // Right: the task has a copy of `text`.
}
// [end]

WEFT_TEST_F(GuideTest, References) {
  co_await Sender();
  co_await Sleep(absl::Seconds(2));
  EXPECT_THAT(Events(), ElementsAre("a text", "a text"));
}

// -- Blocking

std::string ReadFile(const std::string& path) { return "bytes of " + path; }

// [snippet to-thread]
Coro<size_t> CountBytes(std::string path) {
  std::string text = co_await ToThread([&] { return ReadFile(path); });
  co_return text.size();
}
// [end]

WEFT_TEST_F(GuideTest, ToThread) { WEFT_EXPECT_EQ(co_await CountBytes("x"), 10u); }

struct Document {
  size_t size = 3;
};

WEFT_TEST_F(GuideTest, Take) {
  auto document = std::make_unique<Document>();
  // [snippet take]
  auto job = [document = std::move(document)] { return document->size; };
  size_t size = co_await ToThread(Take(job));
  // [end]
  EXPECT_EQ(size, 3u);
}

// -- Locks

struct Account {
  Lock lock;
  int balance = 10;
};

// [snippet lock]
Coro<> Withdraw(Account& account, int amount) {
  Lock::Guard guard = co_await account.lock.Acquire();
  int balance = account.balance;
  co_await Sleep(absl::Milliseconds(1));  // Others run here; the lock keeps them out.
  account.balance = balance - amount;
}
// [end]

WEFT_TEST_F(GuideTest, Lock) {
  Account account;
  co_await Gather(Withdraw(account, 1), Withdraw(account, 2));
  EXPECT_EQ(account.balance, 7);
}

// [snippet limit]
Coro<std::string> FetchPolitely(Semaphore& limit, std::string name) {
  Semaphore::Guard guard = co_await limit.Acquire();
  co_return co_await Fetch(name);
}
// [end]

WEFT_TEST_F(GuideTest, Limit) {
  Semaphore limit(1);
  auto all = co_await Gather(FetchPolitely(limit, "a"), FetchPolitely(limit, "b"));
  EXPECT_EQ(std::get<1>(all), "<b>");
}

// -- From other threads

TEST_F(GuideTest, FromAThread) {
  std::unique_ptr<EventLoop> loop = *EventLoop::Create();
  // [snippet from-a-thread]
  LoopRef ref = loop->Ref();  // May outlive the loop.
  std::thread worker([ref] {
    ref.Post([] { Print("on the loop's thread"); });
    ThreadFuture<std::string> page = RunCoroutineThreadsafe(Fetch("a"), ref);
    const std::string& text = page.Result();  // Blocks this thread, not the loop.
    ref.Post([text] {
      Print(text);
      GetRunningLoop().Stop();
    });
  });
  // [end]
  loop->RunForever();
  worker.join();
  loop->Close();
  EXPECT_THAT(Events(), ElementsAre("on the loop's thread", "<a>"));
}

// [snippet background-loop]
class BackgroundLoop {
 public:
  BackgroundLoop() : loop_(*EventLoop::Create()), thread_([this] { loop_->RunForever(); }) {}
  ~BackgroundLoop() {
    loop_->Ref().Post([] { GetRunningLoop().Stop(); });
    thread_.join();
    loop_->Close();
  }
  LoopRef ref() const { return loop_->Ref(); }

 private:
  std::unique_ptr<EventLoop> loop_;
  std::thread thread_;
};
// [end]

//
TEST_F(GuideTest, ALoopBesideTheMainThread) {
  BackgroundLoop background;
  EXPECT_EQ(RunCoroutineThreadsafe(Fetch("a"), background.ref()).Result(), "<a>");
}

//
TEST_F(GuideTest, ALoopInsideOfAForeignOne) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int own = ends[0];
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  bool is_done = false;
  Event event;
  const auto Work = [&]() -> Coro<> {
    co_await event.Wait();
    is_done = true;
    co_await Sleep(absl::Hours(1));
  };
  const auto HandleOwn = [&] {
    char byte;
    EXPECT_EQ(::read(own, &byte, 1), 1);
    event.Set();
  };
  // [snippet foreign-loop]
  Runner runner;
  EventLoop& loop = runner.GetLoop();
  loop.CreateTask(Work);  // Its own CreateTask(): outside of a round no loop is running.
  pollfd sources[] = {{static_cast<int>(loop.BackendFd()), POLLIN, 0}, {own, POLLIN, 0}};
  while (!is_done) {
    ::poll(sources, 2, -1);
    if (sources[0].revents != 0) loop.RunOnce(absl::ZeroDuration());
    if (sources[1].revents != 0) HandleOwn();  // May use weft: a call from here wakes the poll.
  }
  runner.Close();  // Cancels what is left, and waits for its cleanup.
  // [end]
  for (int fd : ends) ::close(fd);
}

// -- Diagnostics

WEFT_TEST_F(GuideTest, Stack) {
  Task<int> total = CreateTask(Total(), "total");
  co_await Yield();
  std::ostringstream out;
  // [snippet stack]
  for (const TaskRef& task : AllTasks()) task.PrintStack(out);
  // [end]
  total.Cancel();
  EXPECT_THAT(out.str(), HasSubstr("Stack for <Task pending name='total' coro="));
}

// [snippet heartbeat]
Coro<> Heartbeat() {
  while (true) co_await Sleep(absl::Milliseconds(100));
}
// [end]

// [snippet export]
void Export(EventLoop& loop, std::ostream& out) {
  LoopStats stats = loop.Stats();
  uint64_t so_far = 0;
  for (size_t i = 0; i < LagHistogram::kBuckets; ++i) {
    so_far += stats.lag.count(i);
    double bound = absl::ToDoubleSeconds(LagHistogram::UpperBound(i));
    out << "loop_lag_seconds_bucket{le=\"" << bound << "\"} " << so_far << "\n";
  }
  out << "loop_lag_max_seconds " << absl::ToDoubleSeconds(loop.TakeMaxLag()) << "\n"
      << "loop_callbacks_total " << stats.callbacks << "\n"
      << "loop_idle_seconds_total " << absl::ToDoubleSeconds(stats.idle) << "\n"
      << "loop_ready " << stats.ready << "\n"
      << "loop_tasks " << stats.tasks << "\n"
      << "executor_queue_depth " << loop.DefaultExecutor().queue_depth() << "\n";
}
// [end]

WEFT_TEST_F(GuideTest, Lag) {
  Task<> heartbeat = CreateTask(Heartbeat());
  co_await Sleep(absl::Seconds(1));
  std::ostringstream out;
  Export(GetRunningLoop(), out);
  heartbeat.Cancel();
  EXPECT_THAT(out.str(), HasSubstr("loop_lag_seconds_bucket{le=\"inf\"} "));
  EXPECT_THAT(out.str(), HasSubstr("loop_lag_max_seconds 0\n"));
  EXPECT_THAT(out.str(), HasSubstr("executor_queue_depth 0\n"));
}

WEFT_TEST_F(GuideTest, Watchdog) {
  // [snippet watchdog]
  WatchdogOptions options;
  options.limit = absl::Milliseconds(500);
  options.dump_when_unblocked = true;  // All tasks, as soon as the loop can tell.
  Watchdog watchdog(GetRunningLoop(), options);
  // [end]
  co_await Yield();
}

WEFT_TEST_F(GuideTest, Handler) {
  std::string seen;
  // [snippet handler]
  GetRunningLoop().SetExceptionHandler([&](EventLoop&, const ExceptionContext& context) {
    seen += ToString(context);  // To your own log; and the process goes on.
  });
  // [end]
  GetRunningLoop().CallSoon([] { throw std::runtime_error("boom"); });
  co_await Yield();
  EXPECT_THAT(seen, HasSubstr("std::runtime_error: boom"));
  GetRunningLoop().SetExceptionHandler(nullptr);
}

Coro<> Answer(StreamReader reader, StreamWriter writer) {
  absl::StatusOr<std::string> line = co_await reader.ReadLine();
  if (line.ok()) writer.Write(*line);
}

// [snippet serve-until-signal]
Coro<int> Main(uint16_t port) {
  absl::StatusOr<Server> server = co_await StartServer(Answer, "127.0.0.1", port);
  if (!server.ok()) co_return 1;
  ServeOptions options;
  options.grace = absl::Seconds(10);
  options.on_stopping = [] { Print("stopping"); };
  ShutdownReport report = co_await ServeUntilSignal(*server, options);
  Print(absl::StrCat(report.cancelled, " requests were not finished"));
  co_return 0;
}

int RunMain(uint16_t port) {
  try {
    return weft::Run(Main(port));
  } catch (const KeyboardInterrupt&) {
    return 130;
  }
}
// [end]

// [snippet loop-group]
Coro<> ServeOn(const Addresses& addresses) {
  ServerOptions options;
  options.reuse_port = true;
  absl::StatusOr<Server> server = co_await StartServer(Answer, addresses, options);
  if (!server.ok()) throw RuntimeError(std::string(server.status().message()));
  co_await ServeUntilCancelled(*server);
}

Coro<int> ServeOnAllCores(uint16_t port) {
  absl::StatusOr<AddressReservation> reserved = co_await ReserveAddresses("127.0.0.1", port);
  if (!reserved.ok()) co_return 1;
  LoopGroup group;
  group.RunOnEach([&](int) { return ServeOn(reserved->addresses()); });
  co_await group.RunUntilSignal();
  co_return 0;
}
// [end]

// [snippet loop-group-sum]
Coro<int> CountAll(LoopGroup& group, Coro<int> (*count)(int loop)) {
  std::vector<ThreadFuture<int>> parts = group.RunOnEach(count);
  int sum = 0;
  for (ThreadFuture<int>& part : parts) sum += co_await WrapFuture(part);
  co_return sum;
}
// [end]

Coro<int> NumberOf(int loop) { co_return loop + 1; }

WEFT_TEST_F_IN_REAL_TIME(GuideTest, CountAll) {
  LoopGroupOptions options;
  options.loops = 3;
  LoopGroup group(options);
  WEFT_EXPECT_EQ(co_await CountAll(group, NumberOf), 6);
}

bool IsHandled(int signal) {
  struct sigaction current;
  return ::sigaction(signal, nullptr, &current) == 0 && current.sa_handler != SIG_DFL;
}

TEST_F(GuideTest, ServeUntilSignal) {
  std::thread sender([] {
    while (!IsHandled(SIGTERM)) std::this_thread::yield();
    ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(RunMain(0), 0);
  sender.join();
  EXPECT_THAT(Events(), ElementsAre("stopping", "0 requests were not finished"));
}

TEST_F(GuideTest, ServeOnAllCores) {
  std::thread sender([] {
    while (!IsHandled(SIGTERM)) std::this_thread::yield();
    ::kill(::getpid(), SIGTERM);
  });
  EXPECT_EQ(weft::Run(ServeOnAllCores(0)), 0);
  sender.join();
}

struct Config {
  Coro<> Reload() {
    ++reloads;
    co_await Yield();
  }
  int reloads = 0;
};

// [snippet signals]
Coro<> ReloadOnHangup(Config& config) {
  SignalReceiver hangups(SIGHUP);
  while (true) {
    co_await hangups.Next();
    co_await config.Reload();  // Another SIGHUP now is not lost.
  }
}

Coro<> WaitForTheEnd() {
  int signal = co_await NextSignal(SignalSet(SIGTERM, SIGINT));
  Print(absl::StrCat("signal ", signal));
}
// [end]

WEFT_TEST_F_IN_REAL_TIME(GuideTest, Signals) {
  Config config;
  Task<> reloading = CreateTask(ReloadOnHangup(config));
  Task<> waiting = CreateTask(WaitForTheEnd());
  while (!IsHandled(SIGHUP) || !IsHandled(SIGTERM)) co_await Yield();
  ::raise(SIGHUP);
  ::raise(SIGHUP);
  ::raise(SIGTERM);
  co_await waiting;
  while (config.reloads < 2) co_await Yield();
  reloading.Cancel();
  auto ended = co_await NoThrow(Task<>(reloading));
  EXPECT_TRUE(ended.cancelled());
  EXPECT_THAT(Events(), ElementsAre(absl::StrCat("signal ", SIGTERM)));
}

// -- Subprocesses

// [snippet communicate]
Coro<absl::StatusOr<std::string>> Sorted(std::string text) {
  ProcessOptions options;
  options.std_in = Stdio::kPipe;
  options.std_out = Stdio::kPipe;
  absl::StatusOr<Process> sort = co_await CreateSubprocessExec(Argv("sort", "-r"), options);
  if (!sort.ok()) co_return sort.status();  // No such program, say.
  absl::StatusOr<ProcessOutput> output = co_await sort->Communicate(std::move(text));
  if (!output.ok()) co_return output.status();
  if (output->returncode != 0) co_return absl::UnknownError("sort failed");
  co_return std::move(output->std_out);
}
// [end]

// [snippet process-timeout]
Coro<bool> EndsInTime(std::string command) {
  const auto run = [&]() -> Coro<int> {
    absl::StatusOr<Process> process = co_await CreateSubprocessShell(command);
    if (!process.ok()) co_return -1;
    co_return co_await process->Wait();
  };
  auto code = co_await NoThrow(WithTimeout(absl::Milliseconds(100), run()));
  if (code.cancelled()) code.value();  // Not the time is over, but this task.
  co_return code.has_value();          // If not, the program is gone.
}
// [end]

WEFT_TEST_F_IN_REAL_TIME(GuideTest, Subprocesses) {
  absl::StatusOr<std::string> sorted = co_await Sorted("a\nc\nb\n");
  EXPECT_EQ(sorted.value(), "c\nb\na\n");
  WEFT_EXPECT_FALSE(co_await EndsInTime("exec sleep 1000"));
}

// -- Pipes, terminals and files as streams

// [snippet standard-input]
Coro<int> CountLines(StreamReader input) {
  int lines = 0;
  while (true) {
    absl::StatusOr<std::string> line = co_await input.ReadLine();
    if (!line.ok() || line->empty()) co_return lines;
    ++lines;
  }
}

Coro<absl::StatusOr<int>> CountInput() {
  absl::StatusOr<StreamReader> input = co_await OpenStandardInput();
  if (!input.ok()) co_return input.status();
  co_return co_await CountLines(*std::move(input));
}
// [end]

WEFT_TEST_F(GuideTest, Pipes) {
  Pipe pipe = (co_await OpenPipe()).value();
  pipe.writer.Write("one\ntwo\nthree");
  pipe.writer.Close();
  WEFT_EXPECT_EQ(co_await CountLines(std::move(pipe.reader)), 3);
  static_cast<void>(&CountInput);
}

TEST_F(GuideTest, VirtualTime) {
  // [snippet virtual-time]
  VirtualClock clock;
  RunOptions options;
  options.environment.clock = &clock;
  weft::Run(Total(), options);
  // [end]
}

}  // namespace
}  // namespace weft
