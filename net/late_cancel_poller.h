// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_LATE_CANCEL_POLLER_H_
#define WEFT_NET_LATE_CANCEL_POLLER_H_

#include <string_view>
#include <utility>
#include <vector>

#include "weft/poller/poller_wrapper.h"

namespace weft {

// The default poller, but for that cancelling takes a round, and comes too late
// where the kernel is faster: as it is with kernels that complete. For tests.
class LateCancelPoller final : public PollerWrapper {
 public:
  std::string_view name() const override { return "late_cancel"; }

  void Cancel(Operation* op) override {
    if (op->state == Operation::State::kPending) {
      cancelled_.push_back(op);
    } else {
      PollerWrapper::Cancel(op);
    }
  }

  void CancelAll() override {
    cancelled_.clear();
    PollerWrapper::CancelAll();
  }

  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override {
    // What is ready by now wins over the cancellations.
    const bool is_late = !cancelled_.empty() || !ended_.empty();
    absl::Status status = inner().Wait(is_late ? TimePoint::InfinitePast() : deadline, done);
    for (Operation* op : std::exchange(cancelled_, {})) inner().Cancel(op);
    Sync();
    Collect(done);
    return status;
  }

 private:
  std::vector<Operation*> cancelled_;
};

}  // namespace weft

#endif  // WEFT_NET_LATE_CANCEL_POLLER_H_
