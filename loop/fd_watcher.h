// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_FD_WATCHER_H_
#define WEFT_LOOP_FD_WATCHER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "weft/core/block_pool.h"
#include "weft/core/context.h"
#include "weft/core/intrusive_list.h"
#include "weft/core/scheduler.h"
#include "weft/core/source_location.h"
#include "weft/poller/operation.h"
#include "weft/poller/poller.h"

namespace weft::internal {

// The callbacks of AddReader() and AddWriter(): level-triggered, over operations
// that report once. A watch whose callback has run is started again just before
// the next poll; if the descriptor is ready still, that start says so at once,
// and counts as reported by that poll.
//
// Threads: belongs to the loop's thread.
class FdWatcher {
 public:
  enum class Direction { kRead, kWrite };

  FdWatcher(Scheduler* scheduler, Poller* poller) : scheduler_(scheduler), poller_(poller) {}
  ~FdWatcher();

  // See EventLoop::AddReader().
  absl::Status Add(Direction direction, NativeHandle handle, absl::AnyInvocable<void()> callback,
                   const SourceLocation& location);
  bool Remove(Direction direction, NativeHandle handle);

  // Just before a poll: appends those that are ready already to `reported`,
  // readers before writers of the same descriptor.
  void BeforePoll(ReadyQueue* reported);

  // Where the callback was added that `runnable` is to run, if it is one; else null.
  static const SourceLocation* LocationOf(const Runnable* runnable);

  // What is watched, in words: "<reader of descriptor 7 created at a.cc:12>".
  std::vector<std::string> DescribeAll() const;

  // Drops all callbacks without running them. The operations end by
  // Poller::CancelAll().
  void Close();

 private:
  // One callback, and the operation that it is. That one's memory must stay until the
  // poller gives it back; so a watch that is removed meanwhile becomes an orphan,
  // which goes when it runs. It is with the poller, in a queue or to be started.
  struct Watch final : Operation, PooledObject {
    explicit Watch(FdWatcher* owner) : Operation(&FdWatcher::OnReported), watcher(owner) {}

    FdWatcher* watcher;   // Null: an orphan.
    uint64_t number = 0;  // An address may come back, this does not.
    SourceLocation location;
    ContextRef context;  // The context variables of whoever added it.
    // Empty while it runs.
    absl::AnyInvocable<void()> callback;
  };

  using Watches = absl::flat_hash_map<NativeHandle, std::unique_ptr<Watch>>;

  static void OnReported(Runnable* runnable);
  Watches& WatchesOf(Direction direction) {
    return direction == Direction::kRead ? readers_ : writers_;
  }
  List<Watch>& ToStart(Direction direction) {
    return direction == Direction::kRead ? readers_to_start_ : writers_to_start_;
  }
  void RunCallback(Watch* watch);
  void Discard(std::unique_ptr<Watch> watch);
  static Direction DirectionOf(const Watch& watch) {
    return watch.opcode == OpCode::kWaitReadable ? Direction::kRead : Direction::kWrite;
  }
  StartResult StartWatch(Watch* watch, Direction direction, NativeHandle handle, int flags);

  Scheduler* const scheduler_;
  Poller* const poller_;
  Watches readers_;
  Watches writers_;
  List<Watch> readers_to_start_;
  List<Watch> writers_to_start_;
  uint64_t watches_made_ = 0;
  bool closed_ = false;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_FD_WATCHER_H_
