// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_INTRUSIVE_PTR_H_
#define WEFT_CORE_INTRUSIVE_PTR_H_

#include <utility>

#include "absl/base/macros.h"

namespace weft::internal {

// A counted reference to a T that counts for itself, by `AddRef()` and
// `Release()`. As safe across threads as those two are.
template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  explicit IntrusivePtr(T* object) : object_(object) {
    if (object_ != nullptr) object_->AddRef();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.object_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IntrusivePtr() {
    if (object_ != nullptr) object_->Release();
  }

  // Takes over a reference that is already counted.
  static IntrusivePtr Adopt(T* object) {
    IntrusivePtr result;
    result.object_ = object;
    return result;
  }

  T* get() const { return object_; }
  // Of none: whoever holds it was moved from. Caught in builds that have assertions.
  T* operator->() const {
    ABSL_HARDENING_ASSERT(object_ != nullptr);
    return object_;
  }
  T& operator*() const {
    ABSL_HARDENING_ASSERT(object_ != nullptr);
    return *object_;
  }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) {
    return a.object_ == b.object_;
  }

  // Gives the reference up without releasing it.
  T* Detach() { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

}  // namespace weft::internal

#endif  // WEFT_CORE_INTRUSIVE_PTR_H_
