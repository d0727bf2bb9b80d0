// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// SIGPIPE is never raised, and the process's disposition never touched. Sockets
// have MSG_NOSIGNAL, or an option. For pipes there is RWF_NOSIGNAL since Linux 6.18;
// before, and elsewhere, `SigpipeBlock`.

#include "weft/poller/perform_posix.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <ctime>

#include "weft/poller/sigpipe_posix.h"
#include "weft/poller/standard_streams_posix.h"

namespace weft::internal {

namespace {

static_assert(sizeof(Buffer) == sizeof(iovec) &&
              offsetof(Buffer, data) == offsetof(iovec, iov_base) &&
              offsetof(Buffer, size) == offsetof(iovec, iov_len));
static_assert(SockAddr::kCapacity >= sizeof(sockaddr_storage));

// Where there is no such flag, the option SO_NOSIGPIPE is set on each socket.
#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;
#endif

// Received descriptors are not inherited by child processes.
#ifdef MSG_CMSG_CLOEXEC
constexpr int kControlFlags = MSG_CMSG_CLOEXEC;
#else
constexpr int kControlFlags = 0;
#endif

// Calls `fn` until no signal interrupts it, and turns -1 into a negated errno.
template <class Fn>
int64_t Call(Fn fn) {
  while (true) {
    const int64_t result = fn();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

// The same for what may have to wait.
template <class Fn>
int64_t Try(Fn fn) {
  const int64_t result = Call(fn);
  return result == -EAGAIN || result == -EWOULDBLOCK ? kWouldBlock : result;
}

sockaddr* Native(SockAddr* address) { return reinterpret_cast<sockaddr*>(address->bytes); }

msghdr Header(Operation* op) {
  msghdr header = {};
  header.msg_iov = reinterpret_cast<iovec*>(const_cast<Buffer*>(op->buffers.data));
  header.msg_iovlen = op->buffers.count;
  if (op->control_size != 0) {
    header.msg_control = op->control;
    header.msg_controllen = op->control_size;
  }
  return header;
}

int64_t SendMsg(int fd, Operation* op) {
  msghdr header = Header(op);
  if (op->address != nullptr) {
    header.msg_name = op->address->bytes;
    header.msg_namelen = op->address->length;
  }
  return Try([&] { return ::sendmsg(fd, &header, op->flags | kNoSignal); });
}

int64_t RecvMsg(int fd, Operation* op) {
  msghdr header = Header(op);
  if (op->address != nullptr) {
    header.msg_name = op->address->bytes;
    header.msg_namelen = SockAddr::kCapacity;
  }
  const int64_t result = Try([&] { return ::recvmsg(fd, &header, op->flags | kControlFlags); });
  if (result < 0) return result;
  if (op->address != nullptr) op->address->length = header.msg_namelen;
  op->control_size = static_cast<uint32_t>(header.msg_controllen);
  op->message_flags = header.msg_flags;
  return result;
}

int AcceptCloexec(int fd, sockaddr* address, socklen_t* length) {
#ifdef __APPLE__
  const int accepted = ::accept(fd, address, length);
  if (accepted < 0) return accepted;
  const int on = 1;
  ::setsockopt(accepted, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
  ::fcntl(accepted, F_SETFD, FD_CLOEXEC);
  ::fcntl(accepted, F_SETFL, ::fcntl(accepted, F_GETFL) | O_NONBLOCK);
  return accepted;
#else
  return ::accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
#endif
}

int64_t Accept(int fd, Operation* op) {
  while (true) {
    socklen_t length = SockAddr::kCapacity;
    const int64_t result = Try([&] {
      return op->address == nullptr ? AcceptCloexec(fd, nullptr, nullptr)
                                    : AcceptCloexec(fd, Native(op->address), &length);
    });
    // That connection has gone before we took it; there may be others behind it.
    if (result == -ECONNABORTED || result == -EPROTO) continue;
    if (result < 0) return result;
    if (op->address != nullptr) op->address->length = length;
    return AboveStandardStreams(static_cast<int>(result));
  }
}

int64_t Connect(int fd, Operation* op) {
  if (::connect(fd, Native(op->address), op->address->length) == 0) return 0;
  // Interrupted, it goes on in the background (connect(2)).
  return errno == EINPROGRESS || errno == EINTR ? kWouldBlock : -errno;
}

// `Try(fn)` without a SIGPIPE from writing to `fd`.
template <class Fn>
int64_t TryWithoutSigpipe(int fd, Fn fn) {
  SigpipeBlock block(fd);
  const int64_t result = Try(fn);
  if (result == -EPIPE) block.TakeRaised();
  return result;
}

int64_t Write(int fd, Operation* op) {
  const Buffer& from = op->buffer;
  if (op->offset >= 0) {  // Of what has offsets, nothing raises SIGPIPE.
    return Try([&] { return ::pwrite(fd, from.data, from.size, op->offset); });
  }
#ifdef __linux__
  constexpr int kRwfNoSignal = 0x100;  // RWF_NOSIGNAL, which our headers may not have.
  static std::atomic<bool> has_no_signal{true};
  if (has_no_signal.load(std::memory_order_relaxed)) {
    const iovec piece = {from.data, from.size};
    const int64_t result =
        Try([&] { return ::pwritev2(fd, &piece, 1, /*offset=*/-1, kRwfNoSignal); });
    const bool is_unknown = result == -EOPNOTSUPP || result == -ENOSYS;
    if (!is_unknown && result != -EINVAL && result != -EPERM) return result;
    // An old kernel does not know it, and never will. (A file in /proc says so too,
    // which only makes us slower.) The others may be due to this file, or to a
    // sandbox: write(2) has the last word.
    if (is_unknown) has_no_signal.store(false, std::memory_order_relaxed);
  }
#endif
  return TryWithoutSigpipe(fd, [&] { return ::write(fd, from.data, from.size); });
}

}  // namespace

int64_t Perform(Operation* op) {
  const int fd = static_cast<int>(op->handle);
  const Buffer& buffer = op->buffer;
  switch (op->opcode) {
    case OpCode::kRecv:
      return Receive(fd, buffer.data, buffer.size, op->flags);
    case OpCode::kSend:
      return Try([&] { return ::send(fd, buffer.data, buffer.size, op->flags | kNoSignal); });
    case OpCode::kSendMsg:
      return SendMsg(fd, op);
    case OpCode::kRecvMsg:
      return RecvMsg(fd, op);
    case OpCode::kAccept:
      return Accept(fd, op);
    case OpCode::kConnect:
      return Connect(fd, op);
    case OpCode::kRead:
      return Try([&] {
        return op->offset < 0 ? ::read(fd, buffer.data, buffer.size)
                              : ::pread(fd, buffer.data, buffer.size, op->offset);
      });
    case OpCode::kWrite:
      return Write(fd, op);
    case OpCode::kFsync:
#ifdef __APPLE__
      return Call([&] { return ::fsync(fd); });
#else
      return Call([&] { return (op->flags & kDataOnly) != 0 ? ::fdatasync(fd) : ::fsync(fd); });
#endif
    case OpCode::kRecvLent:
    case OpCode::kWaitReadable:
    case OpCode::kWaitWritable:
    case OpCode::kRetire:
      break;
  }
  return -EINVAL;
}

int64_t FinishConnect(NativeHandle socket) {
  const int fd = static_cast<int>(socket);
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return -errno;
  if (error != 0) return -error;
  // No error, but connected only if it has a peer: the report may be an old one.
  sockaddr_storage peer;
  size = sizeof(peer);
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0) return 0;
  return errno == ENOTCONN ? kWouldBlock : -errno;
}

int64_t Receive(NativeHandle socket, void* data, size_t size, int flags) {
  return Try([&] { return ::recv(static_cast<int>(socket), data, size, flags); });
}

int64_t Read(NativeHandle handle, void* data, size_t size) {
  const int fd = static_cast<int>(handle);
  const int64_t result = Try([&] { return ::read(fd, data, size); });
  return result == 0 && size != 0 && HasNoWriterYet(handle) ? kWouldBlock : result;
}

bool HasNoWriterYet(NativeHandle handle) {
  // read(2) cannot tell the two, poll(2) can.
  struct stat status;
  return ::fstat(static_cast<int>(handle), &status) == 0 && S_ISFIFO(status.st_mode) &&
         IsReady(handle, /*to_write=*/false) == 0;
}

int IsReady(NativeHandle handle, bool to_write) {
  pollfd entry = {static_cast<int>(handle), static_cast<int16_t>(to_write ? POLLOUT : POLLIN), 0};
  const int64_t result = Call([&] { return ::poll(&entry, 1, /*timeout=*/0); });
  if (result < 0) return static_cast<int>(result);
  if ((entry.revents & POLLNVAL) != 0) return -EBADF;
  return result > 0 ? 1 : 0;
}

bool IsTcp(NativeHandle handle) {
#ifdef SO_PROTOCOL
  // Multipath TCP has a number of its own, and reads short for its own reasons.
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  return ::getsockopt(static_cast<int>(handle), SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 &&
         protocol == IPPROTO_TCP;
#else
  static_cast<void>(handle);
  return false;
#endif
}

int Close(NativeHandle handle) {
  // Not again after EINTR: Linux has let go of the number by then, and another
  // thread may have it already (close(2)).
  if (::close(static_cast<int>(handle)) == 0 || errno == EINTR) return 0;
  return -errno;
}

}  // namespace weft::internal
