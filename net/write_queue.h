// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_WRITE_QUEUE_H_
#define WEFT_NET_WRITE_QUEUE_H_

#include <cstddef>
#include <string_view>

#include "weft/poller/operation.h"
#include "weft/poller/slab_pool.h"

namespace weft::internal {

// What is to be sent, in order. It lies in pieces that never move, so that more
// can be appended while the kernel reads the first ones: one small piece, from the
// thread's free list, for the usual short answer, then slabs. An empty queue holds
// no memory.
//
// Threads: that of its pool.
class WriteQueue {
 public:
  WriteQueue() = default;
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;
  ~WriteQueue() { Clear(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Copies `data`; slabs come from `pool`. False if there is no memory: then a part
  // of it may have been appended.
  bool Append(std::string_view data, SlabPool* pool);

  // The first pieces, `count` at most; how many there are.
  size_t Pieces(Buffer* pieces, size_t count) const;

  // Drops the first `count` bytes. REQUIRES: there are so many.
  void Consume(size_t count);

  // REQUIRES: the kernel reads nothing of it.
  void Clear();

 private:
  struct Piece;

  static Piece* NewSmallPiece();
  static Piece* NewSlabPiece(SlabPool* pool);
  static void Delete(Piece* piece);

  Piece* first_ = nullptr;
  Piece* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_NET_WRITE_QUEUE_H_
