// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/gather.h"

#include <cstddef>
#include <exception>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"

namespace weft::internal {

void GatherLogic::Start(Observer* children, size_t count) {
  children_ = children;
  count_ = count;
  for (size_t i = 0; i < count_; ++i) {
    if (children_[i].target()->scheduler() != outer()->scheduler()) {
      throw ValueError(
          "The future belongs to a different loop than the one specified as the loop argument");
    }
  }

  // Those that are done already count at once, but behind the others: only when
  // all are waited for is `missing_` what it says.
  for (size_t i = 0; i < count_; ++i) {
    FutureState* child = children_[i].target();
    if (!child->Mark()) continue;
    ++missing_;
    if (child->done()) continue;
    children_[i].Start(this);
    ++waiting_;
  }
  const size_t unique = missing_;
  for (size_t i = 0; i < count_; ++i) {
    FutureState* child = children_[i].target();
    if (!child->is_marked()) continue;
    child->Unmark();
    if (child->done()) Count(*child);
  }
  if (unique == 0) SetResults();
}

void GatherLogic::OnTargetDone(Observer* child) {
  --waiting_;
  Count(*child->target());
}

void GatherLogic::Count(FutureState& child) {
  --missing_;
  if (outer()->done()) {
    child.MarkRetrieved();
    return;
  }
  if (!collects_errors_) {
    if (child.cancelled()) return SetFailure(child.cancelled_error(), /*is_cancellation=*/true);
    if (child.has_error()) {
      child.MarkRetrieved();
      const std::exception_ptr error = child.error();
      return SetFailure(error, IsCancelledError(error));
    }
  }
  if (missing_ > 0) return;
  if (cancel_requested_) {
    // What they ended with is dropped: nobody is to hear of it.
    for (size_t i = 0; i < count_; ++i) children_[i].target()->MarkRetrieved();
    SetFailure(child.cancelled() ? child.cancelled_error() : MakeCancelledError(),
               /*is_cancellation=*/true);
  } else {
    SetResults();
  }
}

Cancellable::Step GatherLogic::AskNext(size_t asked, CancelAnswer answers) {
  if (asked < count_) return {children_[asked].target(), CancelAnswer::kAccepted};
  // Then it ends as cancelled, whatever the children make of it.
  if (answers == CancelAnswer::kAccepted) cancel_requested_ = true;
  return {nullptr, answers};
}

std::string GatherLogic::DescribeChildren() const {
  DescribedList children;
  for (size_t i = 0; i < count_; ++i) children.Add(*children_[i].target());
  return absl::StrCat("<Gather ", count_ - missing_, " of ", count_, " done>", children.text());
}

bool GatherLogic::LetGoOfChildren() {
  if (!is_let_go_) {
    is_let_go_ = true;
    for (size_t i = 0; i < count_; ++i) {
      children_[i].Weaken();
    }
  }
  return waiting_ > 0;
}

}  // namespace weft::internal
