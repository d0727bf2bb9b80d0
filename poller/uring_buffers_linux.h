// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_BUFFERS_LINUX_H_
#define WEFT_POLLER_URING_BUFFERS_LINUX_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/poller/slab_pool.h"
#include "weft/poller/uring_linux.h"

namespace weft::internal {

// How many buffers of what size are provided.
struct UringBufferOptions {
  UringBufferOptions() {}

  uint32_t size = 16 * 1024;  // A TLS record, or the usual HTTP exchange.
  uint32_t first = 16;        // Provided at first.
  uint32_t most = 512;        // A power of two.
};

// UringBuffers
//
// The buffers that a kernel takes from when something has come for one who waits
// without a buffer: a ring of them that is shared with it. What was filled leaves as
// a `Slab`, and a fresh block takes its place; so a connection that does not read
// holds what it has, and starves nobody.
//
// There are few of them, so that they stay hot in the cache, and more when they run
// out; but no more than the cache holds, by the size of what has come lately. Those
// who find none try again.
//
// Threads: belongs to the loop's thread, and so do its slabs, which may outlive it.
class UringBuffers {
 public:
  static constexpr uint16_t kGroup = 0;

  explicit UringBuffers(const UringBufferOptions& options)
      : options_(options), target_(options.first), pool_(options.size, options.most) {}
  UringBuffers(const UringBuffers&) = delete;
  UringBuffers& operator=(const UringBuffers&) = delete;
  ~UringBuffers();

  // Makes the kernel of `ring` know them; again for another ring. 0 or a negated
  // errno.
  int Register(Uring* ring);
  bool is_registered() const { return is_registered_; }
  // The ring is gone, and its kernel fills nothing any more.
  void Forget() { is_registered_ = false; }

  // Provides as many as there are to be.
  void TopUp();
  // Buffers that the kernel has.
  uint32_t provided() const { return provided_; }

  // The kernel has filled number `id` with `size` bytes. The block is the caller's,
  // until `ToSlab()` or `Drop()`.
  char* Take(uint16_t id, size_t size);
  Slab ToSlab(char* block) { return pool_.Adopt(block); }
  void Drop(char* block) { pool_.Adopt(block).Reset(); }

  // Somebody found none: from the next `TopUp()` on there are more, if that is wise.
  void OnStarved();

 private:
  // What the buffers that the kernel goes through may take of the cache.
  static constexpr size_t kCacheShare = 1024 * 1024;

  void Unmap();

  const UringBufferOptions options_;
  uint32_t target_;
  uint32_t provided_ = 0;
  uint32_t average_size_ = 0;  // Of what came lately.
  bool is_registered_ = false;
  uint16_t tail_ = 0;
  uring::BufferSlot* slots_ = nullptr;  // The ring.
  std::vector<char*> blocks_;           // By number; null: the kernel has it not.
  std::vector<uint16_t> free_ids_;
  SlabPool pool_;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_BUFFERS_LINUX_H_
