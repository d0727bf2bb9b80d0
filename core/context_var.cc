// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/context_var.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "weft/core/errors.h"
#include "weft/core/scheduler.h"

namespace weft::internal {
namespace {

const Context* CurrentContext() {
  Scheduler* scheduler = Scheduler::Current();
  const ContextRef* context =
      scheduler != nullptr ? scheduler->core()->current_context : outside_context;
  return context == nullptr ? nullptr : context->get();
}

// The place to write to. A callback that was made where no variable was set has
// none of its own, and borrows this; its slot takes it away again.
ContextRef& WritableContext() {
  Scheduler* scheduler = Scheduler::Current();
  if (scheduler == nullptr) return OutsideContext();
  SchedulerCore* core = scheduler->core();
  ContextRef*& current = core->current_context;
  if (current == &core->no_context) {
    current = callback_slot_cache.entered_context = &BorrowedContext();
  }
  return *current;
}

}  // namespace

const void* FindInContext(const void* key) {
  const Context* context = CurrentContext();
  return context == nullptr ? nullptr : context->Find(key);
}

ContextValue SetInContext(const void* key, ContextValue value) {
  ContextRef& context = WritableContext();
  ContextValue before;
  if (context) before = context->Share(key);
  context = Context::With(context.get(), key, std::move(value));
  return before;
}

void ThrowNoValue(std::string_view name) {
  throw LookupError(absl::StrCat("<ContextVar name='", name, "'>"));
}

void ThrowTokenUsed(std::string_view name) {
  throw RuntimeError(
      absl::StrCat("<Token used var=<ContextVar name='", name, "'>> has already been used once"));
}

void ThrowOtherVariable(std::string_view name) {
  throw ValueError(absl::StrCat("token: was created by a different ContextVar than ", name));
}

}  // namespace weft::internal
