// Copyright 2026 The weft Authors.
// SPDX-License-Identifier: Apache-2.0

// Windows 10 has Unix sockets, but neither AcceptEx() nor ConnectEx() takes them, so no
// completion port can wait for them; and handles do not travel through them at all.

#include <string>

#include "weft/core/errors.h"
#include "weft/net/unix_socket.h"
#include "weft/poller/socket_api.h"

namespace weft {
namespace {

absl::Status NoUnixSockets(const char* tried) {
  return absl::UnimplementedError(std::string(tried) +
                                  ": on Windows no completion port waits for Unix sockets");
}

}  // namespace

absl::StatusOr<PeerCredentials> GetPeerCredentials(const Socket&) {
  return NoUnixSockets("get the credentials of a socket's peer");
}

void UniqueHandle::Reset() {
  if (handle_ != kInvalidHandle) SystemSocketApi()->Close(Release());
}

namespace internal {

// Nothing is sent or received: an operation without a place to write to ends at once.

SendHandlesAwaiter::SendHandlesAwaiter(const IntrusivePtr<SocketState>& socket,
                                       std::string_view data, absl::Span<const NativeHandle>)
    : SocketAwaiter(IntrusivePtr<SocketState>(socket)), data_(data) {
  if (data.empty()) throw ValueError("data: descriptors go with a byte at least");
}

void SendHandlesAwaiter::Prepare() { PrepareSendMsg(kInvalidHandle, &piece_, 0); }

absl::StatusOr<size_t> SendHandlesAwaiter::Take() { return NoUnixSockets("send descriptors"); }

ReceiveHandlesAwaiter::ReceiveHandlesAwaiter(const IntrusivePtr<SocketState>& socket,
                                             absl::Span<char> into, size_t max_handles)
    : SocketAwaiter(IntrusivePtr<SocketState>(socket)), into_(into), max_handles_(max_handles) {}

void ReceiveHandlesAwaiter::Prepare() { PrepareRecvMsg(kInvalidHandle, &piece_, 0); }

std::vector<UniqueHandle> ReceiveHandlesAwaiter::TakeHandles() {
  is_taken_ = true;
  return {};
}

absl::StatusOr<ReceivedHandles> ReceiveHandlesAwaiter::Take() {
  return NoUnixSockets("receive descriptors");
}

}  // namespace internal
}  // namespace weft
