// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/read_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::internal {

void ReadBuffer::Append(Slab slab, size_t count) {
  if (count == 0) return;
  if (empty()) {
    Clear();
    slab_ = std::move(slab);
    begin_ = slab_.data();
    end_ = begin_ + count;
    capacity_end_ = begin_ + slab_.size();
    return;
  }
  MakeRoom(count);
  std::memcpy(end_, slab.data(), count);
  end_ += count;
}

void ReadBuffer::Clear() {
  slab_.Reset();
  long_.reset();
  begin_ = end_ = capacity_end_ = nullptr;
}

void ReadBuffer::MakeRoom(size_t count) {
  if (static_cast<size_t>(capacity_end_ - end_) >= count) return;
  const size_t unread = size();
  char* const start = const_cast<char*>(base());
  const size_t capacity = static_cast<size_t>(capacity_end_ - start);
  // Moving pays only if it makes more room than it costs; so appending stays
  // linear on the whole.
  if (capacity - unread >= count && unread <= capacity / 2) {
    std::memmove(start, begin_, unread);
    begin_ = start;
    end_ = start + unread;
    return;
  }
  const size_t wanted = std::max(2 * capacity, unread + count);
  std::unique_ptr<char[]> bigger(new char[wanted]);
  std::memcpy(bigger.get(), begin_, unread);
  long_ = std::move(bigger);
  slab_.Reset();
  begin_ = long_.get();
  end_ = begin_ + unread;
  capacity_end_ = begin_ + wanted;
}

}  // namespace weft::internal
