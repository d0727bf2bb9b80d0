// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_BOUNDED_DEPTH_H_
#define WEFT_CORE_BOUNDED_DEPTH_H_

#include <new>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"

namespace weft::internal {

// BoundedDepth
//
// For destructors of what may hold another of its kind, and so on, in a chain as long as
// the program likes: they would need as much of the stack. Beyond a depth what is to go
// waits until those before it have gone.
//
//   ~Chain() { BoundedDepth<Next>::Destroy(std::move(next_), [](Next next) { next.reset(); }); }
//
// Threads: any; each has a depth of its own.
template <class Item>
class BoundedDepth {
 public:
  // Calls `destroy(std::move(item))`, now or before the outermost of these calls on this
  // thread returns. `destroy` must not throw, and captures nothing: it stands for all.
  static void Destroy(Item item, void (*destroy)(Item)) noexcept {
    if (ABSL_PREDICT_TRUE(waiting_ == nullptr)) return DestroyAll(std::move(item), destroy);
    if (ABSL_PREDICT_FALSE(depth_ >= kMaxDepth)) {
      try {
        waiting_->push_back(std::move(item));
        return;
      } catch (const std::bad_alloc&) {
        // Deeper, then.
      }
    }
    ++depth_;
    destroy(std::move(item));
    --depth_;
  }

 private:
  static constexpr int kMaxDepth = 50;

  static void DestroyAll(Item item, void (*destroy)(Item)) noexcept {
    std::vector<Item> waiting;
    waiting_ = &waiting;
    destroy(std::move(item));
    while (!waiting.empty()) {
      Item next = std::move(waiting.back());
      waiting.pop_back();
      destroy(std::move(next));
    }
    waiting_ = nullptr;
  }

  static inline constinit thread_local int depth_ = 0;
  static inline constinit thread_local std::vector<Item>* waiting_ = nullptr;  // The outermost's.
};

}  // namespace weft::internal

#endif  // WEFT_CORE_BOUNDED_DEPTH_H_
