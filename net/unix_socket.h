// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef WEFT_NET_UNIX_SOCKET_H_
#define WEFT_NET_UNIX_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "weft/core/intrusive_ptr.h"
#include "weft/net/socket.h"
#include "weft/net/socket_awaiter.h"
#include "weft/poller/native_handle.h"
#include "weft/poller/operation.h"

namespace weft {

// What Unix sockets can and others cannot: to say who the peer is, and to pass open
// files.

// The process at the other end, as it was when it connected or listened. The kernel
// vouches for it.
struct PeerCredentials {
  PeerCredentials() {}

  int64_t process = -1;  // -1 where the system does not say.
  int64_t user = -1;
  int64_t group = -1;
};

// Of a Unix socket that is connected: `GetPeerCredentials(writer.socket())`.
// Errors: the kernel's.
// Python: getsockopt(SOL_SOCKET, SO_PEERCRED).
absl::StatusOr<PeerCredentials> GetPeerCredentials(const Socket& socket);

// UniqueHandle
//
// Owns a descriptor that no poller has seen, and closes it.
//
// Threads: as an int.
class UniqueHandle {
 public:
  UniqueHandle() = default;
  explicit UniqueHandle(NativeHandle handle) : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.Release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      Reset();
      handle_ = other.Release();
    }
    return *this;
  }
  ~UniqueHandle() { Reset(); }

  explicit operator bool() const { return handle_ != kInvalidHandle; }
  NativeHandle get() const { return handle_; }
  NativeHandle Release() { return std::exchange(handle_, kInvalidHandle); }
  void Reset();

 private:
  NativeHandle handle_ = kInvalidHandle;
};

// Bytes that have come, and the descriptors that came with them.
struct ReceivedHandles {
  ReceivedHandles() {}
  ReceivedHandles(ReceivedHandles&&) noexcept = default;
  ReceivedHandles& operator=(ReceivedHandles&&) noexcept = default;

  size_t size = 0;
  std::vector<UniqueHandle> handles;  // Not inherited by child processes.
  bool is_truncated = false;          // There were more; the kernel has closed those.
};

// At most so many descriptors go in one call.
inline constexpr size_t kMaxHandles = 253;

namespace internal {

class SendHandlesAwaiter final : public SocketAwaiter<SendHandlesAwaiter> {
 public:
  SendHandlesAwaiter(const IntrusivePtr<SocketState>& socket, std::string_view data,
                     absl::Span<const NativeHandle> handles);
  SendHandlesAwaiter(SendHandlesAwaiter&& other) noexcept  // Before it is awaited.
      : SocketAwaiter(std::move(other.socket_)),
        data_(other.data_),
        control_(std::move(other.control_)) {}

  void Prepare();
  bool Stays() const { return true; }
  absl::StatusOr<size_t> Take();

 private:
  std::string_view data_;
  std::vector<uint64_t> control_;  // For its alignment.
  Buffer piece_ = {};
};

class ReceiveHandlesAwaiter final : public SocketAwaiter<ReceiveHandlesAwaiter> {
 public:
  ReceiveHandlesAwaiter(const IntrusivePtr<SocketState>& socket, absl::Span<char> into,
                        size_t max_handles);
  ReceiveHandlesAwaiter(ReceiveHandlesAwaiter&& other) noexcept  // Before it is awaited.
      : SocketAwaiter(std::move(other.socket_)),
        into_(other.into_),
        max_handles_(other.max_handles_) {}
  // Those that have come, and that nobody will take.
  ~ReceiveHandlesAwaiter() {
    if (state == State::kDone && !is_taken_ && result >= 0) TakeHandles();
  }

  void Prepare();
  bool Stays() const { return true; }
  absl::StatusOr<ReceivedHandles> Take();

 private:
  std::vector<UniqueHandle> TakeHandles();

  absl::Span<char> into_;
  size_t max_handles_;
  std::vector<uint64_t> control_;
  Buffer piece_ = {};
  bool is_taken_ = false;
};

}  // namespace internal

// Awaitable of StatusOr<size_t>: sends `data`, of which there has to be something on a
// stream, and with its first byte copies of the descriptors. All of them go, or an
// error says why not; of the data, as many bytes as it returns. Not to be mixed with
// what a StreamWriter has not sent yet.
// Errors: the kernel's. ValueError if `data` is empty, or there are more than
// kMaxHandles.
// Python: socket.send_fds().
inline internal::SendHandlesAwaiter SendHandles(Socket& socket, std::string_view data,
                                                absl::Span<const NativeHandle> handles) {
  return internal::SendHandlesAwaiter(socket.state(), data, handles);
}

// Awaitable of StatusOr<ReceivedHandles>: receives up to `into.size()` bytes, and up to
// `max_handles` descriptors; 0 bytes is the end of the stream. A StreamReader drops
// descriptors, so whoever expects some receives them before it reads.
// Errors: the kernel's. ValueError if `max_handles` is more than kMaxHandles.
// Python: socket.recv_fds().
inline internal::ReceiveHandlesAwaiter ReceiveHandles(Socket& socket, absl::Span<char> into,
                                                      size_t max_handles) {
  return internal::ReceiveHandlesAwaiter(socket.state(), into, max_handles);
}

}  // namespace weft

#endif  // WEFT_NET_UNIX_SOCKET_H_
