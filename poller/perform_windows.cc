// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#include "weft/poller/perform_windows.h"

#include <winsock2.h>
// Behind it.
#include <mswsock.h>
#include <windows.h>
#include <ws2tcpip.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "weft/core/block_pool.h"
#include "weft/poller/errno_windows.h"
#include "weft/poller/is_open.h"

namespace weft::internal {

namespace {

SOCKET Socket(NativeHandle handle) { return static_cast<SOCKET>(handle); }
HANDLE File(NativeHandle handle) { return reinterpret_cast<HANDLE>(handle); }

ULONG ClampSize(size_t size) { return static_cast<ULONG>(std::min<size_t>(size, INT_MAX)); }

// The pieces of an operation, as Winsock takes them; at least one, which may be empty.
class Pieces {
 public:
  explicit Pieces(const Operation* op) {
    const bool is_list = op->opcode == OpCode::kSendMsg || op->opcode == OpCode::kRecvMsg;
    const Buffer* from = is_list ? op->buffers.data : &op->buffer;
    const size_t count = is_list ? op->buffers.count : 1;
    if (count > kFew) {
      size_ = count * sizeof(WSABUF);
      buffers_ = static_cast<WSABUF*>(AllocateBlock(size_));
      if (buffers_ == nullptr) return;
    }
    buffers_[0] = {};
    for (size_t i = 0; i < count; ++i) {
      buffers_[i].len = ClampSize(from[i].size);
      buffers_[i].buf = static_cast<char*>(from[i].data);
      total_ += buffers_[i].len;
    }
    count_ = static_cast<DWORD>(std::max<size_t>(count, 1));
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() {
    if (size_ != 0 && buffers_ != nullptr) FreeBlock(buffers_, size_);
  }

  WSABUF* data() { return buffers_; }  // Null if there is no memory.
  DWORD count() const { return count_; }
  int64_t total() const { return total_; }

 private:
  static constexpr size_t kFew = 32;

  WSABUF few_[kFew];
  WSABUF* buffers_ = few_;
  size_t size_ = 0;
  DWORD count_ = 0;
  int64_t total_ = 0;
};

int64_t Send(Operation* op, FileKind kind) {
  if (op->opcode == OpCode::kSendMsg && op->control_size != 0) return -EOPNOTSUPP;
  Pieces pieces(op);
  if (pieces.data() == nullptr) return -ENOMEM;
  const SockAddr* to = op->opcode == OpCode::kSendMsg ? op->address : nullptr;
  DWORD sent = 0;
  const int result =
      ::WSASendTo(Socket(op->handle), pieces.data(), pieces.count(), &sent,
                  static_cast<DWORD>(op->opcode == OpCode::kWrite ? 0 : op->flags),
                  to == nullptr ? nullptr : reinterpret_cast<const sockaddr*>(to->bytes),
                  to == nullptr ? 0 : static_cast<int>(to->length), nullptr, nullptr);
  return result == 0 ? int64_t{sent} : LastErrorOf(op->handle, kind);
}

int64_t Receive(Operation* op, FileKind kind) {
  Pieces pieces(op);
  if (pieces.data() == nullptr) return -ENOMEM;
  const bool is_message = op->opcode == OpCode::kRecvMsg;
  SockAddr* from = is_message ? op->address : nullptr;
  INT length = SockAddr::kCapacity;
  DWORD received = 0;
  DWORD flags = static_cast<DWORD>(op->flags & ~MSG_WAITALL);
  const int result =
      ::WSARecvFrom(Socket(op->handle), pieces.data(), pieces.count(), &received, &flags,
                    from == nullptr ? nullptr : reinterpret_cast<sockaddr*>(from->bytes),
                    from == nullptr ? nullptr : &length, nullptr, nullptr);
  const bool is_truncated = result != 0 && ::WSAGetLastError() == WSAEMSGSIZE;
  if (result != 0 && !is_truncated) return LastErrorOf(op->handle, kind);
  if (is_message) {
    // A stream has no sender.
    if (from != nullptr) from->length = kind == FileKind::kMessages ? uint32_t(length) : 0;
    op->control_size = 0;
    op->message_flags = is_truncated ? MSG_TRUNC : 0;
  }
  return is_truncated ? pieces.total() : int64_t{received};
}

}  // namespace

FileKind KindOf(NativeHandle handle) {
  int type = 0;
  int size = sizeof(type);
  if (::getsockopt(Socket(handle), SOL_SOCKET, SO_TYPE, reinterpret_cast<char*>(&type), &size) ==
      0) {
    return type == SOCK_STREAM ? FileKind::kStream : FileKind::kMessages;
  }
  switch (::GetFileType(File(handle))) {
    case FILE_TYPE_PIPE:
      return FileKind::kPipe;
    case FILE_TYPE_DISK:
      return FileKind::kDisk;
    default:
      return FileKind::kUnknown;
  }
}

int64_t SocketError(NativeHandle handle, FileKind kind, int64_t error) {
  switch (-error) {
    case EAGAIN:
      return kWouldBlock;
    case ENOTSOCK:
      return IsOpen(handle) ? error : -EBADF;
    case ECONNRESET:  // Nobody took an earlier datagram.
      return kind == FileKind::kMessages ? -ECONNREFUSED : error;
    case ECONNABORTED:  // Windows gave up, in one of several ways.
      return kind == FileKind::kStream ? -ECONNRESET : error;
    case ENETRESET:  // Nobody answers the probes of keep-alive.
      return kind == FileKind::kStream ? -ETIMEDOUT : error;
    default:
      return error;
  }
}

int64_t LastErrorOf(NativeHandle handle, FileKind kind) {
  return SocketError(handle, kind, LastSocketError());
}

int64_t Perform(Operation* op, FileKind kind) {
  switch (op->opcode) {
    case OpCode::kSend:
    case OpCode::kSendMsg:
    case OpCode::kWrite:
      return Send(op, kind);
    case OpCode::kRecv:
    case OpCode::kRecvMsg:
    case OpCode::kRead:
      return Receive(op, kind);
    default:
      return -EINVAL;
  }
}

int64_t Receive(NativeHandle handle, FileKind kind, void* data, size_t size) {
  if (kind != FileKind::kPipe) {
    const int result =
        ::recv(Socket(handle), static_cast<char*>(data), static_cast<int>(ClampSize(size)), 0);
    return result >= 0 ? int64_t{result} : LastErrorOf(handle, kind);
  }
  DWORD available = 0;
  if (!::PeekNamedPipe(File(handle), nullptr, 0, nullptr, &available, nullptr)) {
    const int64_t error = LastError();
    return error == -EPIPE ? 0 : error;
  }
  if (available == 0) return kWouldBlock;
  // It is there, so this does not wait. An event with the lowest bit set keeps the
  // completion from the port.
  OVERLAPPED overlapped = {};
  const HANDLE event = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  if (event == nullptr) return LastError();
  overlapped.hEvent = reinterpret_cast<HANDLE>(reinterpret_cast<uintptr_t>(event) | 1);
  DWORD read = 0;
  int64_t result = 0;
  const DWORD wanted = std::min<DWORD>(available, ClampSize(size));
  if (!::ReadFile(File(handle), data, wanted, nullptr, &overlapped) &&
      ::GetLastError() != ERROR_IO_PENDING) {
    result = LastError();
  } else if (!::GetOverlappedResult(File(handle), &overlapped, &read, /*bWait=*/TRUE)) {
    result = LastError();
  } else {
    result = read;
  }
  ::CloseHandle(event);
  return result == -EPIPE ? 0 : result;
}

int Close(NativeHandle handle, FileKind kind) {
  if (kind == FileKind::kStream || kind == FileKind::kMessages) {
    return ::closesocket(Socket(handle)) == 0 ? 0 : static_cast<int>(LastErrorOf(handle, kind));
  }
  return ::CloseHandle(File(handle)) ? 0 : static_cast<int>(LastError());
}

}  // namespace weft::internal
