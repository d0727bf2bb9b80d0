// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/context.h"

#include <utility>

#include "weft/core/thread_exit.h"

namespace weft::internal {

namespace {

constinit thread_local ContextRef* borrowed_context = nullptr;

// The hook goes first: what the values' destructors do may need contexts anew.
void DeleteContexts() {
  delete std::exchange(outside_context, nullptr);
  delete std::exchange(borrowed_context, nullptr);
}

constinit thread_local ThreadExitHook delete_contexts(&DeleteContexts);

// The thread's own, which goes with it. (After the thread's last hook nobody would delete it.)
ContextRef& ContextAt(ContextRef*& place) {
  if (place == nullptr) {
    delete_contexts.Register();
    place = new ContextRef;
  }
  return *place;
}

}  // namespace

constinit thread_local ContextRef* outside_context = nullptr;

ContextRef& OutsideContext() { return ContextAt(outside_context); }
ContextRef& BorrowedContext() { return ContextAt(borrowed_context); }

ContextRef& ContextOfNothing() {
  static ContextRef* const nothing = new ContextRef(Context::Empty());
  return *nothing;
}

ContextRef Context::Empty() { return ContextRef(new Context); }

ContextRef Context::With(const Context* base, Key key, Value value) {
  auto* context = new Context;
  ContextRef result(context);
  if (base != nullptr) context->entries_ = base->entries_;
  for (auto& entry : context->entries_) {
    if (entry.first != key) continue;
    entry.second = std::move(value);
    return result;
  }
  context->entries_.emplace_back(key, std::move(value));
  return result;
}

void Context::Delete() const { delete this; }

const void* Context::Find(Key key) const {
  for (const auto& entry : entries_) {
    if (entry.first == key) return entry.second.get();
  }
  return nullptr;
}

Context::Value Context::Share(Key key) const {
  for (const auto& entry : entries_) {
    if (entry.first == key) return entry.second;
  }
  return nullptr;
}

ContextRef Context::Clone() const {
  auto* context = new Context;
  context->entries_ = entries_;
  return ContextRef(context);
}

}  // namespace weft::internal
