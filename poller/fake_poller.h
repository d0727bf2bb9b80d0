// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_FAKE_POLLER_H_
#define WEFT_POLLER_FAKE_POLLER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/poller/poller.h"

namespace weft {

// FakePoller
//
// A poller without a kernel, for tests of what is above: it keeps what is
// started, and the test says how it ends.
//
//   FakePoller poller;
//   ... start a read through the code under test ...
//   poller.Finish(poller.started().back(), 5);
//
// It never sleeps: a `Wait()` records its deadline, calls `on_wait` (which may
// finish operations, wake, or move a clock), and returns.
//
// Threads: as `Poller`.
class FakePoller final : public Poller {
 public:
  ~FakePoller() override;

  // --- For the test ---

  // The next `Start()` is done at once with this result; may be called for
  // several ahead.
  void FinishNextInline(int64_t result) { inline_results_.push_back(result); }

  // Ends a pending operation: the next `Wait()` gives it back.
  void Finish(Operation* op, int64_t result);

  // What a fetch of a `kRecvLent` on `handle` returns: these bytes, once. Without
  // any it is a false alarm.
  void FeedLent(NativeHandle handle, std::string bytes);

  // The next `Wait()` returns this.
  void FailNextWait(absl::Status status) { wait_status_ = std::move(status); }

  // Called in each `Wait()`, with its deadline.
  std::function<void(TimePoint)> on_wait;

  const std::vector<Operation*>& started() const { return started_; }     // And pending.
  const std::vector<TimePoint>& deadlines() const { return deadlines_; }  // Of all waits.
  const std::vector<NativeHandle>& retired() const { return retired_; }
  int wake_count() const { return waker_->count.load(std::memory_order_acquire); }

  // --- As a poller ---

  std::string_view name() const override { return "fake"; }
  StartResult Start(Operation* op) override;
  void Cancel(Operation* op) override;
  void CancelAll() override;
  StartResult FetchLent(Operation* op, SlabPool* pool, Slab* slab) override;
  absl::Status Wait(TimePoint deadline, ReadyQueue* done) override;
  std::shared_ptr<Waker> MakeWaker() override { return waker_; }

 private:
  struct CountingWaker final : Waker {
    void Wake() noexcept override { count.fetch_add(1, std::memory_order_acq_rel); }
    std::atomic<int> count{0};
  };
  struct Fed {
    NativeHandle handle;
    std::string bytes;
  };

  void End(Operation* op, int64_t result, ReadyQueue* queue);

  std::vector<Operation*> started_;
  std::vector<TimePoint> deadlines_;
  std::vector<NativeHandle> retired_;
  std::deque<int64_t> inline_results_;
  std::deque<Fed> fed_;
  ReadyQueue finished_;
  absl::Status wait_status_;
  std::shared_ptr<CountingWaker> waker_ = std::make_shared<CountingWaker>();
};

}  // namespace weft

#endif  // WEFT_POLLER_FAKE_POLLER_H_
