// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/net/write_queue.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/core/block_pool.h"

namespace weft::internal {

// The head of a block: the bytes lie behind it.
struct WriteQueue::Piece {
  static constexpr size_t kSmallBlock = 1024;

  Piece(size_t block_size, Slab from)
      : slab(std::move(from)),
        begin(reinterpret_cast<char*>(this + 1)),
        end(begin),
        limit(reinterpret_cast<char*>(this) + block_size) {}

  Piece* next = nullptr;
  Slab slab;  // That in which all this lies; none: a small block.
  char* begin;
  char* end;
  char* limit;
};

bool WriteQueue::Append(std::string_view data, SlabPool* pool) {
  while (!data.empty()) {
    if (last_ == nullptr || last_->end == last_->limit) {
      const bool is_small = last_ == nullptr && data.size() <= Piece::kSmallBlock - sizeof(Piece);
      Piece* piece = is_small ? NewSmallPiece() : NewSlabPiece(pool);
      if (piece == nullptr) return false;
      (last_ == nullptr ? first_ : last_->next) = piece;
      last_ = piece;
    }
    const size_t room = static_cast<size_t>(last_->limit - last_->end);
    const size_t count = std::min(room, data.size());
    std::memcpy(last_->end, data.data(), count);
    last_->end += count;
    size_ += count;
    data.remove_prefix(count);
  }
  return true;
}

size_t WriteQueue::Pieces(Buffer* pieces, size_t count) const {
  size_t found = 0;
  for (Piece* piece = first_; piece != nullptr && found < count; piece = piece->next) {
    pieces[found++] = {piece->begin, static_cast<size_t>(piece->end - piece->begin)};
  }
  return found;
}

void WriteQueue::Consume(size_t count) {
  size_ -= count;
  while (first_ != nullptr) {
    const size_t here = static_cast<size_t>(first_->end - first_->begin);
    if (count < here) {
      first_->begin += count;
      return;
    }
    count -= here;
    Delete(std::exchange(first_, first_->next));
    if (count == 0) break;
  }
  if (first_ == nullptr) last_ = nullptr;
}

void WriteQueue::Clear() {
  while (first_ != nullptr) Delete(std::exchange(first_, first_->next));
  last_ = nullptr;
  size_ = 0;
}

WriteQueue::Piece* WriteQueue::NewSmallPiece() {
  return new (AllocateBlock(Piece::kSmallBlock)) Piece(Piece::kSmallBlock, Slab());
}

WriteQueue::Piece* WriteQueue::NewSlabPiece(SlabPool* pool) {
  Slab slab = pool->Take();
  if (!slab) return nullptr;
  char* const data = slab.data();
  const size_t size = slab.size();
  return new (data) Piece(size, std::move(slab));
}

void WriteQueue::Delete(Piece* piece) {
  Slab slab = std::move(piece->slab);
  piece->~Piece();
  if (!slab) FreeBlock(piece, Piece::kSmallBlock);
}

}  // namespace weft::internal
