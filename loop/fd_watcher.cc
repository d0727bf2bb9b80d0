// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/fd_watcher.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"

namespace weft::internal {

FdWatcher::~FdWatcher() = default;

absl::Status FdWatcher::Add(Direction direction, NativeHandle handle,
                            absl::AnyInvocable<void()> callback, const SourceLocation& location) {
  if (handle < 0) throw ValueError(absl::StrCat("Invalid file descriptor: ", handle));
  if (callback == nullptr) throw ValueError("callback: a callable was expected, got an empty one");
  auto watch = std::make_unique<Watch>(this);
  watch->callback = std::move(callback);
  watch->location = location;
  watch->number = ++watches_made_;
  watch->context = scheduler_->current_context();
  switch (StartWatch(watch.get(), direction, handle, /*flags=*/0)) {
    case StartResult::kPending:
      break;
    case StartResult::kDone:
      if (watch->result < 0) {
        return absl::ErrnoToStatus(
            static_cast<int>(-watch->result),
            absl::StrCat(direction == Direction::kRead ? "AddReader" : "AddWriter",
                         " on descriptor ", handle));
      }
      ToStart(direction).PushBack(watch.get());  // Ready: the next poll reports it.
      break;
  }
  std::unique_ptr<Watch> replaced = std::exchange(WatchesOf(direction)[handle], std::move(watch));
  if (replaced != nullptr) Discard(std::move(replaced));
  return absl::OkStatus();
}

bool FdWatcher::Remove(Direction direction, NativeHandle handle) {
  Watches& watches = WatchesOf(direction);
  auto found = watches.find(handle);
  if (found == watches.end()) return false;
  std::unique_ptr<Watch> watch = std::move(found->second);
  watches.erase(found);
  Discard(std::move(watch));
  return true;
}

// The captures go last: their destructors may come back here.
void FdWatcher::Discard(std::unique_ptr<Watch> watch) {
  const absl::AnyInvocable<void()> callback = std::move(watch->callback);
  const ContextRef context = std::move(watch->context);
  watch->watcher = nullptr;
  if (watch->state == Operation::State::kPending) {
    poller_->Cancel(watch.release());  // It runs, and deletes the orphan.
  } else {
    watch.reset();  // Leaves the queue that it is in.
  }
}

StartResult FdWatcher::StartWatch(Watch* watch, Direction direction, NativeHandle handle,
                                  int flags) {
  if (direction == Direction::kRead) {
    watch->PrepareWaitReadable(handle, flags);
  } else {
    watch->PrepareWaitWritable(handle, flags);
  }
  return poller_->Start(watch);
}

void FdWatcher::BeforePoll(ReadyQueue* reported) {
  for (Direction direction : {Direction::kRead, Direction::kWrite}) {
    while (Watch* watch = ToStart(direction).PopFront()) {
      const StartResult started = StartWatch(watch, direction, watch->handle, kWaitAgain);
      if (started == StartResult::kDone) reported->PushBack(watch);
    }
  }
}

const SourceLocation* FdWatcher::LocationOf(const Runnable* runnable) {
  if (runnable->run_fn() != &OnReported) return nullptr;
  return &static_cast<const Watch*>(runnable)->location;
}

std::vector<std::string> FdWatcher::DescribeAll() const {
  std::vector<std::string> texts;
  for (const Watches* watches : {&readers_, &writers_}) {
    for (const auto& [handle, watch] : *watches) {
      texts.push_back(absl::StrCat(watches == &readers_ ? "<reader" : "<writer", " of descriptor ",
                                   handle, " created at ", ToString(watch->location), ">"));
    }
  }
  return texts;
}

void FdWatcher::OnReported(Runnable* runnable) {
  auto* watch = static_cast<Watch*>(runnable);
  if (watch->watcher == nullptr) {
    delete watch;
    return;
  }
  watch->watcher->RunCallback(watch);
}

void FdWatcher::RunCallback(Watch* watch) {
  if (closed_) return;
  const Direction direction = DirectionOf(*watch);
  const NativeHandle handle = watch->handle;
  // An error is for the callback to find, by the call that it makes. Only a
  // descriptor that is not open any more can be watched no longer.
  const bool again = watch->result != -EBADF;
  if (again) ToStart(direction).PushBack(watch);
  const uint64_t number = watch->number;
  absl::AnyInvocable<void()> callback = std::move(watch->callback);
  const SourceLocation location = watch->location;
  ContextRef context = watch->context;
  ContextRef*& current = scheduler_->core()->current_context;
  ContextRef* const previous = std::exchange(current, &context);
  try {
    callback();
  } catch (...) {
    if (!IsHandlingKeyboardInterrupt() || !scheduler_->Interrupt()) {
      ExceptionContext report(absl::StrCat("Exception in callback ", ToString(location)));
      report.exception = std::current_exception();
      report.location = location;
      scheduler_->HandleException(std::move(report));
    }
  }
  current = previous;
  auto found = WatchesOf(direction).find(handle);
  if (found == WatchesOf(direction).end() || found->second->number != number) return;
  watch->callback = std::move(callback);
  watch->context = std::move(context);
  if (!again) Remove(direction, handle);
}

void FdWatcher::Close() {
  closed_ = true;
  for (Watches* watches : {&readers_, &writers_}) {
    while (!watches->empty()) {
      std::unique_ptr<Watch> watch = std::move(watches->begin()->second);
      watches->erase(watches->begin());
      Discard(std::move(watch));
    }
  }
}

}  // namespace weft::internal
