// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/block_pool.h"

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/base/config.h"
#include "weft/core/aligned_memory.h"
#include "weft/core/thread_exit.h"

namespace weft::internal {
namespace {

#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER) || \
    defined(ABSL_HAVE_MEMORY_SANITIZER)
constexpr ptrdiff_t kLimit = 0;
#else
constexpr ptrdiff_t kLimit = ptrdiff_t{16} << 20;
#endif

constexpr size_t kChunkSize = size_t{32} << 10;
// So many bytes of it are left to the heap, for what it writes between two: else it would
// leave room for a whole chunk there.
constexpr size_t kHeapsOwn = 16;
constexpr size_t kLargest = size_t{64} << 10;  // That is kept.
constexpr size_t kManyBlocks = kChunkSize;     // More than a chunk has.

size_t RoundUp(size_t size, size_t grain) { return (size + grain - 1) / grain * grain; }

}  // namespace

// The head of a chunk, which is aligned to its size, so that a block's address tells it.
struct alignas(16) BlockChunk {
  // Blocks that are not back. While a thread cuts from it, kManyBlocks stand for all of
  // them, so that it need not count each where other threads do.
  std::atomic<size_t> count{kManyBlocks};
};

namespace {

// `size`: of all that will be used of it.
BlockChunk* NewChunk(size_t size) { return new (AllocateAligned(size, kChunkSize)) BlockChunk; }

void GiveBack(BlockChunk* chunk, size_t count) {
  if (chunk->count.fetch_sub(count, std::memory_order_acq_rel) != count) return;
  FreeAligned(chunk);
}

void GiveBack(void* block) {
  if (kLimit == 0) return ::operator delete(block);
  const uintptr_t address = reinterpret_cast<uintptr_t>(block);
  GiveBack(reinterpret_cast<BlockChunk*>(address / kChunkSize * kChunkSize), 1);
}

// No more is cut from the chunk of this thread.
void LeaveChunk() {
  BlockCache& cache = block_cache;
  if (cache.chunk != nullptr) GiveBack(cache.chunk, kManyBlocks - cache.cut);
  cache.chunk = nullptr;
  cache.next = cache.end = nullptr;
}

// Gives a thread's blocks back when it ends. Blocks that are freed later are given back at
// once: there is no room.
void EmptyCache() {
  BlockCache& cache = block_cache;
  cache.is_over = true;
  for (FreeBlockNode*& list : cache.lists) {
    while (list != nullptr) {
      FreeBlockNode* node = list;
      list = node->next;
      GiveBack(node);
    }
  }
  for (LargeBlock& large : cache.large) ::operator delete(std::exchange(large.block, nullptr));
  cache.room = 0;
  LeaveChunk();
}

constinit thread_local ThreadExitHook empty_cache(&EmptyCache);

// Whether this thread may keep anything: somebody will empty its cache.
bool MayKeep() {
  BlockCache& cache = block_cache;
  if (cache.is_in_use) return !cache.is_over;
  if (kLimit == 0 || !empty_cache.Register()) return false;
  cache.is_in_use = true;
  cache.room = kLimit;
  return true;
}

void* CutBlock(size_t size) {
  BlockCache& cache = block_cache;
  const size_t grain = size % 16 == 0 ? 16 : kBlockGrain;
  const auto first_free = [&cache, grain] {
    return reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(cache.next), grain));
  };
  char* block = first_free();
  if (cache.chunk == nullptr || block + size > cache.end) {
    BlockChunk* const chunk = NewChunk(kChunkSize - kHeapsOwn);
    LeaveChunk();
    cache.chunk = chunk;
    cache.cut = 0;
    cache.next = reinterpret_cast<char*>(chunk) + sizeof(BlockChunk);
    cache.end = reinterpret_cast<char*>(chunk) + kChunkSize - kHeapsOwn;
    block = first_free();
  }
  cache.next = block + size;
  ++cache.cut;
  return block;
}

// For a thread that has ended so far that it keeps nothing.
void* CutOnlyBlock(size_t size) {
  BlockChunk* const chunk = NewChunk(sizeof(BlockChunk) + size);
  chunk->count.store(1, std::memory_order_relaxed);
  return reinterpret_cast<char*>(chunk) + sizeof(BlockChunk);
}

// Gives back blocks of one list after the other: so what is kept is of the sizes that are
// used now, and not of those that were when there was room.
void MakeRoom(ptrdiff_t size) {
  BlockCache& cache = block_cache;
  while (cache.room < size) {
    FreeBlockNode*& list = cache.lists[cache.victim];
    if (list == nullptr) {
      cache.victim = (cache.victim + 1) % kBlockClasses;
      continue;
    }
    GiveBack(std::exchange(list, list->next));
    cache.room += static_cast<ptrdiff_t>((cache.victim + 1) * kBlockGrain);
  }
}

void* TakeLargeBlock(size_t size) {
  BlockCache& cache = block_cache;
  for (LargeBlock& large : cache.large) {
    if (large.block == nullptr || large.size != size) continue;
    cache.room += static_cast<ptrdiff_t>(size);
    return std::exchange(large.block, nullptr);
  }
  return nullptr;
}

bool KeepLargeBlock(void* block, size_t size) {
  BlockCache& cache = block_cache;
  if (size > kLargest || !MayKeep() || cache.room < static_cast<ptrdiff_t>(size)) return false;
  for (LargeBlock& large : cache.large) {
    if (large.block != nullptr) continue;
    cache.room -= static_cast<ptrdiff_t>(size);
    large = {block, size};
    return true;
  }
  return false;
}

}  // namespace

constinit thread_local BlockCache block_cache;

void* AllocateBlockSlowly(size_t size) {
  if (size > kBlockClasses * kBlockGrain) {
    void* block = TakeLargeBlock(size);
    return block != nullptr ? block : ::operator new(size);
  }
  if (kLimit == 0) return ::operator new(size);
  size = RoundUp(size, kBlockGrain);
  return MayKeep() ? CutBlock(size) : CutOnlyBlock(size);
}

// The size of one that a list would take has been taken from the room.
void FreeBlockSlowly(void* block, size_t size) noexcept {
  if (size > kBlockClasses * kBlockGrain) {
    if (!KeepLargeBlock(block, size)) ::operator delete(block);
    return;
  }
  BlockCache& cache = block_cache;
  size = RoundUp(size, kBlockGrain);
  cache.room += static_cast<ptrdiff_t>(size);
  if (!MayKeep()) return GiveBack(block);
  MakeRoom(static_cast<ptrdiff_t>(size));
  FreeBlock(block, size);
}

}  // namespace weft::internal
