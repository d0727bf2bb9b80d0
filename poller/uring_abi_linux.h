// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_URING_ABI_LINUX_H_
#define WEFT_POLLER_URING_ABI_LINUX_H_

#include <cstdint>

// The part of Linux's io_uring interface that weft uses: layouts and numbers as the
// kernel has them, with the release in which each came if that is later than 6.1,
// which is the oldest that will do. See io_uring_setup(2), io_uring_enter(2) and
// io_uring_register(2).
//
// Why not <linux/io_uring.h>: it is that of the machine weft is built on, and may be
// older than the machine it runs on. Why not liburing: what we would need of it is
// three system calls and two ring buffers (uring_linux.h), and it would be one more
// thing to install; the releases that distributions have lack what newer kernels do.
namespace weft::internal::uring {

// --- Submission ---

struct Sqe {
  uint8_t opcode;
  uint8_t flags;
  uint16_t ioprio;
  int32_t fd;
  uint64_t off;  // Or a second address.
  uint64_t addr;
  uint32_t len;
  uint32_t op_flags;
  uint64_t user_data;
  uint16_t buf_group;
  uint16_t personality;
  int32_t file_index;
  uint64_t addr3;
  uint64_t pad;
};
static_assert(sizeof(Sqe) == 64);

enum Op : uint8_t {
  kOpNop = 0,
  kOpFsync = 3,
  kOpPollAdd = 6,
  kOpSendMsg = 9,
  kOpRecvMsg = 10,
  kOpAccept = 13,
  kOpAsyncCancel = 14,
  kOpConnect = 16,
  kOpRead = 22,
  kOpWrite = 23,
  kOpSend = 26,
  kOpRecv = 27,
};

// Sqe::flags
inline constexpr uint8_t kSqeBufferSelect = 1 << 5;
inline constexpr uint8_t kSqeCqeSkipSuccess = 1 << 6;

// Sqe::ioprio of kOpRecv, kOpSend and kOpAccept
inline constexpr uint16_t kRecvSendPollFirst = 1 << 0;
inline constexpr uint16_t kRecvMultishot = 1 << 1;
inline constexpr uint16_t kAcceptMultishot = 1 << 0;

// Sqe::len of kOpPollAdd
inline constexpr uint32_t kPollAddMulti = 1 << 0;

// Sqe::op_flags
inline constexpr uint32_t kFsyncDataSync = 1 << 0;
inline constexpr uint32_t kRwfNoSignal = 0x100;  // 6.18

// --- Completion ---

struct Cqe {
  uint64_t user_data;
  int32_t res;
  uint32_t flags;
};
static_assert(sizeof(Cqe) == 16);

inline constexpr uint32_t kCqeBuffer = 1 << 0;
inline constexpr uint32_t kCqeMore = 1 << 1;
inline constexpr uint32_t kCqeSockNonempty = 1 << 2;
inline constexpr int kCqeBufferShift = 16;

// --- io_uring_setup ---

struct SqOffsets {
  uint32_t head, tail, ring_mask, ring_entries, flags, dropped, array, reserved;
  uint64_t user_addr;
};

struct CqOffsets {
  uint32_t head, tail, ring_mask, ring_entries, overflow, cqes, flags, reserved;
  uint64_t user_addr;
};

struct Params {
  uint32_t sq_entries;
  uint32_t cq_entries;
  uint32_t flags;
  uint32_t sq_thread_cpu;
  uint32_t sq_thread_idle;
  uint32_t features;
  uint32_t wq_fd;
  uint32_t reserved[3];
  SqOffsets sq_off;
  CqOffsets cq_off;
};
static_assert(sizeof(Params) == 120);

inline constexpr uint32_t kSetupCqSize = 1 << 3;
inline constexpr uint32_t kSetupClamp = 1 << 4;
inline constexpr uint32_t kSetupSubmitAll = 1 << 7;
inline constexpr uint32_t kSetupTaskrunFlag = 1 << 9;
inline constexpr uint32_t kSetupSingleIssuer = 1 << 12;
inline constexpr uint32_t kSetupDeferTaskrun = 1 << 13;

inline constexpr uint32_t kFeatSingleMmap = 1 << 0;
inline constexpr uint32_t kFeatNodrop = 1 << 1;
inline constexpr uint32_t kFeatRwCurPos = 1 << 3;
inline constexpr uint32_t kFeatFastPoll = 1 << 5;
inline constexpr uint32_t kFeatExtArg = 1 << 8;
inline constexpr uint32_t kFeatCqeSkip = 1 << 11;
inline constexpr uint32_t kFeatMinTimeout = 1 << 15;  // 6.12

inline constexpr uint64_t kMmapSqRing = 0;
inline constexpr uint64_t kMmapSqes = 0x10000000;

// The word at SqOffsets::flags
inline constexpr uint32_t kSqCqOverflow = 1 << 1;
inline constexpr uint32_t kSqTaskrun = 1 << 2;

// --- io_uring_enter ---

struct Timespec {
  int64_t seconds;
  int64_t nanoseconds;
};

struct GetEventsArg {
  uint64_t sigmask;
  uint32_t sigmask_size;
  uint32_t min_wait_usec;  // 6.12
  uint64_t timeout;        // Of a Timespec.
};
static_assert(sizeof(GetEventsArg) == 24);

inline constexpr uint32_t kEnterGetEvents = 1 << 0;
inline constexpr uint32_t kEnterExtArg = 1 << 3;
inline constexpr uint32_t kEnterAbsTimer = 1 << 5;  // 6.12

// --- io_uring_register ---

inline constexpr unsigned kRegisterFiles = 2;
inline constexpr unsigned kRegisterEventfd = 4;
inline constexpr unsigned kRegisterProbe = 8;
inline constexpr unsigned kRegisterBufferRing = 22;

struct ProbeOp {
  uint8_t op;
  uint8_t reserved;
  uint16_t flags;  // kOpSupported
  uint32_t reserved2;
};
inline constexpr uint16_t kOpSupported = 1 << 0;

struct Probe {
  uint8_t last_op;
  uint8_t ops_len;
  uint16_t reserved;
  uint32_t reserved2[3];
  ProbeOp ops[64];
};
static_assert(sizeof(Probe) == 16 + 64 * 8);

// A buffer that the kernel may fill. The first one's `tail` is the ring's.
struct BufferSlot {
  uint64_t addr;
  uint32_t len;
  uint16_t id;
  uint16_t tail;
};
static_assert(sizeof(BufferSlot) == 16);

struct BufferRingReg {
  uint64_t ring_addr;
  uint32_t ring_entries;
  uint16_t group;
  uint16_t flags;
  uint64_t reserved[3];
};
static_assert(sizeof(BufferRingReg) == 40);

}  // namespace weft::internal::uring

#endif  // WEFT_POLLER_URING_ABI_LINUX_H_
