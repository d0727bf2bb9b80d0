// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_BLOCK_POOL_H_
#define WEFT_CORE_BLOCK_POOL_H_

#include <cstddef>
#include <new>

#include "absl/base/optimization.h"

namespace weft::internal {

// Memory for coroutine frames, for the states of futures and tasks, and for loops: one
// free list a size class and thread, so that a loop in its steady state does not call
// `malloc`. What is in a thread's lists is capped; a block may be freed on another
// thread than it came from, and after the loop it served.
//
// Blocks are cut from chunks, so that none has a header of its own. A chunk counts those
// that are in use or in a list, and goes back to the heap with the last of them. What is
// larger than the classes comes from the heap itself; of those a thread keeps a few.
//
// A block is aligned to 16 bytes if its size is a multiple of that, else to 8: no type is
// more strictly aligned than its size says.
//
// Under AddressSanitizer and ThreadSanitizer every block is its own allocation,
// so that they see each use after free.
//
// Threads: any; no lock is taken.
void* AllocateBlock(size_t size);
void FreeBlock(void* block, size_t size) noexcept;

// -- Implementation details.

inline constexpr size_t kBlockGrain = 8;
inline constexpr size_t kBlockClasses = 128;  // Up to 1 KiB.
inline constexpr size_t kLargeBlocks = 4;     // Larger ones that a thread keeps.

struct FreeBlockNode {
  FreeBlockNode* next;
};

struct BlockChunk;

struct LargeBlock {
  void* block;
  size_t size;
};

// Trivially destructible and zero at first, so that it may be used at any time
// in a thread's life without a check.
struct BlockCache {
  FreeBlockNode* lists[kBlockClasses] = {};
  ptrdiff_t room = 0;      // For so many bytes more, as soon as it is in use.
  bool is_in_use = false;  // From then on it will be emptied when the thread ends.
  bool is_over = false;    // It has been.
  size_t victim = 0;       // The list from which blocks go when there is no room.
  // Where blocks are cut from, and how many have been; from `next` to `end` it is whole.
  BlockChunk* chunk = nullptr;
  size_t cut = 0;
  char* next = nullptr;
  char* end = nullptr;
  LargeBlock large[kLargeBlocks] = {};
};

extern constinit thread_local BlockCache block_cache;

void* AllocateBlockSlowly(size_t size);
void FreeBlockSlowly(void* block, size_t size) noexcept;

// One that is free and at hand, or null.
inline void* TakeFreeBlock(size_t size) {
  const size_t index = (size - 1) / kBlockGrain;
  if (ABSL_PREDICT_FALSE(index >= kBlockClasses)) return nullptr;
  BlockCache& cache = block_cache;
  FreeBlockNode* const node = cache.lists[index];
  if (ABSL_PREDICT_FALSE(node == nullptr)) return nullptr;
  cache.lists[index] = node->next;
  cache.room += static_cast<ptrdiff_t>((index + 1) * kBlockGrain);
  return node;
}

inline void* AllocateBlock(size_t size) {
  if (void* block = TakeFreeBlock(size); ABSL_PREDICT_TRUE(block != nullptr)) return block;
  return AllocateBlockSlowly(size);
}

inline void FreeBlock(void* block, size_t size) noexcept {
  const size_t index = (size - 1) / kBlockGrain;
  if (ABSL_PREDICT_FALSE(index >= kBlockClasses)) return FreeBlockSlowly(block, size);
  BlockCache& cache = block_cache;
  cache.room -= static_cast<ptrdiff_t>((index + 1) * kBlockGrain);
  if (ABSL_PREDICT_FALSE(cache.room < 0)) return FreeBlockSlowly(block, size);
  auto* node = static_cast<FreeBlockNode*>(block);
  node->next = cache.lists[index];
  cache.lists[index] = node;
}

// A base class whose derived objects live in such blocks.
struct PooledObject {
  static void* operator new(size_t size) { return AllocateBlock(size); }
  static void operator delete(void* block, size_t size) noexcept { FreeBlock(block, size); }
  // Blocks are aligned to 16 bytes at most: what needs more, as a future of a vector
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
