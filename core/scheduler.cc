// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/scheduler.h"

#include "weft/core/callback.h"
#include "weft/core/errors.h"

namespace weft {
namespace internal {

constinit thread_local Scheduler* current_scheduler = nullptr;

void SchedulerCore::CheckThreadSlowly() const {
  WakeIfEmbedded();
  if (!debug || !running.load(std::memory_order_relaxed) || current_scheduler == owner) return;
  throw RuntimeError(
      "Non-thread-safe operation invoked on an event loop other than the current one");
}

void SchedulerCore::DeleteUnlessEnding() {
  if (ending_futures == 0) delete this;
}

void SchedulerCore::WakeForeignLoop() const {
  if (owner != nullptr) owner->WakeForeignLoop();
}

ContextRef SchedulerCore::GetContext() const {
  if (current_context != &ContextOfNothing()) return *current_context;
  if (current_scheduler != nullptr || outside_context == nullptr || !*outside_context) return {};
  return (*outside_context)->Clone();
}

void SchedulerCore::CopyContextSlowly(CallbackSlot* target) const {
  if (current_context == &ContextOfNothing()) target->set_foreign();
  if (ContextRef context = GetContext()) target->set_context(std::move(context));
}

void SchedulerCore::CopyContextOfTimerSlowly(CallbackSlot* target) const {
  if (current_scheduler == nullptr && outside_context == nullptr) return;  // Nothing runs.
  if (ContextRef context = GetContext()) target->set_context(std::move(context));
}

}  // namespace internal

void Scheduler::ThrowNoRunningLoop() { throw RuntimeError("no running event loop"); }

void Scheduler::CheckCall() const {
  if (closed()) throw RuntimeError("Event loop is closed");
  CheckThread();
}

}  // namespace weft
