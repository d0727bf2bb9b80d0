// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Clients and servers that do anything at any time: read and write in all ways, stop
// in the middle, half-close, reset, throw, let go of one half, and are cancelled.
// Nothing may hang, leak a descriptor or a buffer, or touch what is gone; the
// sanitizers look on.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weft/core/errors.h"
#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/timeout.h"
#include "weft/loop/event_loop.h"
#include "weft/loop/run.h"
#include "weft/net/connect.h"
#include "weft/net/late_cancel_poller.h"
#include "weft/net/server.h"
#include "weft/net/stream.h"
#include "weft/net/test_net.h"
#include "weft/poller/fault_injection.h"
#include "weft/testing/weft_test.h"

namespace weft {
namespace {

class NetChaosTest : public NetTest {};

class Chaos {
 public:
  explicit Chaos(uint32_t seed) : random_(seed) {}

  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }

  // One end of a connection, for a while.
  Coro<void> Behave(StreamReader reader, StreamWriter writer) {
    char buffer[1000];
    for (int i = 0, steps = static_cast<int>(Below(30)); i < steps; ++i) {
      bool ok = true;
      switch (Below(22)) {
        case 0: {
          absl::StatusOr<std::string> text = co_await reader.Read(1 + Below(100000));
          ok = text.ok() && !text->empty();
          break;
        }
        case 1: {
          absl::StatusOr<std::string> text = co_await reader.ReadLine();
          ok = text.ok();
          break;
        }
        case 2: {
          absl::StatusOr<std::string> text = co_await reader.ReadExactly(Below(5000));
          ok = text.ok();
          break;
        }
        case 3: {
          absl::StatusOr<size_t> count = co_await reader.ReadInto(absl::MakeSpan(buffer));
          ok = count.ok();
          break;
        }
        case 4: {
          absl::StatusOr<absl::Span<const char>> unread = co_await reader.Fill(1 + Below(3000));
          ok = unread.ok();
          if (ok) reader.Consume(Below(static_cast<uint32_t>(unread->size()) + 1));
          break;
        }
        case 5: {
          const absl::Duration limit = absl::Microseconds(Below(2000));
          Outcome<absl::StatusOr<std::string>> outcome =
              co_await NoThrow(WithTimeout(limit, reader.ReadUntil("ab")));
          if (outcome.cancelled()) outcome.value();
          break;
        }
        case 6:
        case 7:
        case 8:
        case 9:
          writer.Write(Pattern(Below(3000), Below(1000)));
          break;
        case 10:
          writer.Write(Pattern(Below(300000)));
          break;
        case 11:
        case 12: {
          absl::Status sent = co_await writer.Drain();
          ok = sent.ok();
          break;
        }
        case 13: {
          const absl::Duration limit = absl::Microseconds(Below(2000));
          Outcome<absl::Status> outcome = co_await NoThrow(WithTimeout(limit, writer.Drain()));
          if (outcome.cancelled()) outcome.value();
          break;
        }
        case 14:
          co_await Rounds(static_cast<int>(Below(4)));
          break;
        case 15:
          if (Below(3) == 0) {
            writer.WriteEof();
            absl::StatusOr<std::string> rest = co_await reader.Read();
            co_return;
          }
          break;
        case 16:
          if (Below(3) == 0) writer.Close();
          break;
        case 17:
          if (Below(3) == 0) writer.Abort();
          break;
        case 18:
          if (Below(3) == 0) {
            writer.socket().SetOption(SocketOption::kLinger, 0).IgnoreError();
            writer.Abort();
          }
          break;
        case 19:
          if (Below(3) == 0) throw ValueError("chaos");
          break;
        case 20:
          if (Below(3) == 0) {
            StreamReader gone = std::move(reader);
            co_return;
          }
          break;
        case 21:
          if (Below(3) == 0) {
            Outcome<absl::Status> closed =
                co_await NoThrow(WithTimeout(absl::Milliseconds(Below(3)), writer.WaitClosed()));
            if (closed.cancelled()) closed.value();
          }
          break;
      }
      if (!ok) break;
    }
  }

  Coro<void> Client(SocketAddress address) {
    while (true) {
      absl::StatusOr<Connection> connection = co_await OpenConnection(address);
      if (!connection.ok()) co_return;
      Outcome<void> outcome =
          co_await NoThrow(Behave(std::move(connection->reader), std::move(connection->writer)));
      if (outcome.cancelled()) outcome.value();
      co_await Yield();
    }
  }

 private:
  std::mt19937 random_;
};

Coro<void> RunChaos(uint32_t seed, int clients, int rounds, Faults* faults = nullptr) {
  EventLoop& loop = GetRunningLoop();
  loop.SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
  Chaos chaos(seed);
  auto handler = [&chaos](StreamReader reader, StreamWriter writer) {
    return chaos.Behave(std::move(reader), std::move(writer));
  };
  absl::StatusOr<Server> server = co_await StartServer(handler, "127.0.0.1", 0);
  const SocketAddress address = server->addresses().front();
  if (faults != nullptr) faults->set_enabled(true);
  const auto start = [&] { return CreateTask(chaos.Client(address)); };
  std::vector<Task<void>> tasks;
  for (int i = 0; i < clients; ++i) tasks.push_back(start());

  for (int i = 0; i < rounds; ++i) {
    co_await Yield();
    if (chaos.Below(3) != 0) continue;
    std::vector<TaskRef> all = AllTasks();
    TaskRef& victim = all[chaos.Below(static_cast<uint32_t>(all.size()))];
    if (!(victim == CurrentTask())) victim.Cancel();
    Task<void>& one = tasks[chaos.Below(static_cast<uint32_t>(tasks.size()))];
    if (one.Done()) one = start();
  }

  for (Task<void>& task : tasks) {
    task.Cancel();
    co_await NoThrow(task);
  }
  server->Close();
  server->AbortClients();
  for (TaskRef& task : AllTasks()) {
    if (!(task == CurrentTask())) task.Cancel();
  }
  Outcome<void> closed = co_await NoThrow(WithTimeout(absl::Seconds(20), server->WaitClosed()));
  EXPECT_TRUE(closed.has_value()) << "seed " << seed << ": " << server->connection_count()
                                  << " connections are left";
  co_await Rounds(5);
  EXPECT_EQ(loop.slab_pool().outstanding_count(), 0u) << "seed " << seed;
}

WEFT_TEST_F_IN_REAL_TIME(NetChaosTest, NothingHangsOrLeaks) {
  for (uint32_t seed = 1; seed <= 6; ++seed) co_await RunChaos(seed, 30, 1500);
}

// The same over a kernel of which cancelling takes time.
TEST_F(NetChaosTest, NothingHangsOrLeaksIfCancellingTakesTime) {
  LateCancelPoller poller;
  RunOptions options;
  options.environment.poller = &poller;
  auto main = []() -> Coro<void> {
    for (uint32_t seed = 1; seed <= 6; ++seed) co_await RunChaos(seed, 30, 1500);
  };
  weft::Run(main(), options);
  EXPECT_EQ(poller.pending(), 0u);
}

// The same over one that fails, in all ways, all the time.
TEST_F(NetChaosTest, NothingHangsOrLeaksIfTheKernelFails) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    Faults faults = Faults::Random(seed, /*one_in=*/50);
    faults.set_enabled(false);  // Until there is a server.
    FaultyPoller poller(&faults);
    FaultySocketApi sockets(&faults);
    RunOptions options;
    options.environment.poller = &poller;
    options.environment.socket_api = &sockets;
    auto main = [seed, &faults]() -> Coro<void> { co_await RunChaos(seed, 30, 1500, &faults); };
    weft::Run(main(), options);
    EXPECT_EQ(poller.pending(), 0u);
    EXPECT_GT(faults.count(), 10u);
  }
}

TEST_F(NetChaosTest, ALoopMayBeClosedAtAnyTimeIfCancellingTakesTime) {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    LateCancelPoller poller;
    LoopOptions options;
    options.environment.poller = &poller;
    std::unique_ptr<EventLoop> loop = EventLoop::Create(options).value();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    Task<void> main = loop->CreateTask(RunChaos(seed, 10, 1000));
    for (uint32_t i = 0; i < 5 + seed * 5; ++i) loop->RunOnce(absl::ZeroDuration());
    loop->Close();
    EXPECT_EQ(poller.pending(), 0u);
  }
}

// The same, and the loop is closed in the midst of it.
TEST_F(NetChaosTest, ALoopMayBeClosedAtAnyTime) {
  for (uint32_t seed = 1; seed <= 25; ++seed) {
    std::unique_ptr<EventLoop> loop = EventLoop::Create().value();
    loop->SetExceptionHandler([](EventLoop&, const ExceptionContext&) {});
    Task<void> main = loop->CreateTask(RunChaos(seed, 10, 1000));
    for (uint32_t i = 0; i < 5 + seed * 3; ++i) loop->RunOnce(absl::ZeroDuration());
    loop->Close();
  }
}

}  // namespace
}  // namespace weft
