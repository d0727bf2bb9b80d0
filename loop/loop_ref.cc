// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/loop/loop_ref.h"

#include "weft/core/errors.h"

namespace weft::internal {

constinit thread_local LoopShared* running_shared = nullptr;

Handle LoopShared::Post(CallbackSlot* slot) {
  if (IsRunningHere()) {
    SchedulerCore* core = scheduler_->core();
    core->CopyContext(slot);
    core->ready.PushBack(slot);
    return Handle(scheduler_, slot);
  }
  Scheduler* here = Scheduler::Current();
  const ContextRef* context = here != nullptr ? here->core()->current_context : outside_context;
  if (context != nullptr && *context) slot->set_context((*context)->Clone());
  slot->set_posted();
  const Handle handle(scheduler_, slot);  // From the push on the slot is the loop's.
  if (inbox_.Push(slot) == Inbox::PushResult::kClosed) {
    slot->Drop();
    throw RuntimeError("Event loop is closed");
  }
  WakeIfAsleep();
  return handle;
}

}  // namespace weft::internal
