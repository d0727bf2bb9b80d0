// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_CORE_SLAB_MAP_H_
#define WEFT_CORE_SLAB_MAP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/optimization.h"

namespace weft::internal {

// SlabMap
//
// Which places of some slabs are free: a bit each, in order of the addresses. A free list
// gives memory back in the order in which it was freed, at random as a rule, and at a
// million places each is then a miss of the cache and of the TLB. From here it comes a slab
// at a time and in order, whatever the order in which it came; and what is free is not
// touched.
//
// It says nothing of what is not in one of its slabs. Adding and taking are O(1); taking
// looks at a word for each 32 MiB.
//
// Threads: none of its own.
class SlabMap {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr size_t kPlaceSize = 128;
  static constexpr size_t kSlabSize = kPlaces * kPlaceSize;

  static uintptr_t SlabOf(uintptr_t place) { return place & ~uintptr_t{kSlabSize - 1}; }
  static uint64_t BitOf(uintptr_t place) { return uint64_t{1} << (place / kPlaceSize % kPlaces); }

  // A slab of which nothing is free yet. REQUIRES: aligned to its size.
  void AddSlab(uintptr_t slab);

  // Marks a place as free. False if it is in none of the slabs.
  bool Add(uintptr_t place);

  // Takes all that is free of the slab that comes next: its address, and a bit for each
  // place. No bits if nothing is free.
  struct Places {
    uintptr_t slab;
    uint64_t free;
  };
  Places Take();

 private:
  // The slabs in one aligned piece of the address space.
  struct Region {
    uint64_t slabs = 0;      // Those that are ours.
    uint64_t has_free = 0;   // Those of them with anything free.
    uint64_t free[64] = {};  // By slab.
    uintptr_t address = 0;
    size_t index = 0;
  };
  static constexpr size_t kRegionSize = 64 * kSlabSize;

  // An open hash table of the regions, never more than half full.
  struct Entry {
    uintptr_t address = 0;  // Null: there is none here.
    Region* region = nullptr;
  };

  Entry& Find(uintptr_t address) {
    Entry* entry = &table_[address / kRegionSize & mask_];
    while (ABSL_PREDICT_FALSE(entry->address != address) && entry->address != 0) {
      entry = entry == &table_[mask_] ? &table_[0] : entry + 1;
    }
    return *entry;
  }
  Region& AddRegion(uintptr_t address);

  std::vector<std::unique_ptr<Region>> regions_;
  std::vector<uint64_t> has_free_;  // A bit for each region.
  size_t next_ = 0;                 // The region to go on with.
  std::vector<Entry> table_{16};
  size_t mask_ = 15;
};

}  // namespace weft::internal

#endif  // WEFT_CORE_SLAB_MAP_H_
