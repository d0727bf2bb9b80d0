// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_GUARD_H_
#define WEFT_SYNC_GUARD_H_

#include <utility>

#include "weft/core/intrusive_list.h"

namespace weft::internal {

template <class T>
class BackRefs;

// A pointer that becomes null when what it points to is destroyed. At the end of
// a loop suspended frames go in the order in which their tasks were made: often
// the frame with the lock before the frame that holds it.
template <class T>
class BackRef : public ListNode {
 public:
  BackRef() = default;
  BackRef(T* target, BackRefs<T>& refs) { Bind(target, refs); }

  // REQUIRES: get() is null.
  void Bind(T* target, BackRefs<T>& refs) {
    target_ = target;
    refs.list_.PushBack(this);
  }

  T* get() const { return target_; }

  // Gives the pointer up.
  T* Take() {
    Unlink();
    return std::exchange(target_, nullptr);
  }

 private:
  friend class BackRefs<T>;
  T* target_ = nullptr;
};

// What an object knows of the pointers to it: a member of it.
template <class T>
class BackRefs {
 public:
  BackRefs() = default;
  ~BackRefs() {
    while (BackRef<T>* ref = list_.PopFront()) ref->target_ = nullptr;
  }

 private:
  friend class BackRef<T>;
  List<BackRef<T>> list_;
};

// What `co_await lock.Acquire()` yields: gives back what was acquired when it
// is destroyed. It may outlive the lock, and then does nothing.
//
// Python: the end of `async with lock`.
template <class L>
class [[nodiscard]] Guard {
 public:
  // Holds nothing.
  Guard() = default;
  Guard(Guard&& other) noexcept { *this = std::move(other); }
  Guard& operator=(Guard&& other) noexcept {
    if (this == &other) return *this;
    Release();
    if (L* lock = other.Detach()) ref_.Bind(lock, lock->guards_);
    return *this;
  }
  ~Guard() { Release(); }

  // Whether it holds something.
  explicit operator bool() const { return ref_.get() != nullptr; }

  // Gives it back now. Nothing, if it holds nothing. Also nothing if it was
  // given back by hand: that is what it is for.
  void Release() {
    if (L* lock = ref_.Take()) lock->ReleaseGuarded();
  }

  // Leaves it acquired, for somebody to call the lock's own Release() later.
  L* Detach() { return ref_.Take(); }

 private:
  friend L;
  explicit Guard(L* lock) : ref_(lock, lock->guards_) {}

  BackRef<L> ref_;
};

}  // namespace weft::internal

#endif  // WEFT_SYNC_GUARD_H_
