// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/socket_state.h"

#include "absl/strings/str_cat.h"
#include "weft/poller/operation.h"

namespace weft::internal {
namespace {

// Deletes itself when it is done.
class Retirement final : public Operation, public PooledObject {
 public:
  Retirement(NativeHandle handle, int flags, ClosedCallback closed)
      : Operation([](Runnable* runnable) { static_cast<Retirement*>(runnable)->Finish(); }),
        closed_(closed) {
    PrepareRetire(handle, flags);
  }

  void Finish() {
    const ClosedCallback closed = closed_;
    delete this;
    closed();
  }

 private:
  ClosedCallback closed_;
};

void Retire(SchedulerCore* core, NativeHandle handle, int flags, ClosedCallback closed) {
  Poller& poller = static_cast<EventLoop*>(core->owner)->poller();
  auto* retirement = new Retirement(handle, flags, closed);
  if (poller.Start(retirement) == StartResult::kDone) return retirement->Finish();
  if (!core->closed) return;

  // The loop has drained its poller and polls no more. What is left there is what
  // destructors have retired, as this; a kernel that completes takes a moment.
  ReadyQueue done;
  while (retirement->state == Operation::State::kPending) {
    if (!poller.Wait(TimePoint::InfiniteFuture(), &done).ok()) break;
  }
  poller.Collect(&done);
  while (Runnable* next = done.PopFront()) next->Run();
}

}  // namespace

void CloseHandle(SchedulerCore* core, SocketApi* api, NativeHandle handle, ClosedCallback closed) {
  if (core->owner != nullptr) return Retire(core, handle, /*flags=*/0, closed);
  api->Close(handle);  // Its poller is gone, and with it all that it knew.
  closed();
}

void ForgetHandle(SchedulerCore* core, NativeHandle handle) {
  if (core->owner != nullptr) Retire(core, handle, kKeepOpen, ClosedCallback());
}

std::string SocketState::Describe(std::string_view what, std::string_view preposition) const {
  if (!peer_.is_none() && !(peer_.is_unix() && peer_.path().empty())) {
    return absl::StrCat(what, " ", preposition, " ", peer_.ToString());
  }
  if (is_open()) return absl::StrCat(what, " on socket ", handle_);
  return std::string(what);
}

}  // namespace weft::internal
