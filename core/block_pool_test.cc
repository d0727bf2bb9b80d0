// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/block_pool.h"

#include <cstddef>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

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
