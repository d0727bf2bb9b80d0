// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/block_pool.h"

#include "absl/base/config.h"
#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER) || \
    defined(ABSL_HAVE_MEMORY_SANITIZER)
constexpr size_t kLimit = 0;
#else
constexpr size_t kLimit = size_t{16} << 20;
#endif

// Gives a thread's blocks back when it ends. Blocks that are freed later still go straight to
// the heap: the limit is zero.
void EmptyCache() {
  BlockCache& cache = block_cache;
  cache.limit = 0;
  for (FreeBlockNode*& list : cache.lists) {
    while (list != nullptr) {
      FreeBlockNode* node = list;
      list = node->next;
      ::operator delete(node);
    }
  }
  cache.bytes = 0;
}

constinit thread_local ThreadExitHook empty_cache(&EmptyCache);

size_t RoundUp(size_t size) { return (size + kBlockGrain - 1) / kBlockGrain * kBlockGrain; }

}  // namespace

constinit thread_local BlockCache block_cache;

void* AllocateBlockSlowly(size_t size) { return ::operator new(RoundUp(size)); }

void FreeBlockSlowly(void* block, size_t size) noexcept {
  if (kLimit > 0 && block_cache.limit == 0 && empty_cache.Register()) {
    block_cache.limit = kLimit;
    FreeBlock(block, size);
    return;
  }
  ::operator delete(block);
}

}  // namespace weft::internal
