// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/uring_linux.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "weft/core/clock.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

namespace {

// The numbers are the same on all architectures, as those of all newer calls.
#ifndef __NR_io_uring_setup
#define __NR_io_uring_setup 425
#define __NR_io_uring_enter 426
#define __NR_io_uring_register 427
#endif

int Setup(uint32_t entries, uring::Params* params) {
  return AboveStandardStreams(static_cast<int>(::syscall(__NR_io_uring_setup, entries, params)));
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

constinit std::atomic<uint32_t> Uring::nothing{0};

int Uring::Open(const UringOptions& options) {
  uring::Params params = {};
  // Completions at no other time than in our own call: without interrupting what we
  // do, and many at once. Without DEFER_TASKRUN a ring that was closed may still
  // receive, on the thread that submitted, and what came is lost.
  params.flags = uring::kSetupCqSize | uring::kSetupClamp | uring::kSetupSubmitAll |
                 uring::kSetupTaskrunFlag | uring::kSetupSingleIssuer | uring::kSetupDeferTaskrun;
  params.cq_entries = options.cq_entries;
  const int fd = Setup(options.sq_entries, &params);
  if (fd < 0) return fd;
  fd_ = fd;
  process_ = ::getpid();
  has_abs_timer_ = options.use_newer && (params.features & uring::kFeatMinTimeout) != 0;
  constexpr uint32_t kNeeded = uring::kFeatSingleMmap | uring::kFeatNodrop | uring::kFeatRwCurPos |
                               uring::kFeatFastPoll | uring::kFeatExtArg | uring::kFeatCqeSkip;
  int error = (params.features & kNeeded) == kNeeded ? Map(params) : -EINVAL;
  if (error != 0) {
    Close();
    return error;
  }
  return 0;
}

int Uring::Map(const uring::Params& params) {
  rings_size_ = std::max(params.sq_off.array + params.sq_entries * sizeof(uint32_t),
                         params.cq_off.cqes + params.cq_entries * sizeof(uring::Cqe));
  sqes_size_ = params.sq_entries * sizeof(uring::Sqe);
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  constexpr int kShared = MAP_SHARED | MAP_POPULATE;
  void* rings = ::mmap(nullptr, rings_size_, kAccess, kShared, fd_, uring::kMmapSqRing);
  if (rings == MAP_FAILED) return -errno;
  rings_ = rings;
  void* sqes = ::mmap(nullptr, sqes_size_, kAccess, kShared, fd_, uring::kMmapSqes);
  if (sqes == MAP_FAILED) return -errno;
  sqes_ = static_cast<uring::Sqe*>(sqes);
  ::madvise(rings, rings_size_, MADV_DONTFORK);
  ::madvise(sqes, sqes_size_, MADV_DONTFORK);

  char* base = static_cast<char*>(rings);
  const auto word = [base](uint32_t offset) {
    return reinterpret_cast<std::atomic<uint32_t>*>(base + offset);
  };
  sq_tail_ = word(params.sq_off.tail);
  sq_flags_ = word(params.sq_off.flags);
  cq_head_ = word(params.cq_off.head);
  cq_tail_ = word(params.cq_off.tail);
  sq_mask_ = params.sq_entries - 1;
  cq_mask_ = params.cq_entries - 1;
  cqes_ = reinterpret_cast<const uring::Cqe*>(base + params.cq_off.cqes);
  // Entries are submitted in the order of their places, for ever.
  auto* array = reinterpret_cast<uint32_t*>(base + params.sq_off.array);
  for (uint32_t i = 0; i < params.sq_entries; ++i) array[i] = i;
  return 0;
}

bool Uring::is_ours() const { return process_ == ::getpid(); }

void Uring::Close() {
  if (fd_ < 0) return;
  const bool owns_memory = is_ours();  // Else only the descriptor.
  if (owns_memory && sqes_ != nullptr) ::munmap(sqes_, sqes_size_);
  if (owns_memory && rings_ != nullptr) ::munmap(rings_, rings_size_);
  ::close(fd_);
  fd_ = -1;
  rings_ = nullptr;
  sqes_ = nullptr;
  sqe_tail_ = sq_submitted_ = 0;
  sq_tail_ = sq_flags_ = cq_head_ = cq_tail_ = &nothing;
}

uring::Sqe* Uring::NextSqe() {
  if (sqes_ == nullptr || sqe_tail_ - sq_submitted_ > sq_mask_) return nullptr;
  uring::Sqe* sqe = &sqes_[sqe_tail_++ & sq_mask_];
  std::memset(sqe, 0, sizeof(*sqe));
  return sqe;
}

int Uring::Enter(const Wait& wait) {
  if (!is_open()) return -EBADF;
  sq_tail_->store(sqe_tail_, std::memory_order_release);
  while (true) {
    const uint32_t to_submit = unsubmitted();
    const int result = EnterOnce(to_submit, wait);
    if (result == -ETIME) return 0;
    // Out of memory for requests, or for completions: what there is has to be reaped
    // first. It stays in the ring.
    if (result == -EAGAIN || result == -EBUSY) return 0;
    if (result < 0) return result;
    sq_submitted_ += static_cast<uint32_t>(result);
    // It does not wait if it could not take all.
    if (unsubmitted() == 0 || result == 0) return 0;
  }
}

int Uring::EnterOnce(uint32_t to_submit, const Wait& wait) {
  uring::Timespec timeout;
  uring::GetEventsArg argument = {};
  uint32_t flags = uring::kEnterGetEvents | uring::kEnterExtArg;
  if (wait.count > 0) {
    if (wait.deadline != TimePoint::InfiniteFuture()) {
      // A clock that is read before the kernel reads it makes it late, never early.
      const int64_t nanoseconds =
          has_abs_timer_ ? wait.deadline.nanoseconds()
                         : std::max<int64_t>(
                               wait.deadline.nanoseconds() - SteadyClock::Read().nanoseconds(), 0);
      timeout = {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
      argument.timeout = reinterpret_cast<uint64_t>(&timeout);
      if (has_abs_timer_) flags |= uring::kEnterAbsTimer;
    }
  }
  const long result = ::syscall(__NR_io_uring_enter, fd_, to_submit, wait.count, flags, &argument,
                                sizeof(argument));
  return result < 0 ? -errno : static_cast<int>(result);
}

int Uring::Register(unsigned opcode, void* argument, unsigned count) {
  const long result = ::syscall(__NR_io_uring_register, fd_, opcode, argument, count);
  return result < 0 ? -errno : static_cast<int>(result);
}

}  // namespace weft::internal
