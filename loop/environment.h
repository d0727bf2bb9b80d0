// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_ENVIRONMENT_H_
#define WEFT_LOOP_ENVIRONMENT_H_

#include <string>

#include "absl/time/time.h"
#include "weft/core/clock.h"
#include "weft/executor/executor.h"
#include "weft/poller/poller.h"
#include "weft/poller/socket_api.h"

namespace weft {

class Resolver;  // net/resolver.h
class Signals;   // loop/signals.h
class Spawner;   // process/spawner.h

// Environment
//
// All that a loop gets from outside and that is not the same in every run. A
// test replaces what it wants to decide itself:
//
//   VirtualClock clock;
//   RunOptions options;
//   options.environment.clock = &clock;
//
// Null stands for the real thing. What is named here is the caller's, and
// outlives the loop.
struct Environment {
  Environment() {}

  Clock* clock = nullptr;           // SteadyClock.
  Poller* poller = nullptr;         // The one that LoopOptions::poller names.
  SocketApi* socket_api = nullptr;  // SystemSocketApi().
  Executor* executor = nullptr;     // A ThreadPool of the loop's own, when first needed.
  Spawner* spawner = nullptr;       // SystemSpawner().
  Signals* signals = nullptr;       // SystemSignals().
  Resolver* resolver = nullptr;     // SystemResolver().
};

// What a loop is made with.
struct LoopOptions {
  LoopOptions() {}

  // Debug mode: checks that cost time. Also on if WEFT_DEBUG is set, and neither
  // empty nor "0".
  bool debug = false;

  // The poller's name ("epoll"); empty: WEFT_POLLER, else the platform's best.
  std::string poller;

  Environment environment;
};

// What a run is made with.
struct RunOptions : LoopOptions {
  RunOptions() {}

  // How long tasks that were cancelled at the end may take to clean up; those
  // that are not done by then are cancelled again and named. Default: for ever.
  absl::Duration shutdown_deadline = absl::InfiniteDuration();
};

}  // namespace weft

#endif  // WEFT_LOOP_ENVIRONMENT_H_
