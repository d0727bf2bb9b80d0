// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_SYNC_RING_BUFFER_H_
#define WEFT_SYNC_RING_BUFFER_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/macros.h"
#include "absl/base/optimization.h"

namespace weft::internal {

// A queue in one array that grows and never shrinks: what passes through
// allocates nothing, unlike a std::deque, which goes on to a new block every few
// items. Items are moved once more when it grows. As in a std::vector, those whose
// move may throw are copied instead, so that nothing is lost if that throws; if
// they cannot be copied, those that had been moved are gone.
//
// Threads: as safe as the items.
template <class T>
class RingBuffer {
 public:
  RingBuffer() {}
  RingBuffer(const RingBuffer&) = delete;
  RingBuffer& operator=(const RingBuffer&) = delete;
  ~RingBuffer() {
    Clear();
    if (items_ != nullptr) std::allocator<T>().deallocate(items_, capacity_);
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  template <class U>
  void PushBack(U&& item) {
    if (ABSL_PREDICT_FALSE(size_ == capacity_)) Grow();
    std::construct_at(At(size_), std::forward<U>(item));
    ++size_;
  }

  // REQUIRES: not empty.
  T PopFront() {
    ABSL_ASSERT(size_ > 0);
    T* place = At(0);
    // The item goes even if its move throws.
    struct Popped {
      ~Popped() {
        std::destroy_at(place);
        buffer->first_ = (buffer->first_ + 1) & (buffer->capacity_ - 1);
        --buffer->size_;
      }
      RingBuffer* buffer;
      T* place;
    } popped{this, place};
    return std::move(*place);
  }

  void Clear() {
    for (; size_ > 0; --size_) std::destroy_at(At(size_ - 1));
  }

 private:
  T* At(size_t index) { return items_ + ((first_ + index) & (capacity_ - 1)); }

  void Grow() {
    RingBuffer larger;
    larger.capacity_ = capacity_ == 0 ? 4 : 2 * capacity_;
    larger.items_ = std::allocator<T>().allocate(larger.capacity_);
    for (; larger.size_ < size_; ++larger.size_) {
      std::construct_at(larger.items_ + larger.size_, std::move_if_noexcept(*At(larger.size_)));
    }
    std::swap(items_, larger.items_);
    std::swap(capacity_, larger.capacity_);
    std::swap(first_, larger.first_);
  }

  T* items_ = nullptr;
  size_t capacity_ = 0;  // Zero, or a power of two.
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_SYNC_RING_BUFFER_H_
