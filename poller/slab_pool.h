// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_SLAB_POOL_H_
#define WEFT_POLLER_SLAB_POOL_H_

#include <cstddef>
#include <utility>

namespace weft {

namespace internal {
struct SlabHome;
}  // namespace internal

// Slab
//
// A block of memory of fixed size on loan from a `SlabPool`, to which it goes
// back when the slab is destroyed or reset. Empty when default-constructed or
// moved from. May outlive its pool.
//
// Threads: that of its pool.
class Slab {
 public:
  Slab() = default;
  Slab(Slab&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), home_(std::exchange(other.home_, nullptr)) {}
  Slab& operator=(Slab&& other) noexcept {
    if (this != &other) {
      Reset();
      data_ = std::exchange(other.data_, nullptr);
      home_ = std::exchange(other.home_, nullptr);
    }
    return *this;
  }
  ~Slab() { Reset(); }

  explicit operator bool() const { return data_ != nullptr; }
  char* data() const { return data_; }
  size_t size() const;  // 0 if empty.

  // Gives the memory back now.
  void Reset() {
    if (data_ != nullptr) GiveBack();
  }

  // Leaves the memory to the caller, until `SlabPool::Adopt()`: for a kernel that is
  // to fill it.
  char* Release() {
    home_ = nullptr;
    return std::exchange(data_, nullptr);
  }

 private:
  friend class SlabPool;
  Slab(char* data, internal::SlabHome* home) : data_(data), home_(home) {}
  void GiveBack();

  char* data_ = nullptr;
  internal::SlabHome* home_ = nullptr;
};

// SlabPool
//
// The receive buffers of one loop. A connection takes a slab when there is
// something to receive and keeps it only while bytes in it are unread, so ten
// thousand idle connections hold none, and a few slabs, last in first out, stay
// hot in the cache.
//
//   SlabPool pool;
//   Slab slab = pool.Take();
//
// The pool keeps up to `max_free` blocks that nobody uses, and frees the rest.
// When it is destroyed, slabs still out stay valid and free themselves.
//
// Threads: belongs to the loop's thread, and so do its slabs.
class SlabPool {
 public:
  // A message of 16 KiB, a TLS record or the usual HTTP exchange is a short read
  // in it, after which no second `recv` has to find that nothing is left.
  static constexpr size_t kDefaultSlabSize = 64 * 1024;
  // As many connections may have a long message to be read in one round without a
  // call of malloc. What was never written to costs no memory but addresses.
  static constexpr size_t kDefaultMaxFree = 256;

  explicit SlabPool(size_t slab_size = kDefaultSlabSize, size_t max_free = kDefaultMaxFree);
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;
  ~SlabPool();

  // A slab with undefined content: that which came back last, or a new one.
  // Empty if there is no memory.
  Slab Take();

  // The slab of a block that was released from one of this pool.
  Slab Adopt(char* block) { return Slab(block, home_); }

  size_t slab_size() const;
  size_t free_count() const;         // Blocks kept for the next `Take()`.
  size_t outstanding_count() const;  // Slabs out, released ones included.

 private:
  internal::SlabHome* home_;
};

}  // namespace weft

#endif  // WEFT_POLLER_SLAB_POOL_H_
