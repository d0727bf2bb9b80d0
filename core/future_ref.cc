// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/future_ref.h"

#include "weft/core/errors.h"

namespace weft {

std::exception_ptr FutureRef::Exception() const {
  state_->scheduler()->CheckThread();
  if (!state_->done()) throw InvalidStateError("Exception is not set.");
  if (state_->cancelled()) std::rethrow_exception(state_->cancelled_error());
  state_->MarkRetrieved();
  return state_->error();
}

}  // namespace weft
