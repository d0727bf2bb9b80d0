// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/core/slab_map.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft::internal {

void SlabMap::AddSlab(uintptr_t slab) {
  const uintptr_t address = slab & ~uintptr_t{kRegionSize - 1};
  const Entry& entry = Find(address);
  Region& region = entry.address != 0 ? *entry.region : AddRegion(address);
  region.slabs |= uint64_t{1} << (slab / kSlabSize % 64);
}

bool SlabMap::Add(uintptr_t place) {
  const Entry& entry = Find(place & ~uintptr_t{kRegionSize - 1});
  if (entry.address == 0) return false;
  Region& region = *entry.region;
  const size_t slab = place / kSlabSize % 64;
  if ((region.slabs >> slab & 1) == 0) return false;
  if (ABSL_PREDICT_FALSE(region.has_free == 0)) {
    has_free_[region.index / 64] |= uint64_t{1} << (region.index % 64);
  }
  region.has_free |= uint64_t{1} << slab;
  region.free[slab] |= BitOf(place);
  return true;
}

SlabMap::Places SlabMap::Take() {
  const size_t words = has_free_.size();
  size_t word = next_ / 64;
  uint64_t wanted = ~uint64_t{0} << (next_ % 64);
  // At first what is behind `next_`, in the end what is before.
  for (size_t left = words == 0 ? 0 : words + 1; left > 0; --left) {
    if (const uint64_t found = has_free_[word] & wanted; found != 0) {
      next_ = word * 64 + static_cast<size_t>(std::countr_zero(found));
      Region& region = *regions_[next_];
      const int slab = std::countr_zero(region.has_free);
      region.has_free &= region.has_free - 1;
      if (region.has_free == 0) has_free_[word] &= ~(uint64_t{1} << (next_ % 64));
      return {region.address + static_cast<uintptr_t>(slab) * kSlabSize,
              std::exchange(region.free[slab], 0)};
    }
    wanted = ~uint64_t{0};
    word = word + 1 == words ? 0 : word + 1;
  }
  return {0, 0};
}

SlabMap::Region& SlabMap::AddRegion(uintptr_t address) {
  const size_t index = regions_.size();
  auto region = std::make_unique<Region>();
  region->address = address;
  region->index = index;
  std::vector<Entry> table;
  if ((index + 1) * 2 > table_.size()) table.resize(table_.size() * 2);
  if (index % 64 == 0 && has_free_.size() == index / 64) has_free_.push_back(0);
  regions_.push_back(std::move(region));
  if (!table.empty()) {
    table_ = std::move(table);
    mask_ = table_.size() - 1;
    for (size_t i = 0; i < index; ++i) {
      Find(regions_[i]->address) = {regions_[i]->address, regions_[i].get()};
    }
  }
  Find(address) = {address, regions_.back().get()};
  return *regions_.back();
}

}  // namespace weft::internal
