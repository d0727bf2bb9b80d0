// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CONTEXT_H_
#define WEFT_CORE_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "weft/core/intrusive_ptr.h"

namespace weft::internal {

// The values of the context variables as one task or callback sees them: an
// immutable map, so that a copy is a pointer. Null stands for an empty one,
// which is what a program that uses no context variables pays for.
//
// Threads: its count is not atomic: it stays on the thread of its loop. What
// crosses to another is a `Clone()`.
class Context {
 public:
  using Key = const void*;                    // The variable's address.
  using Value = std::shared_ptr<const void>;  // What it is set to.

  static IntrusivePtr<const Context> Empty();
  // A map like `base` (which may be null), with `key` set to `value`.
  static IntrusivePtr<const Context> With(const Context* base, Key key, Value value);

  // The value of `key`, or null.
  const void* Find(Key key) const;
  Value Share(Key key) const;

  // The same values in a map that shares no count with this one.
  IntrusivePtr<const Context> Clone() const;

  void AddRef() const { ++refs_; }
  void Release() const {
    if (ABSL_PREDICT_FALSE(--refs_ == 0)) Delete();
  }

 private:
  Context() = default;
  void Delete() const;  // Not inline: it is rare, and long.

  mutable uint32_t refs_ = 0;
  std::vector<std::pair<Key, Value>> entries_;
};

using ContextRef = IntrusivePtr<const Context>;

// The context of what this thread does outside of any loop, if it has one: what a
// loop that is started there begins with.
extern constinit thread_local ContextRef* outside_context;

// The same to be written to: makes one.
ContextRef& OutsideContext();

// What a scheduler says to be the context of what is running while nothing is: empty, but
// not null, so that whoever asks for null alone is told of both. Not to be copied.
ContextRef& ContextOfNothing();

// An empty one, for a callback of this thread that has none and writes to it; whoever runs
// the callback empties it again.
ContextRef& BorrowedContext();

}  // namespace weft::internal

#endif  // WEFT_CORE_CONTEXT_H_
