// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/block_pool.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/config.h"
#include "gtest/gtest.h"

namespace weft::internal {
namespace {

TEST(BlockPoolTest, BlocksOfAllSizesAreApartAndWritable) {
  struct Piece {
    void* block;
    size_t size;
  };
  std::vector<Piece> pieces;
  std::set<void*> blocks;
  for (size_t size = 1; size < 3'000; size += 7) {
    void* block = AllocateBlock(size);
    std::memset(block, 0x5a, size);
    EXPECT_TRUE(blocks.insert(block).second);
    pieces.push_back({block, size});
  }
  for (const Piece& piece : pieces) FreeBlock(piece.block, piece.size);
}

TEST(BlockPoolTest, ABlockMayBeFreedOnAnotherThread) {
  void* block = nullptr;
  std::thread([&] { block = AllocateBlock(100); }).join();
  FreeBlock(block, 100);
  block = AllocateBlock(100);
  std::thread([&] { FreeBlock(block, 100); }).join();
}

TEST(BlockPoolTest, BlocksAreAsStrictlyAlignedAsTheirSizesAre) {
  std::vector<void*> blocks;
  for (size_t size = 8; size <= 1'024; size += 8) {
    blocks.push_back(AllocateBlock(size));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % (size % 16 == 0 ? 16 : 8), 0u) << size;
  }
  for (size_t i = 0; i < blocks.size(); ++i) FreeBlock(blocks[i], 8 * (i + 1));
}

// Of many chunks, which go back in part here and in part when their thread ends.
TEST(BlockPoolTest, BlocksOutliveTheThreadTheyWereCutOn) {
  constexpr size_t kSize = 200;
  constexpr int kCount = 10'000;
  std::vector<void*> blocks;
  std::thread([&] {
    for (int i = 0; i < kCount; ++i) {
      void* block = AllocateBlock(kSize);
      std::memset(block, i, kSize);
      if (i % 3 == 0) {
        FreeBlock(block, kSize);
      } else {
        blocks.push_back(block);
      }
    }
  }).join();
  std::thread([&] {
    for (void* block : blocks) FreeBlock(block, kSize);
  }).join();
}

// More than a thread keeps, by far: they go back one by one, from either thread.
TEST(BlockPoolTest, MoreThanIsKept) {
  constexpr size_t kSize = 1'000;
  constexpr int kCount = 50'000;
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < kCount; ++i) {
      blocks.push_back(AllocateBlock(kSize));
      std::memset(blocks.back(), i, kSize);
    }
    std::thread([&] {
      for (int i = 0; i < kCount; i += 2) FreeBlock(blocks[static_cast<size_t>(i)], kSize);
    }).join();
    for (int i = 1; i < kCount; i += 2) FreeBlock(blocks[static_cast<size_t>(i)], kSize);
  }
}

// A burst of one size that never comes again leaves room for the sizes that are used after it.
TEST(BlockPoolTest, WhatIsUsedNowIsKept) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "each block is its own allocation";
#endif
  std::thread([] {
    std::vector<void*> burst;
    for (int i = 0; i < 50'000; ++i) burst.push_back(AllocateBlock(1'000));
    for (void* block : burst) FreeBlock(block, 1'000);
    void* const first = AllocateBlock(304);
    void* const second = AllocateBlock(304);
    FreeBlock(first, 304);
    FreeBlock(second, 304);
    EXPECT_EQ(AllocateBlock(304), second);
    EXPECT_EQ(AllocateBlock(304), first);
    FreeBlock(first, 304);
    FreeBlock(second, 304);
  }).join();
}

TEST(BlockPoolTest, LargeBlocksOfSeveralSizes) {
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    for (size_t i = 0; i < 20; ++i) {
      blocks.push_back(AllocateBlock(10'000 * i + 2'000));
      std::memset(blocks.back(), round, 10'000 * i + 2'000);
    }
    for (size_t i = 0; i < 20; ++i) FreeBlock(blocks[i], 10'000 * i + 2'000);
  }
}

thread_local struct FreesLate {
  void* block = nullptr;
  ~FreesLate() {
    FreeBlock(block, 100);
    FreeBlock(AllocateBlock(300), 300);
    FreeBlock(AllocateBlock(3'000), 3'000);
  }
} frees_late;

TEST(BlockPoolTest, BlocksMayBeUsedWhileTheThreadEnds) {
  std::thread([] { frees_late.block = AllocateBlock(100); }).join();
}

struct Derived : PooledObject {
  explicit Derived(int value) : number(value) {}
  int number;
  char more[200];
};

TEST(BlockPoolTest, ObjectsLiveInBlocks) {
  for (int i = 0; i < 1'000; ++i) {
    auto* object = new Derived(i);
    EXPECT_EQ(object->number, i);
    delete object;
  }
}

}  // namespace
}  // namespace weft::internal
