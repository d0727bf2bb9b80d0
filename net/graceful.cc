// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/graceful.h"

#include <utility>

#include "weft/core/no_throw.h"
#include "weft/core/sleep.h"
#include "weft/core/task.h"
#include "weft/core/wait.h"

namespace weft {
namespace {

using Servers = std::vector<Server*>;

Coro<void> WaitDone(Servers servers) {
  for (Server* server : servers) co_await server->WaitDone();
}

// A signal, if somebody receives them; else for ever.
Coro<void> Hurry(SignalReceiver* receiver) {
  if (receiver == nullptr) {
    co_await GetRunningLoop().CreateFuture<void>();
  } else {
    co_await receiver->Next();
  }
}

// Ends a task, and drops what came of it.
Coro<void> End(Task<void> task) {
  if (task.Done()) co_return;
  task.Cancel();
  co_await Wait(std::vector<Task<void>>(1, task));
}

// Whether all was done before the time was over, or a signal came.
Coro<bool> DoneWithin(Servers servers, absl::Duration time, SignalReceiver* receiver) {
  Task<void> done = CreateTask(WaitDone(std::move(servers)));
  Task<void> hurry = CreateTask(Hurry(receiver));
  std::vector<Task<void>> either = {done, hurry};
  auto first = co_await NoThrow(Wait(either, kFirstCompleted, time));
  const bool is_done = done.Done();
  co_await End(std::move(done));
  co_await End(std::move(hurry));
  std::move(first).value();  // Throws if this was cancelled.
  co_return is_done;
}

Coro<ShutdownReport> ShutDownInSteps(const Servers& servers, const ShutdownOptions& options,
                                     SignalReceiver* receiver) {
  ShutdownReport report;
  for (Server* server : servers) {
    server->Close();
    report.open += server->connection_count();
  }
  if (options.on_stopping != nullptr) options.on_stopping();
  bool is_done = co_await DoneWithin(servers, options.grace, receiver);
  if (is_done) co_return report;

  co_await Yield();  // Handlers of connections that had only just come begin.
  for (Server* server : servers) report.cancelled += server->CancelClients();
  is_done = co_await DoneWithin(servers, options.cleanup, receiver);
  if (is_done) co_return report;

  for (Server* server : servers) {
    report.aborted += server->connection_count();
    server->AbortClients();
  }
  for (Server* server : servers) co_await server->WaitClosed();
  co_return report;
}

// Because of `signal`, and `receiver` has those that come meanwhile; 0 and null: neither.
Coro<ShutdownReport> ShutDownBecauseOf(int signal, SignalReceiver* receiver, Servers servers,
                                       ShutdownOptions options) {
  ShutdownReport report = co_await ShutDownInSteps(servers, options, receiver);
  report.signal = signal;
  if (options.on_stopped != nullptr) options.on_stopped(report);
  co_return report;
}

}  // namespace

Coro<ShutdownReport> ShutDown(std::vector<Server*> servers, ShutdownOptions options) {
  return ShutDownBecauseOf(0, nullptr, std::move(servers), std::move(options));
}

Coro<ShutdownReport> ServeUntilSignal(std::vector<Server*> servers, ServeOptions options) {
  SignalReceiver receiver(options.signals);
  Outcome<int> signal = co_await NoThrow(receiver.Next());
  if (!signal.has_value()) {
    for (Server* server : servers) server->Close();
  }
  const int number = std::move(signal).value();  // Throws if this was cancelled.
  co_return co_await ShutDownBecauseOf(number, &receiver, std::move(servers), options);
}

Coro<ShutdownReport> ServeUntilSignal(Server& server, ServeOptions options) {
  return ServeUntilSignal(std::vector<Server*>(1, &server), std::move(options));
}

Coro<void> ServeUntilCancelled(std::vector<Server*> servers, ShutdownOptions options) {
  Outcome<void> waited = co_await NoThrow(Sleep(absl::InfiniteDuration()));
  co_await ShutDown(std::move(servers), options);
  waited.value();  // Throws: there is no other end.
}

Coro<void> ServeUntilCancelled(Server& server, ShutdownOptions options) {
  return ServeUntilCancelled(std::vector<Server*>(1, &server), std::move(options));
}

}  // namespace weft
