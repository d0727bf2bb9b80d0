// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_LOOP_LOOP_OWNED_H_
#define WEFT_LOOP_LOOP_OWNED_H_

#include <memory>

#include "weft/core/intrusive_list.h"

namespace weft::internal {

// What belongs to a loop although another thread is at work for it: the loop's
// half of a job or of a call from outside, with the references that may only be
// touched on the loop's thread. Posts name it by a plain pointer: one that runs
// finds it alive, and one that is refused leaves it to Close(), which destroys
// what is left.
//
// What only has to hear of the end says what it does then.
class LoopOwned : public ListNode {
 public:
  virtual ~LoopOwned() = default;

  // The loop closes, and no task is left. The object is in no list any more.
  virtual void OnLoopClose() { delete this; }
};

class LoopOwnedList {
 public:
  ~LoopOwnedList() { Clear(); }

  template <class T>
  T* Add(std::unique_ptr<T> object) {
    list_.PushBack(object.get());
    return object.release();
  }
  // Tells `object` when the loop closes, unless it is gone by then. The caller
  // keeps it.
  void Watch(LoopOwned* object) { list_.PushBack(object); }

  // Destroys `object`, which is in a list.
  static void Destroy(LoopOwned* object) { delete object; }

  void Clear() {
    while (LoopOwned* object = list_.PopFront()) object->OnLoopClose();
  }

 private:
  List<LoopOwned> list_;
};

}  // namespace weft::internal

#endif  // WEFT_LOOP_LOOP_OWNED_H_
