// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_GRACEFUL_H_
#define WEFT_NET_GRACEFUL_H_

#include <csignal>
#include <cstddef>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "weft/core/coro.h"
#include "weft/loop/next_signal.h"
#include "weft/net/server.h"

namespace weft {

// How a shutdown went.
struct ShutdownReport {
  int signal = 0;        // Which one it was; 0 for ShutDown().
  size_t open = 0;       // Connections, when the servers stopped to listen.
  size_t cancelled = 0;  // Handlers that were not over by the end of the grace.
  size_t aborted = 0;    // Connections that were cut off after that.
};

// How servers are shut down.
struct ShutdownOptions {
  ShutdownOptions() {}

  // How long handlers may go on as if nothing had happened.
  absl::Duration grace = absl::Seconds(10);

  // How long they may then take to clean up when they have been cancelled, and for
  // what they wrote to leave.
  absl::Duration cleanup = absl::Seconds(2);

  // Called when the servers listen no more. Here an application says good-bye, ends
  // connections that are idle (Server::CloseClients()), stops what feeds the others.
  std::function<void()> on_stopping;

  // Called at the end, with what is returned.
  std::function<void(const ShutdownReport& report)> on_stopped;
};

struct ServeOptions : ShutdownOptions {
  ServeOptions() {}

  SignalSet signals = SignalSet(SIGTERM, SIGINT);
};

// Shuts servers down, in this order: they listen no more; their handlers may finish,
// until the grace is over; those that are left are cancelled and may clean up; then what
// is still open is cut off. Ends as soon as all is done. Handlers that swallow the
// cancellation are left to Run().
//
// The servers are the caller's, and outlive it. If it is cancelled itself, they are
// closed, and what goes on in them is left.
Coro<ShutdownReport> ShutDown(std::vector<Server*> servers,
                              ShutdownOptions options = ShutdownOptions());

// Serves until a signal comes, and then shuts down. Another signal during the grace ends
// the grace; one after that, the cleanup.
//
//   absl::StatusOr<Server> server = co_await StartServer(Handle, host, port);
//   ...
//   co_await ServeUntilSignal(*server);
//
// Errors: those of SignalReceiver: it is for the main thread.
Coro<ShutdownReport> ServeUntilSignal(std::vector<Server*> servers,
                                      ServeOptions options = ServeOptions());
Coro<ShutdownReport> ServeUntilSignal(Server& server, ServeOptions options = ServeOptions());

// Serves until it is cancelled, shuts down, and only then ends, with CancelledError: for
// the main of a loop in a LoopGroup, whose Stop() cancels it. Another cancellation
// leaves the servers closed, and what goes on in them as it is.
Coro<void> ServeUntilCancelled(std::vector<Server*> servers,
                               ShutdownOptions options = ShutdownOptions());
Coro<void> ServeUntilCancelled(Server& server, ShutdownOptions options = ShutdownOptions());

}  // namespace weft

#endif  // WEFT_NET_GRACEFUL_H_
