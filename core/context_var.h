// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_CONTEXT_VAR_H_
#define WEFT_CORE_CONTEXT_VAR_H_

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "weft/core/context.h"

namespace weft {

// LookupError
//
// A context variable has no value here and no default.
class LookupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace internal {

using ContextValue = std::shared_ptr<const void>;

// In the context of what is running: the value of the variable `key`, or null;
// and the same set, to null to take it away. Returns the one before.
const void* FindInContext(const void* key);
ContextValue SetInContext(const void* key, ContextValue value);

[[noreturn]] void ThrowNoValue(std::string_view name);
[[noreturn]] void ThrowTokenUsed(std::string_view name);
[[noreturn]] void ThrowOtherVariable(std::string_view name);

}  // namespace internal

// ContextVar
//
// A variable with a value of its own in each task: a request's number, a
// deadline, who asks. A task, and a callback, begins with a copy of what its
// creator sees, and what it sets is seen by itself and by what it creates after
// that.
//
//   ContextVar<std::string> user("user", "nobody");   // usually a global
//
//   user.Set("alice");
//   CreateTask(Handle());         // sees "alice", whatever is set here later
//
// Copying a context costs a pointer; setting costs a copy of the map of all
// variables that are set, so there should not be hundreds.
//
// Threads: any; each sees its own. It must outlive whatever may read it.
// Python: contextvars.ContextVar.
template <class T>
class ContextVar {
 public:
  // What undoes a Set(): the value before, and whose it is.
  class Token {
   public:
    Token() = default;

   private:
    friend class ContextVar;
    Token(const ContextVar* variable, internal::ContextValue value)
        : variable_(variable), value_(std::move(value)) {}

    const ContextVar* variable_ = nullptr;
    internal::ContextValue value_;
    bool used_ = false;
  };

  explicit ContextVar(std::string name) : name_(std::move(name)) {}
  ContextVar(std::string name, T default_value)
      : name_(std::move(name)), default_(std::move(default_value)) {}
  ContextVar(const ContextVar&) = delete;
  ContextVar& operator=(const ContextVar&) = delete;

  const std::string& name() const { return name_; }

  // The value here, else the default. Errors: LookupError if there is neither.
  T Get() const {
    if (const void* value = internal::FindInContext(this)) return *static_cast<const T*>(value);
    if (!default_.has_value()) internal::ThrowNoValue(name_);
    return *default_;
  }
  // The value here, else `fallback`.
  T Get(T fallback) const {
    const void* value = internal::FindInContext(this);
    return value != nullptr ? *static_cast<const T*>(value) : std::move(fallback);
  }

  // Sets the value for the task or callback that is running.
  Token Set(T value) {
    return Token(this, internal::SetInContext(this, std::make_shared<const T>(std::move(value))));
  }

  // Undoes the Set() that returned `token`.
  // Errors: RuntimeError if it was used before; ValueError if it is another
  // variable's.
  void Reset(Token& token) {
    if (token.used_) internal::ThrowTokenUsed(name_);
    if (token.variable_ != this) internal::ThrowOtherVariable(name_);
    internal::SetInContext(this, std::move(token.value_));
    token.used_ = true;
  }

 private:
  std::string name_;
  std::optional<T> default_;
};

}  // namespace weft

#endif  // WEFT_CORE_CONTEXT_VAR_H_
