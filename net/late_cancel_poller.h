// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_LATE_CANCEL_POLLER_H_
#define WEFT_NET_LATE_CANCEL_POLLER_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/poller/poller.h"
#include "weft/poller/poller_registry.h"

namespace weft {

// The default poller, but for that cancelling takes a round, and comes too late
// where the kernel is faster: as it is with kernels that complete. For tests.
class LateCancelPoller final : public Poller {
 public:
  LateCancelPoller() : inner_(MakePoller("").value()) {}

  std::string_view name() const override { return "late_cancel"; }

  StartResult Start(Operation* op) override {
    const StartResult result = inner_->Start(op);
    Sync();
    return result;
  }

  void Cancel(Operation* op) override {
    if (op->state == Operation::State::kPending) {
      cancelled_.push_back(op);
    } else {
      inner_->Cancel(op);
    }
  }

  void CancelAll() override {
    cancelled_.clear();
    inner_->CancelAll();
    Sync();
  }

  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override {
    const StartResult result = inner_->FetchLent(op, pool, slab);
    Sync();
    return result;
  }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override {
    // What is ready by now wins over the cancellations.
    const bool is_late = !cancelled_.empty() || !ended_.empty();
    absl::Status status = inner_->Wait(is_late ? TimePoint::InfinitePast() : deadline, done);
    for (Operation* op : std::exchange(cancelled_, {})) inner_->Cancel(op);
    Sync();
    Collect(done);
    return status;
  }

  std::shared_ptr<Waker> MakeWaker() override { return inner_->MakeWaker(); }

 private:
  void Sync() {
    inner_->Collect(&ended_);
    pending_ = inner_->pending();
  }

  std::unique_ptr<Poller> inner_;
  std::vector<Operation*> cancelled_;
};

}  // namespace weft

#endif  // WEFT_NET_LATE_CANCEL_POLLER_H_
