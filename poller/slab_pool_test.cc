// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/slab_pool.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(SlabPoolTest, LastBackIsFirstOut) {
  SlabPool pool(4'096, 4);
  Slab one = pool.Take(), two = pool.Take();
  char* const hot = two.data();
  one.Reset();
  two.Reset();

  EXPECT_EQ(pool.Take().data(), hot);
  EXPECT_EQ(pool.free_count(), 2u);
}

TEST(SlabPoolTest, KeepsNoMoreThanItsCap) {
  SlabPool pool(4'096, 2);
  std::vector<Slab> slabs;
  for (int i = 0; i < 10; ++i) slabs.push_back(pool.Take());
  EXPECT_EQ(pool.outstanding_count(), 10u);

  slabs.clear();

  EXPECT_EQ(pool.free_count(), 2u);
  EXPECT_EQ(pool.outstanding_count(), 0u);
}

TEST(SlabPoolTest, ASlabOwnsWhatItRefersTo) {
  SlabPool pool(4'096);
  Slab slab = pool.Take();
  char* const data = slab.data();
  EXPECT_EQ(slab.size(), 4'096u);

  Slab moved = std::move(slab);

  EXPECT_FALSE(slab);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(slab.size(), 0u);
  EXPECT_EQ(moved.data(), data);
  moved = pool.Take();
  EXPECT_EQ(pool.outstanding_count(), 1u);
}

TEST(SlabPoolTest, ASlabMayOutliveItsPool) {
  auto pool = std::make_unique<SlabPool>(4'096, 4);
  Slab one = pool->Take(), two = pool->Take();
  pool->Take().Reset();

  pool.reset();

  std::memset(one.data(), 1, one.size());
  one.Reset();
  std::memset(two.data(), 1, two.size());
}

}  // namespace
}  // namespace weft
