// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_BLOCK_POOL_H_
#define WEFT_CORE_BLOCK_POOL_H_

#include <cstddef>
#include <new>

#include "absl/base/optimization.h"

namespace weft::internal {

// Memory for coroutine frames and for the states of futures and tasks: one free
// list a size class and thread, so that a loop in its steady state does not call
// `malloc`. What a thread keeps is capped; a block may be freed on another
// thread than it came from, and after the loop it served.
//
// Under AddressSanitizer and ThreadSanitizer every block is its own allocation,
// so that they see each use after free.
//
// Threads: any; no lock is taken.
void* AllocateBlock(size_t size);
void FreeBlock(void* block, size_t size) noexcept;

// -- Implementation details.

inline constexpr size_t kBlockGrain = 16;
inline constexpr size_t kBlockClasses = 64;  // Up to 1 KiB; larger goes to malloc.

struct FreeBlockNode {
  FreeBlockNode* next;
};

// Trivially destructible and zero at first, so that it may be used at any time
// in a thread's life without a check.
struct BlockCache {
  FreeBlockNode* lists[kBlockClasses] = {};
  size_t bytes = 0;
  size_t limit = 0;  // Until the thread's first slow call, and after its end.
};

extern constinit thread_local BlockCache block_cache;

void* AllocateBlockSlowly(size_t size);
void FreeBlockSlowly(void* block, size_t size) noexcept;

inline void* AllocateBlock(size_t size) {
  const size_t index = (size - 1) / kBlockGrain;
  if (ABSL_PREDICT_TRUE(index < kBlockClasses)) {
    BlockCache& cache = block_cache;
    if (FreeBlockNode* node = cache.lists[index]) {
      cache.lists[index] = node->next;
      cache.bytes -= (index + 1) * kBlockGrain;
      return node;
    }
  }
  return AllocateBlockSlowly(size);
}

inline void FreeBlock(void* block, size_t size) noexcept {
  const size_t index = (size - 1) / kBlockGrain;
  if (ABSL_PREDICT_TRUE(index < kBlockClasses)) {
    BlockCache& cache = block_cache;
    if (ABSL_PREDICT_TRUE(cache.bytes < cache.limit)) {
      auto* node = static_cast<FreeBlockNode*>(block);
      node->next = cache.lists[index];
      cache.lists[index] = node;
      cache.bytes += (index + 1) * kBlockGrain;
      return;
    }
  }
  FreeBlockSlowly(block, size);
}

// A base class whose derived objects live in such blocks.
struct PooledObject {
  static void* operator new(size_t size) { return AllocateBlock(size); }
  static void operator delete(void* block, size_t size) noexcept { FreeBlock(block, size); }
  // Blocks are aligned to 16 bytes: what needs more, as a future of a vector
  // register's type does, is not pooled.
  static void* operator new(size_t size, std::align_val_t alignment) {
    return ::operator new(size, alignment);
  }
  static void operator delete(void* block, std::align_val_t alignment) noexcept {
    ::operator delete(block, alignment);
  }
};

}  // namespace weft::internal

#endif  // WEFT_CORE_BLOCK_POOL_H_
