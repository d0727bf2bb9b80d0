// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/process/spawner.h"

namespace weft {
namespace {

class NoSpawner final : public Spawner {
 public:
  absl::StatusOr<std::unique_ptr<Child>> Spawn(EventLoop&, const SpawnRequest&,
                                               ExitCallback) override {
    return absl::UnimplementedError(
        "processes are started on Linux only: elsewhere nobody has written yet how to wait for "
        "the end of one without a signal handler");
  }
};

}  // namespace

Spawner* SystemSpawner() {
  static NoSpawner spawner;
  return &spawner;
}

}  // namespace weft
