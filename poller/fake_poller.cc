// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/fake_poller.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/base/macros.h"

namespace weft {

FakePoller::~FakePoller() {
  for (Operation* op : started_) {
    op->result = -ECANCELED;
    op->state = Operation::State::kDone;
  }
}

StartResult FakePoller::Start(Operation* op) {
  ABSL_HARDENING_ASSERT(op->state != Operation::State::kPending && !op->is_linked());
  if (op->opcode == OpCode::kRetire) {
    const std::vector<Operation*> before = started_;
    for (Operation* other : before) {
      if (other->handle == op->handle) Cancel(other);
    }
    retired_.push_back(op->handle);
    op->state = Operation::State::kDone;
    ended_.PushBack(op);
    return StartResult::kPending;
  }
  if (!inline_results_.empty()) {
    op->result = inline_results_.front();
    op->state = Operation::State::kDone;
    inline_results_.pop_front();
    return StartResult::kDone;
  }
  op->state = Operation::State::kPending;
  started_.push_back(op);
  ++pending_;
  return StartResult::kPending;
}

void FakePoller::Finish(Operation* op, int64_t result) { End(op, result, &finished_); }

void FakePoller::Cancel(Operation* op) {
  if (op->state == Operation::State::kPending) End(op, -ECANCELED, &ended_);
}

void FakePoller::CancelAll() {
  while (!started_.empty()) Cancel(started_.front());
}

void FakePoller::End(Operation* op, int64_t result, ReadyQueue* queue) {
  const auto place = std::find(started_.begin(), started_.end(), op);
  ABSL_HARDENING_ASSERT(place != started_.end());
  started_.erase(place);
  --pending_;
  op->result = result;
  op->state = Operation::State::kDone;
  queue->PushBack(op);
}

void FakePoller::FeedLent(NativeHandle handle, std::string bytes) {
  fed_.push_back({handle, std::move(bytes)});
}

StartResult FakePoller::FetchLent(Operation* op, SlabPool* pool, Slab* slab) {
  slab->Reset();
  if (op->result < 0) return StartResult::kDone;
  const auto place = std::find_if(fed_.begin(), fed_.end(),
                                  [&](const Fed& fed) { return fed.handle == op->handle; });
  if (place == fed_.end()) {
    op->state = Operation::State::kPending;
    started_.push_back(op);
    ++pending_;
    return StartResult::kPending;
  }
  op->result = static_cast<int64_t>(place->bytes.size());
  if (!place->bytes.empty()) {
    *slab = pool->Take();
    ABSL_HARDENING_ASSERT(place->bytes.size() <= slab->size());
    std::memcpy(slab->data(), place->bytes.data(), place->bytes.size());
  }
  fed_.erase(place);
  return StartResult::kDone;
}

absl::Status FakePoller::Wait(TimePoint deadline, ReadyQueue* done) {
  deadlines_.push_back(deadline);
  if (on_wait != nullptr) on_wait(deadline);
  Collect(done);
  done->Splice(&finished_);
  return std::exchange(wait_status_, absl::OkStatus());
}

}  // namespace weft
