// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_POLLER_WRAPPER_H_
#define WEFT_POLLER_POLLER_WRAPPER_H_

#include <memory>
#include <string_view>
#include <utility>

#include "weft/poller/poller.h"
#include "weft/poller/poller_registry.h"

namespace weft {

// PollerWrapper
//
// A poller that hands everything to another one. For tests that look at what passes,
// or change it: they derive from it, and call these functions for what is to go on.
//
//   struct CountingPoller : PollerWrapper {
//     StartResult Start(Operation* op) override {
//       ++starts;
//       return PollerWrapper::Start(op);
//     }
//     int starts = 0;
//   };
//
// Threads: as `Poller`.
class PollerWrapper : public Poller {
 public:
  // Null: the default poller.
  explicit PollerWrapper(std::unique_ptr<Poller> inner = nullptr)
      : inner_(inner != nullptr ? std::move(inner) : MakePoller("").value()) {}

  std::string_view name() const override { return inner_->name(); }

  StartResult Start(Operation* op) override {
    const StartResult result = inner_->Start(op);
    Sync();
    return result;
  }

  void Cancel(Operation* op) override {
    inner_->Cancel(op);
    Sync();
  }

  void CancelAll() override {
    inner_->CancelAll();
    Sync();
  }

  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override {
    const StartResult result = inner_->FetchLent(op, pool, slab);
    Sync();
    return result;
  }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override {
    Collect(done);
    absl::Status status = inner_->Wait(deadline, done);
    Sync();
    Collect(done);
    return status;
  }

  std::shared_ptr<Waker> MakeWaker() override { return inner_->MakeWaker(); }
  NativeHandle BackendFd() override { return inner_->BackendFd(); }
  void ArmBackend(TimePoint deadline) override { inner_->ArmBackend(deadline); }

 protected:
  Poller& inner() { return *inner_; }

  // What the inner one has ended without the kernel, and how many are pending there.
  void Sync() {
    inner_->Collect(&ended_);
    pending_ = inner_->pending();
  }

 private:
  std::unique_ptr<Poller> inner_;
};

}  // namespace weft

#endif  // WEFT_POLLER_POLLER_WRAPPER_H_
