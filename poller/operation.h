// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_POLLER_OPERATION_H_
#define WEFT_POLLER_OPERATION_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/macros.h"
#include "weft/core/runnable.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/sock_addr.h"

namespace weft {

// What an `Operation` asks for. The `Prepare...` function of the same name says
// what goes in, and what comes out.
enum class OpCode : uint8_t {
  kRecv,
  kRecvLent,
  kSend,
  kSendMsg,
  kRecvMsg,
  kAccept,
  kConnect,
  kRead,
  kWrite,
  kFsync,
  kWaitReadable,
  kWaitWritable,
  kRetire,
};

// A piece of the caller's memory. Laid out as POSIX's `iovec`.
struct Buffer {
  void* data;
  size_t size;
};

// Several of them, in order.
struct BufferList {
  const Buffer* data;
  size_t count;
};

// Flags of `PrepareWait...()`: the same wait as before is started again, and the
// handle is known to stand for the same file. Saves the look whether it does.
inline constexpr int kWaitAgain = 1;

// Flags of `PrepareRetire()`: all but the close. For a handle that goes back to
// whoever owns it. A `kRecvLent` that has announced bytes by then, or that was cancelled
// too late, may still fetch them; on a readiness backend they are still the kernel's
// instead, and it ends with -ECANCELED. Only what was announced to one who gave up is not
// for who receives without the poller, on a completion backend: it is kept for the next
// operation on that file. Connections that were accepted for nobody are closed.
inline constexpr int kKeepOpen = 1;

// Flags of `PrepareRecvLent()`: the handle need be no socket.
inline constexpr int kAnyFile = 1;

// `message_flags` of a `kRecvLent` that has announced bytes: they are still the kernel's, so
// it costs nothing to fetch them later. Else they lie in memory of the backend.
inline constexpr int kWithKernel = 1;

// Flags of `PrepareFsync()`: only what is needed to read the data back.
inline constexpr int kDataOnly = 1;

// Operation
//
// One request to the kernel, and the runnable that runs when it is finished.
//
// Fill in the request by one of the `Prepare` functions, hand it to
// `Poller::Start()`, and read `result` when it is done. Between the two, the
// operation and all that it points to belong to the poller: they may neither
// move, nor change, nor go away. `Poller::Cancel()` asks for an early end, and
// it still runs.
//
//   op.PrepareRecv(handle, buffer, sizeof(buffer));
//   if (poller->Start(&op) == StartResult::kDone) return op.result;
//   // Else `op` runs when it is finished.
//
//             Start()                 finished, or Cancel()
//   kIdle ---------------> kPending ------------------------> kDone
//     |                        ^                               | ^
//     |                        +-----------  Start()  ---------+ |
//     +------------- Start(), finished at once ------------------+
//
// Every backend fills in `result` alike, so nothing above `poller/` knows which
// one is at work. Order is kept per handle and direction: a later operation
// never overtakes an earlier one of the same direction. Receive, read, accept
// and wait-readable are one direction; send, write, connect and wait-writable
// the other.
//
// Threads: belongs to the loop's thread.
struct Operation : Runnable {
  enum class State : uint8_t { kIdle, kPending, kDone };

  static constexpr size_t kBackendBytes = 64;

  using Runnable::Runnable;
  ~Operation() { ABSL_HARDENING_ASSERT(state != State::kPending && "cancel it, and let it end"); }

  // One cannot just forget an operation: `Poller::Cancel()`.
  void Cancel() = delete;

  // Receives up to `size` bytes. `result`: how many; 0 at the end of a stream,
  // or for an empty datagram. `flags`: MSG_PEEK and the like.
  void PrepareRecv(NativeHandle from, void* data, size_t size, int recv_flags = 0) {
    Prepare(OpCode::kRecv, from, recv_flags);
    buffer = {data, size};
  }

  // Waits until there is something to receive, without a buffer to put it in.
  // When it is done, `Poller::FetchLent()` fetches the bytes. For stream
  // sockets, and by `kAnyFile` for pipes, terminals and files as well; an idle
  // connection holds no memory but the operation.
  void PrepareRecvLent(NativeHandle from, int lent_flags = 0) {
    Prepare(OpCode::kRecvLent, from, lent_flags);
  }

  // Sends. `result`: how many bytes were taken, which may be fewer than `size`.
  // Never raises SIGPIPE; a peer that has gone is -EPIPE or -ECONNRESET.
  void PrepareSend(NativeHandle to, const void* data, size_t size, int send_flags = 0) {
    Prepare(OpCode::kSend, to, send_flags);
    buffer = {const_cast<void*>(data), size};
  }

  // Sends up to 1024 pieces, in order, as one message; to `*dest` unless that is
  // null. As `PrepareSend()` else.
  void PrepareSendMsg(NativeHandle to, const Buffer* data, size_t count,
                      const SockAddr* dest = nullptr, int send_flags = 0) {
    Prepare(OpCode::kSendMsg, to, send_flags);
    buffers = {data, count};
    address = const_cast<SockAddr*>(dest);
  }

  // Receives into up to 1024 pieces. Writes the sender to `*source`, unless that
  // is null, and the kernel's flags (MSG_TRUNC, ...) to `message_flags`. With
  // `control` set by the caller: ancillary data goes there, and `control_size`
  // becomes its length; descriptors in it are close-on-exec.
  void PrepareRecvMsg(NativeHandle from, const Buffer* data, size_t count,
                      SockAddr* source = nullptr, int recv_flags = 0) {
    Prepare(OpCode::kRecvMsg, from, recv_flags);
    buffers = {data, count};
    address = source;
  }

  // Accepts one connection. `result`: its handle, non-blocking and
  // close-on-exec. Writes the peer to `*peer`, unless that is null.
  void PrepareAccept(NativeHandle listener, SockAddr* peer = nullptr) {
    Prepare(OpCode::kAccept, listener);
    address = peer;
  }

  // Connects. `result`: 0. After a cancelled or failed one, retire the handle: no
  // kernel can say in what state it is.
  void PrepareConnect(NativeHandle from, const SockAddr* to) {
    Prepare(OpCode::kConnect, from);
    address = const_cast<SockAddr*>(to);
  }

  // Reads from a file, a pipe or a terminal, at `at` or, by -1, at the current
  // position. `result`: how many bytes, 0 at the end. A readiness backend reads
  // a regular file at once, and the loop waits for the disk.
  void PrepareRead(NativeHandle from, void* data, size_t size, int64_t at = -1) {
    Prepare(OpCode::kRead, from);
    buffer = {data, size};
    offset = at;
  }

  // Writes; as `PrepareRead()`. `result`: how many bytes were taken, which may
  // be fewer. Never raises SIGPIPE: a pipe that nobody reads is -EPIPE.
  void PrepareWrite(NativeHandle to, const void* data, size_t size, int64_t at = -1) {
    Prepare(OpCode::kWrite, to);
    buffer = {const_cast<void*>(data), size};
    offset = at;
  }

  // Waits until what was written is on the disk. `result`: 0.
  void PrepareFsync(NativeHandle of, int fsync_flags = 0) {
    Prepare(OpCode::kFsync, of, fsync_flags);
  }

  // Waits until the handle is readable (or at its end, or broken), by the state
  // at the time of the poll, and takes nothing: `result` 0. -EPERM for a regular
  // file, as epoll has it; -EBADF for a number that is not open.
  //
  // A plain start finds out whether the number has come back for another file
  // since it was last watched. One that goes on watching passes `kWaitAgain`,
  // and saves a system call.
  void PrepareWaitReadable(NativeHandle of, int wait_flags = 0) {
    Prepare(OpCode::kWaitReadable, of, wait_flags);
  }

  // The same for writable.
  void PrepareWaitWritable(NativeHandle of, int wait_flags = 0) {
    Prepare(OpCode::kWaitWritable, of, wait_flags);
  }

  // Replaces close: ends what is pending on the handle with -ECANCELED (unless
  // the kernel was faster), in the order in which it was started, deregisters
  // and closes. It is given back last, when the kernel holds nothing any more;
  // never `kDone` at once, so that all that ended before it has run by then.
  // `result`: what close said; the handle is gone either way.
  //
  // A readiness backend closes in `Start()`. Its number may come back from then
  // on, and nothing of the old registration reaches the new file.
  void PrepareRetire(NativeHandle what, int retire_flags = 0) {
    Prepare(OpCode::kRetire, what, retire_flags);
  }

  // The request. What the opcode does not use is zero.
  NativeHandle handle = kInvalidHandle;
  int64_t result = 0;  // Out: >= 0, or a negated errno.
  union {
    Buffer buffer = {};  // kRecv, kSend, kRead, kWrite.
    BufferList buffers;  // kSendMsg, kRecvMsg.
  };
  SockAddr* address = nullptr;  // kConnect, kSendMsg: in. kAccept, kRecvMsg: out.
  union {
    int64_t offset = 0;  // kRead, kWrite.
    void* control;       // kSendMsg: in. kRecvMsg: out.
  };
  uint32_t control_size = 0;
  int flags = 0;
  int message_flags = 0;  // kRecvMsg, kRecvLent: out.
  OpCode opcode = OpCode::kRecv;
  // kSend, kSendMsg: nobody waits for the end, so a `Wait()` need not return for its
  // sake if all went well. Set after `PrepareSend()`; may change until `Wait()`.
  bool is_quiet = false;
  State state = State::kIdle;

  // The backend's, from `Start()` until it is given back: an OVERLAPPED, a msghdr,
  // a place in a table. What does not fit lies in a block that this points to.
  alignas(8) std::byte backend[kBackendBytes];

 private:
  void Prepare(OpCode code, NativeHandle on, int with_flags = 0) {
    ABSL_HARDENING_ASSERT(state != State::kPending && !is_linked());
    opcode = code;
    handle = on;
    flags = with_flags;
    buffer = {};
    address = nullptr;
    offset = 0;
    control_size = 0;
    message_flags = 0;
    result = 0;
    is_quiet = false;
    state = State::kIdle;
  }
};

}  // namespace weft

#endif  // WEFT_POLLER_OPERATION_H_
