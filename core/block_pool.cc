// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/block_pool.h"

#include "absl/base/config.h"
#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER) || \
    defined(ABSL_HAVE_MEMORY_SANITIZER)
constexpr ptrdiff_t kLimit = 0;
#else
constexpr ptrdiff_t kLimit = ptrdiff_t{16} << 20;
#endif

// Gives a thread's blocks back when it ends. Blocks that are freed later still go straight to
// the heap: there is no room.
void EmptyCache() {
  BlockCache& cache = block_cache;
  for (FreeBlockNode*& list : cache.lists) {
    while (list != nullptr) {
      FreeBlockNode* node = list;
      list = node->next;
      ::operator delete(node);
    }
  }
  cache.room = 0;
}

constinit thread_local ThreadExitHook empty_cache(&EmptyCache);

size_t RoundUp(size_t size) { return (size + kBlockGrain - 1) / kBlockGrain * kBlockGrain; }

}  // namespace

constinit thread_local BlockCache block_cache;

void* AllocateBlockSlowly(size_t size) { return ::operator new(RoundUp(size)); }

// The size of one that a list would take has been taken from the room.
void FreeBlockSlowly(void* block, size_t size) noexcept {
  BlockCache& cache = block_cache;
  if (size <= kBlockClasses * kBlockGrain) {
    cache.room += static_cast<ptrdiff_t>(RoundUp(size));
    if (kLimit > 0 && !cache.is_in_use && empty_cache.Register()) {
      cache.is_in_use = true;
      cache.room = kLimit;
      FreeBlock(block, size);
      return;
    }
  }
  ::operator delete(block);
}

}  // namespace weft::internal
