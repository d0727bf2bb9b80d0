// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/future_state.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/exception_context.h"
#include "weft/core/log.h"
#include "weft/core/observer.h"

namespace weft::internal {
namespace {

// So many ends of futures may lie inside of each other.
constexpr int kMaxDepth = 50;

// A report that waits for its turn. If the loop closes before that, it is made
// then.
class QueuedReport {
 public:
  QueuedReport(Scheduler* scheduler, ExceptionContext context)
      : scheduler_(scheduler), context_(std::move(context)) {}
  QueuedReport(QueuedReport&& other) noexcept
      : scheduler_(std::exchange(other.scheduler_, nullptr)), context_(std::move(other.context_)) {}
  ~QueuedReport() { (*this)(); }

  void operator()() {
    if (scheduler_ == nullptr) return;
    std::exchange(scheduler_, nullptr)->HandleException(std::move(context_));
  }

 private:
  Scheduler* scheduler_;  // Null once it was made.
  ExceptionContext context_;
};

// Lets go of one that waited for a future that nobody can complete any more.
// Those that lie in a frame hold the future.
void DropWaiter(Runnable* waiter) {
  if (Observer::IsObserver(waiter)) {
    static_cast<Observer*>(waiter)->Drop();
  } else {
    static_cast<CallbackSlot*>(waiter)->Drop();
  }
}

}  // namespace

// A loop that is closed throws nothing: destructors come here.
void FutureState::CheckUseSlowly() const {
  if (!scheduler_->debug || scheduler_->closed) return;
  scheduler_->CheckThread();
  if (current_scheduler == nullptr || current_scheduler == scheduler_->owner) return;
  throw RuntimeError(absl::StrCat(kind(), " ", Repr(), " attached to a different loop"));
}

bool FutureState::Cancel(std::string message) {
  if (done()) return false;
  std::exception_ptr error;
  if (!message.empty()) error = std::make_exception_ptr(CancelledError(std::move(message)));
  return RequestCancel(this, error) == CancelAnswer::kAccepted;
}

const std::exception_ptr& FutureState::cancelled_error() {
  if (cancel_error_ == nullptr) cancel_error_ = MakeCancelledError();
  return cancel_error_;
}

Cancellable::Step FutureState::BeginCancel(const std::exception_ptr& error) {
  if (done()) return {nullptr, CancelAnswer::kRefused};
  FinishCancelled(error);
  return {nullptr, CancelAnswer::kAccepted};
}

std::string_view FutureState::StatusText() const {
  switch (status_) {
    case Status::kPending:
      return "pending";
    case Status::kCancelled:
      return "cancelled";
    case Status::kFinished:
      break;
  }
  return "finished";
}

std::string FutureState::OutcomeText() const {
  if (status_ != Status::kFinished) return "";
  if (const std::exception_ptr thrown = error()) {
    return absl::StrCat(" exception=", DescribeException(thrown));
  }
  const std::string value = value_text();
  return value.empty() ? "" : absl::StrCat(" result=", value);
}

std::string FutureState::Repr() const {
  return absl::StrCat("<", kind(), " ", StatusText(), OutcomeText(), ">");
}

void FutureState::ReportLater(std::string message) {
  ExceptionContext context(std::move(message));
  if (has_error()) context.exception = error();
  context.location = created_at_;
  context.future = FutureRef(FutureStateRef(this));
  SchedulerCore* scheduler = scheduler_.get();
  if (scheduler->closed) {
    Log(LogSeverity::kError, ToString(context));
    return;
  }
  // Not by CallSoon(), which throws in debug mode on another thread.
  Scheduler* owner = scheduler->owner;
  scheduler->WakeIfEmbedded();
  scheduler->ready.PushBack(
      owner->MakeCallback(QueuedReport(owner, std::move(context)), created_at_));
}

void FutureState::WakeAllWaiters() {
  if (ABSL_PREDICT_TRUE(!scheduler_->closed)) scheduler_->ready.Splice(&waiters_);
}

void FutureState::EndIfUnreferenced() {
  if (refs_ != callback_refs_) return;
  if (callback_refs_ > 0) {
    ++refs_;  // So that their letting go does not come back here.
    if (!GoesOnAlone()) {
      // Those that are queued will run and let go; those still here never run.
      while (Runnable* waiter = waiters().PopFront()) DropWaiter(waiter);
    }
    --refs_;
    if (callback_refs_ > 0) return;
  }
  if ((flags_ & kUnretrieved) != 0) {
    flags_ &= ~kUnretrieved;
    ReportLater(absl::StrCat(kind(), " exception was never retrieved"));
    return;
  }
  delete this;
}

void FutureState::OnUnreferenced() {
  SchedulerCore* const core = scheduler_.get();
  if (ABSL_PREDICT_FALSE((flags_ & (kUnreferenced | kUnretrieved)) != 0 || callback_refs_ > 0 ||
                         core->ending_futures >= kMaxDepth)) {
    return EndSlowly();
  }
  ++core->ending_futures;
  delete this;
  if (ABSL_PREDICT_FALSE(--core->ending_futures == 0 &&
                         (core->has_unreferenced || core->refs == 0))) {
    EndOthers(core);
  }
}

// Of one that callbacks refer to, whose error nobody has seen, or that is too deep.
void FutureState::EndSlowly() {
  if ((flags_ & kUnreferenced) != 0) return;
  SchedulerCore* const core = scheduler_.get();
  if (core->ending_futures >= kMaxDepth) {
    flags_ |= kUnreferenced;
    core->unreferenced.push_back(this);
    core->has_unreferenced = true;
    return;
  }
  ++core->ending_futures;
  EndIfUnreferenced();
  if (--core->ending_futures == 0) EndOthers(core);
}

// Those that were too deep; and the core, if they were the last to refer to it.
void FutureState::EndOthers(SchedulerCore* core) {
  while (!core->unreferenced.empty()) {
    FutureState* next = core->unreferenced.back();
    core->unreferenced.pop_back();
    next->flags_ &= ~kUnreferenced;
    ++core->ending_futures;
    next->EndIfUnreferenced();
    --core->ending_futures;
  }
  core->has_unreferenced = false;
  if (core->refs == 0) core->DeleteUnlessEnding();
}

void DescribedList::Add(const FutureState& state) {
  if (state.done()) return;
  if (++count_ > kMost) return;
  absl::StrAppend(&text_, count_ == 1 ? ": " : ", ", state.Repr());
}

std::string DescribedList::text() const {
  if (count_ <= kMost) return text_;
  return absl::StrCat(text_, ", and ", count_ - kMost, " more");
}

void ThrowNoResult(FutureState& state) {
  if (!state.done()) throw InvalidStateError("Result is not set.");
  if (state.cancelled()) std::rethrow_exception(state.cancelled_error());
  if (state.moved_out()) throw InvalidStateError("Result was moved out");
  state.MarkRetrieved();
  std::rethrow_exception(state.error());
}
void ThrowInvalidState() { throw InvalidStateError("invalid state"); }

}  // namespace weft::internal
