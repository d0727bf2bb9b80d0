// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// A block that nobody uses holds the link to the next one in its first bytes. What
// slabs refer to is not the pool but its `SlabHome`, which lives until the pool
// *and* the last slab have gone.

#include "weft/poller/slab_pool.h"

#include <new>

#include "absl/base/macros.h"

namespace weft {

namespace internal {

struct SlabHome {
  struct FreeBlock {
    FreeBlock* next;
  };

  size_t slab_size;
  size_t max_free;
  FreeBlock* free = nullptr;
  size_t free_count = 0;
  size_t outstanding = 0;
  bool is_orphan = false;  // The pool has gone.
};

}  // namespace internal

using internal::SlabHome;

size_t Slab::size() const { return home_ == nullptr ? 0 : home_->slab_size; }

void Slab::GiveBack() {
  SlabHome* home = std::exchange(home_, nullptr);
  char* block = std::exchange(data_, nullptr);
  --home->outstanding;
  if (home->free_count < home->max_free) {
    home->free = new (block) SlabHome::FreeBlock{home->free};
    ++home->free_count;
    return;
  }
  ::operator delete(block);
  // An orphan keeps no blocks, and goes with its last slab.
  if (home->is_orphan && home->outstanding == 0) delete home;
}

SlabPool::SlabPool(size_t slab_size, size_t max_free) : home_(new SlabHome{slab_size, max_free}) {
  ABSL_HARDENING_ASSERT(slab_size >= sizeof(SlabHome::FreeBlock));
}

SlabPool::~SlabPool() {
  while (SlabHome::FreeBlock* block = home_->free) {
    home_->free = block->next;
    ::operator delete(block);
  }
  home_->free_count = 0;
  home_->max_free = 0;
  home_->is_orphan = true;
  if (home_->outstanding == 0) delete home_;
}

Slab SlabPool::Take() {
  void* block = home_->free;
  if (block != nullptr) {
    home_->free = home_->free->next;
    --home_->free_count;
  } else {
    block = ::operator new(home_->slab_size, std::nothrow);
    if (block == nullptr) return Slab();
  }
  ++home_->outstanding;
  return Slab(static_cast<char*>(block), home_);
}

size_t SlabPool::slab_size() const { return home_->slab_size; }
size_t SlabPool::free_count() const { return home_->free_count; }
size_t SlabPool::outstanding_count() const { return home_->outstanding; }

}  // namespace weft
