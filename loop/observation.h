// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_OBSERVATION_H_
#define WEFT_LOOP_OBSERVATION_H_

#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weft/core/runnable.h"
#include "weft/core/task_state.h"
#include "weft/loop/instrument.h"
#include "weft/loop/loop_progress.h"

namespace weft {

class EventLoop;

namespace internal {

// How a loop runs a batch while somebody looks on: debug mode, which times each
// callback; instruments; a watchdog. Without any of them the loop does not come
// here.
//
// Threads: belongs to the loop's thread.
class Observation {
 public:
  explicit Observation(EventLoop* loop) : loop_(loop) {}
  Observation(const Observation&) = delete;
  ~Observation();

  void Add(Instrument* instrument);
  // False if it is not there.
  bool Remove(Instrument* instrument);

  // From now on the loop publishes what it runs; each call of Publish() has an end.
  std::shared_ptr<LoopProgress> Publish();
  void EndPublish();
  LoopProgress* progress() const { return progress_.get(); }

  // Runs all of `batch`; how many there were.
  int RunBatch(ReadyQueue* batch);

 private:
  void Run(Runnable* runnable);
  void RunStep(TaskState* task, const Activity& activity);
  void RunTimed(Runnable* runnable, const Activity& activity);
  bool IsSlot(const Runnable* runnable);
  template <class F>
  void Tell(F call);
  void Compact();

  EventLoop* const loop_;
  bool is_running_ = false;               // A batch.
  std::vector<Instrument*> instruments_;  // Null: removed during the batch.
  std::shared_ptr<LoopProgress> progress_;
  int publishers_ = 0;
  // What a run function belongs to does not change, and to find it out takes a lock.
  absl::flat_hash_map<Runnable::RunFn, bool> is_slot_;
};

}  // namespace internal
}  // namespace weft

#endif  // WEFT_LOOP_OBSERVATION_H_
