// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_POLLER_REGISTRY_H_
#define WEFT_POLLER_POLLER_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "weft/poller/poller.h"

namespace weft {

// A backend as the registry knows it.
struct PollerBackend {
  std::string name;

  // Makes one. Called with the registry unlocked, from any thread.
  std::unique_ptr<Poller> (*make)() = nullptr;

  // Whether it works here: OK, or the reason why not. Null: it always does.
  absl::Status (*probe)() = nullptr;

  // The highest one that works is the default; those below zero are taken only
  // by name. weft's own default has 100.
  int priority = 0;
};

// The pollers that a program can choose from. Those of the platform are in it
// from the start; a program adds its own:
//
//   weft::RegisterPoller({.name = "mine", .make = &MakeMine, .probe = &ProbeMine});
//
// The chosen one is that of `LoopOptions`, else that of the environment variable
// WEFT_POLLER, else the default.
//
// Threads: all of these may be called from any thread.

// Adds a backend, or replaces the one of the same name.
void RegisterPoller(PollerBackend backend);

// `chosen` if it is not empty, else WEFT_POLLER if that is set and not empty,
// else `DefaultPollerName()`.
std::string ResolvePollerName(std::string_view chosen);

// The backend with the highest priority that works here; empty if there is none.
std::string DefaultPollerName();

// Makes the poller of that name; the one that `ResolvePollerName("")` names if
// it is empty.
// Errors: INVALID_ARGUMENT for an unknown name, with the known ones;
// UNAVAILABLE, with the reason, for one that does not work here.
absl::StatusOr<std::unique_ptr<Poller>> MakePoller(std::string_view name = "");

struct PollerInfo {
  std::string name;
  absl::Status status;  // OK, or why it does not work here.
};

// All that are registered, the preferred ones first.
std::vector<PollerInfo> AvailablePollers();

}  // namespace weft

#endif  // WEFT_POLLER_POLLER_REGISTRY_H_
