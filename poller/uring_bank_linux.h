// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_BANK_LINUX_H_
#define WEFT_POLLER_URING_BANK_LINUX_H_

#include <cstdint>
#include <cstring>
#include <utility>

#include "weft/poller/operation.h"
#include "weft/poller/slab_pool.h"
#include "weft/poller/uring_buffers_linux.h"

namespace weft::internal {

// UringBank
//
// What the kernel has handed over of a stream for one who had no buffer: announced to it
// and not fetched yet, or left behind by one who gave up. One block of the buffers that
// are lent, or an error in its place; an error that is taken is told once.
//
// Threads: belongs to the loop's thread. `Free()` before the buffers go.
class UringBank {
 public:
  bool empty() const { return block_ == nullptr && error_ == 0; }
  bool has_bytes() const { return block_ != nullptr; }

  // REQUIRES: it is empty.
  void Put(char* block, uint32_t size) {
    block_ = block;
    begin_ = 0;
    end_ = size;
  }
  void PutError(int error) { error_ = error; }

  // Copies what there is room for into the buffers of a receive, or a read: how many
  // bytes, or the error. They stay if it only peeks.
  int64_t CopyTo(Operation* op, UringBuffers* buffers);

  // Hands over all: how many bytes are in `*slab`; or the error, or 0 at the end.
  int64_t MoveTo(Slab* slab, UringBuffers* buffers) {
    if (block_ == nullptr) return std::exchange(error_, 0);
    const uint32_t size = end_ - begin_;
    *slab = buffers->ToSlab(std::exchange(block_, nullptr));
    // Somebody took some of it in between.
    if (begin_ != 0) std::memmove(slab->data(), slab->data() + begin_, size);
    return size;
  }

  void Free(UringBuffers* buffers);

 private:
  char* block_ = nullptr;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  int error_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_BANK_LINUX_H_
