// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/slab_map.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace weft::internal {
namespace {

constexpr uintptr_t kBase = uintptr_t{3} << 30;

// All that is free, in the order in which it is given.
std::vector<uintptr_t> TakeAll(SlabMap* map) {
  std::vector<uintptr_t> all;
  for (SlabMap::Places places = map->Take(); places.free != 0; places = map->Take()) {
    for (uint64_t free = places.free; free != 0; free &= free - 1) {
      all.push_back(places.slab +
                    static_cast<size_t>(std::countr_zero(free)) * SlabMap::kPlaceSize);
    }
  }
  return all;
}

TEST(SlabMapTest, AnEmptyOneKnowsNothing) {
  SlabMap map;

  EXPECT_FALSE(map.Add(kBase));
  EXPECT_EQ(map.Take().free, 0u);
}

TEST(SlabMapTest, PlacesOfOtherSlabsAreRefused) {
  SlabMap map;
  map.AddSlab(kBase);

  EXPECT_EQ(map.Take().free, 0u);
  EXPECT_FALSE(map.Add(kBase + SlabMap::kSlabSize));
  EXPECT_FALSE(map.Add(kBase - SlabMap::kPlaceSize));
  EXPECT_TRUE(map.Add(kBase + SlabMap::kSlabSize - SlabMap::kPlaceSize));
  EXPECT_EQ(TakeAll(&map),
            std::vector<uintptr_t>{kBase + SlabMap::kSlabSize - SlabMap::kPlaceSize});
}

// 300 pieces of the address space, some of them far away.
TEST(SlabMapTest, WhatIsAddedInAnyOrderIsTakenOnceAndInOrder) {
  SlabMap map;
  std::vector<uintptr_t> places;
  for (uintptr_t i = 0; i < 300; ++i) {
    const uintptr_t slab =
        kBase + i * 64 * SlabMap::kSlabSize * (i < 200 ? 1 : 1024) + i % 64 * SlabMap::kSlabSize;
    map.AddSlab(slab);
    for (uintptr_t k = 0; k < SlabMap::kPlaces; ++k) {
      places.push_back(slab + k * SlabMap::kPlaceSize);
    }
  }
  std::vector<uintptr_t> shuffled = places;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(1));

  for (const uintptr_t place : shuffled) EXPECT_TRUE(map.Add(place));

  EXPECT_EQ(TakeAll(&map), places);
  EXPECT_EQ(map.Take().free, 0u);
}

TEST(SlabMapTest, GoesOnBehindWhatWasTakenAndComesBack) {
  SlabMap map;
  const uintptr_t first = kBase;
  const uintptr_t second = kBase + 64 * SlabMap::kSlabSize;
  map.AddSlab(first);
  map.AddSlab(second);
  map.Add(second);
  EXPECT_EQ(map.Take().slab, second);

  map.Add(first);

  EXPECT_EQ(map.Take().slab, first);
  EXPECT_EQ(map.Take().free, 0u);
}

}  // namespace
}  // namespace weft::internal
