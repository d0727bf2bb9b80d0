// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_LINUX_H_
#define WEFT_POLLER_URING_LINUX_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/core/time_point.h"
#include "weft/poller/uring_abi_linux.h"

namespace weft::internal {

// How a ring is to be made.
struct UringOptions {
  UringOptions() {}

  // Small, as kernels since 6.14 count their memory against RLIMIT_MEMLOCK, that of
  // all processes of a user together: 16 KiB. What has no room is kept by the kernel.
  uint32_t sq_entries = 128;
  uint32_t cq_entries = 256;
  // Use what kernels later than 6.1 have. Off: as if this one had it not.
  bool use_newer = true;
};

// Uring
//
// An io_uring: the two rings that are shared with the kernel, and the system calls
// on it. What the entries mean is somebody else's.
//
//   uring::Sqe* sqe = ring.NextSqe();   // Null if the ring is full: Enter().
//   ... fill it in ...
//   ring.Enter(...);                    // Submits all of them, and waits.
//   while (const uring::Cqe* cqe = ring.Peek()) { ...; ring.Pop(); }
//
// It belongs to the thread that opens it (IORING_SETUP_SINGLE_ISSUER): from any
// other the calls fail with -EEXIST. Completions are made only in `Enter()`, and none
// after `Close()`, which any thread may call (IORING_SETUP_DEFER_TASKRUN). A child process must not
// touch it: its memory is not there (MADV_DONTFORK), so that parent and child cannot disturb each
// other.
//
// Errors: 0 or a negated errno.
class Uring {
 public:
  Uring() = default;
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;
  ~Uring() { Close(); }

  int Open(const UringOptions& options);
  void Close();

  bool is_open() const { return fd_ >= 0; }
  // False in a child process of the one that opened it.
  bool is_ours() const;

  // The next entry to be submitted, all zero. Null if the ring is full.
  uring::Sqe* NextSqe();
  uint32_t unsubmitted() const { return sqe_tail_ - sq_submitted_; }

  struct Wait {
    uint32_t count = 0;  // So many completions; 0: does not wait.
    TimePoint deadline = TimePoint::InfiniteFuture();
  };

  // Submits what there is, has completions made, and waits. Not to wait, or to be
  // ended by the deadline, is no error; a signal is -EINTR.
  int Enter(const Wait& wait);

  // Whether there is something to reap, or only `Enter()` can tell.
  bool MustEnter() const {
    return (sq_flags_->load(std::memory_order_relaxed) &
            (uring::kSqTaskrun | uring::kSqCqOverflow)) != 0;
  }

  // Completions for which there was no room: `Enter()` brings them.
  bool has_overflow() const {
    return (sq_flags_->load(std::memory_order_relaxed) & uring::kSqCqOverflow) != 0;
  }

  // The oldest completion, or null.
  const uring::Cqe* Peek() const {
    const uint32_t head = cq_head_->load(std::memory_order_relaxed);
    if (head == cq_tail_->load(std::memory_order_acquire)) return nullptr;
    return &cqes_[head & cq_mask_];
  }
  void Pop() {
    cq_head_->store(cq_head_->load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  int Register(unsigned opcode, void* argument, unsigned count);

 private:
  int Map(const uring::Params& params);
  int EnterOnce(uint32_t to_submit, const Wait& wait);

  int fd_ = -1;
  pid_t process_ = 0;  // Who opened it.
  bool has_abs_timer_ = false;

  uint32_t sqe_tail_ = 0;      // Handed out.
  uint32_t sq_submitted_ = 0;  // Taken by the kernel.
  uint32_t sq_mask_ = 0;
  uint32_t cq_mask_ = 0;
  uring::Sqe* sqes_ = nullptr;
  const uring::Cqe* cqes_ = nullptr;
  // In the rings; of one that is not open they say that there is nothing.
  static std::atomic<uint32_t> nothing;
  std::atomic<uint32_t>* sq_tail_ = &nothing;
  std::atomic<uint32_t>* sq_flags_ = &nothing;
  std::atomic<uint32_t>* cq_head_ = &nothing;
  std::atomic<uint32_t>* cq_tail_ = &nothing;

  void* rings_ = nullptr;
  size_t rings_size_ = 0;
  size_t sqes_size_ = 0;
};

}  // namespace weft::internal

#endif  // WEFT_POLLER_URING_LINUX_H_
